//! The receiving half of a connection, whatever its transport.

use std::ops::{Deref, DerefMut};

use tailcut_engine::Time;

use super::profile::{Kind, Profile};
use crate::packet::OptionStore;
use crate::transport::pfabric::PfabricReceiver;
use crate::transport::{tcp, DataAck, Segment};

#[derive(Debug, Clone)]
pub(super) enum Receiver {
    Tcp(tcp::Receiver),
    Pfabric(PfabricReceiver),
}

impl Receiver {
    /// A receiver of `segments` segments.
    pub fn new(profile: &Profile, segments: u32) -> Receiver {
        match profile.kind {
            Kind::Pfabric(_) => Receiver::Pfabric(PfabricReceiver::new(segments)),
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
        (**self).poll_transmit(&profile.tcp, &profile.sizes, now, data, options)
    }
}

/// What both have in common.
impl Deref for Receiver {
    type Target = tcp::Receiver;
    #[inline]
    fn deref(&self) -> &tcp::Receiver {
        match self {
            Receiver::Tcp(receiver) => receiver,
            Receiver::Pfabric(receiver) => receiver,
        }
    }
}

impl DerefMut for Receiver {
    #[inline]
    fn deref_mut(&mut self) -> &mut tcp::Receiver {
        match self {
            Receiver::Tcp(receiver) => receiver,
            Receiver::Pfabric(receiver) => receiver,
        }
    }
}
