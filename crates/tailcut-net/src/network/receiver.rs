//! The receiving half of a connection, whatever its transport.

use std::ops::{Deref, DerefMut};

use tailcut_engine::Time;

use super::profile::{Kind, Profile};
use crate::packet::OptionStore;
use crate::transport::ndp::NdpReceiver;
use crate::transport::pfabric::PfabricReceiver;
use crate::transport::{tcp, DataAck, Segment};

#[derive(Debug, Clone)]
pub(super) enum Receiver {
    Tcp(tcp::Receiver),
    Pfabric(PfabricReceiver),
    Ndp(Box<NdpReceiver>),
}

impl Receiver {
    /// A receiver of `segments` segments.
    pub fn new(profile: &Profile, segments: u32) -> Receiver {
        match &profile.kind {
            Kind::Pfabric(_) => Receiver::Pfabric(PfabricReceiver::new(segments)),
            Kind::Ndp(spec) => {
                Receiver::Ndp(Box::new(NdpReceiver::new(segments, spec.initial_window)))
            }
            _ => Receiver::Tcp(tcp::Receiver::new(segments)),
        }
    }

    #[inline]
    pub fn on_packet(
        &mut self,
        profile: &Profile,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool {
        match self {
            Receiver::Tcp(receiver) => receiver.on_packet(&profile.tcp, now, packet, options),
            Receiver::Pfabric(receiver) => receiver.on_packet(&profile.tcp, now, packet, options),
            Receiver::Ndp(receiver) => receiver.on_packet(&profile.tcp, now, packet),
        }
    }

    #[inline]
    pub fn poll_transmit(
        &mut self,
        profile: &Profile,
        now: Time,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Option<Segment> {
        match self {
            Receiver::Ndp(receiver) => receiver.poll_transmit(&profile.sizes),
            other => (**other).poll_transmit(&profile.tcp, &profile.sizes, now, data, options),
        }
    }

    /// Whether [`Receiver::poll_transmit`] has anything.
    #[inline]
    pub fn owes_anything(&self) -> bool {
        match self {
            Receiver::Ndp(receiver) => receiver.owes_anything(),
            other => (**other).owes_anything(),
        }
    }

    /// The receiving application resets the connection.
    pub fn reset(&mut self) {
        match self {
            Receiver::Ndp(receiver) => receiver.reset(),
            other => (**other).reset(),
        }
    }

    /// What asks for packets, if its transport does.
    #[inline]
    pub fn pulls(&mut self) -> Option<&mut NdpReceiver> {
        match self {
            Receiver::Ndp(receiver) => Some(receiver),
            _ => None,
        }
    }
}

/// What all have in common.
impl Deref for Receiver {
    type Target = tcp::Receiver;
    #[inline]
    fn deref(&self) -> &tcp::Receiver {
        match self {
            Receiver::Tcp(receiver) => receiver,
            Receiver::Pfabric(receiver) => receiver,
            Receiver::Ndp(receiver) => receiver,
        }
    }
}

impl DerefMut for Receiver {
    #[inline]
    fn deref_mut(&mut self) -> &mut tcp::Receiver {
        match self {
            Receiver::Tcp(receiver) => receiver,
            Receiver::Pfabric(receiver) => receiver,
            Receiver::Ndp(receiver) => receiver,
        }
    }
}
