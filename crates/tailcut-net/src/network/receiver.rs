//! The receiving half of a connection, whatever its transport.

use std::ops::{Deref, DerefMut};

use tailcut_engine::Time;

use super::profile::{TransportKind, TransportProfile};
use crate::packet::OptionStore;
use crate::registry::static_methods;
use crate::transport::custom_endpoints::{CustomEndpoints, Pull, ReceivingEnd};
use crate::transport::{DataAck, Segment, Timer, other_ends, tcp};

macro_rules! receivers {
    ($($name:ident($spec:ty),)*) => {
        #[derive(Debug, Clone)]
        pub(super) enum Receiver {
            Tcp(tcp::Receiver),
            $($name(<$spec as CustomEndpoints>::Receiver),)*
        }

        static_methods! {
            Receiver [Tcp $($name)*]
            /// Whether [`Receiver::poll_transmit`] has anything.
            static pub fn has_output(&self) -> bool;
            /// The receiving application resets the connection.
            static pub fn reset(&mut self);
        }

        impl Receiver {
            /// A receiver of `segments` segments.
            pub fn new(profile: &TransportProfile, segments: u32) -> Receiver {
                match &profile.kind {
                    TransportKind::Tcp | TransportKind::Multipath(_) => Receiver::Tcp(tcp::Receiver::new(segments)),
                    $(TransportKind::$name(spec) => Receiver::$name(spec.receiver(segments)),)*
                }
            }

            #[inline]
            pub fn on_packet(
                &mut self,
                profile: &TransportProfile,
                now: Time,
                packet: &Segment,
                options: &OptionStore,
            ) -> bool {
                let spec = &profile.tcp;
                match self {
                    Receiver::Tcp(receiver) => receiver.on_packet(spec, now, packet, options),
                    $(Receiver::$name(receiver) => receiver.on_packet(spec, now, packet, options),)*
                }
            }

            #[inline]
            pub fn poll_transmit(
                &mut self,
                TransportProfile { tcp, sizes, .. }: &TransportProfile,
                now: Time,
                data: Option<DataAck>,
                options: &mut OptionStore,
            ) -> Option<Segment> {
                match self {
                    Receiver::Tcp(receiver) => {
                        receiver.poll_transmit(tcp, sizes, now, data, options)
                    }
                    $(Receiver::$name(receiver) => {
                        receiver.poll_transmit(tcp, sizes, now, data, options)
                    })*
                }
            }

            /// Returns the half that asks for packets, if the transport does.
            #[inline]
            pub fn pulls(&mut self) -> Option<&mut dyn Pull> {
                match self {
                    Receiver::Tcp(_) => None,
                    $(Receiver::$name(receiver) => receiver.pulls(),)*
                }
            }
        }

        impl Receiver {
            /// Returns the receiver's deadline and its purpose.
            pub fn timer(&self) -> (Time, Timer) {
                let timer = if self.in_handshake() { Timer::Syn } else { Timer::DelayedAck };
                (self.deadline(), timer)
            }
        }

        /// The part that all receivers have in common.
        impl Deref for Receiver {
            type Target = tcp::Receiver;
            #[inline]
            fn deref(&self) -> &tcp::Receiver {
                match self {
                    Receiver::Tcp(receiver) => receiver,
                    $(Receiver::$name(receiver) => receiver.tcp(),)*
                }
            }
        }

        impl DerefMut for Receiver {
            #[inline]
            fn deref_mut(&mut self) -> &mut tcp::Receiver {
                match self {
                    Receiver::Tcp(receiver) => receiver,
                    $(Receiver::$name(receiver) => receiver.tcp_mut(),)*
                }
            }
        }
    };
}
other_ends!(receivers);
