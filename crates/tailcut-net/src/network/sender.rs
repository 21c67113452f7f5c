//! The sending half of a connection, whatever its transport.

use tailcut_engine::Time;

use super::profile::{Kind, Profile};
use crate::packet::{Flags, OptionStore};
use crate::transport::ndp::NdpSender;
use crate::transport::pfabric::PfabricSender;
use crate::transport::tcp::{self, SenderCounters};
use crate::transport::{Mapping, Phase, Segment, Transmit};

#[derive(Debug, Clone)]
pub(super) enum Sender {
    Tcp(tcp::Sender),
    Pfabric(PfabricSender),
    Ndp(NdpSender),
}

/// Calls the method of the same name on either.
macro_rules! either {
    ($self:ident, $sender:ident => $call:expr) => {
        match $self {
            Sender::Tcp($sender) => $call,
            Sender::Pfabric($sender) => $call,
            Sender::Ndp($sender) => $call,
        }
    };
}

impl Sender {
    pub fn new(profile: &Profile, size: u64, open_at: Time) -> Sender {
        match &profile.kind {
            Kind::Pfabric(spec) => Sender::Pfabric(PfabricSender::new(spec, size, open_at)),
            Kind::Ndp(spec) => Sender::Ndp(NdpSender::new(spec, size, open_at)),
            _ => Sender::Tcp(tcp::Sender::new(&profile.tcp, size, open_at)),
        }
    }

    /// The path has so many links.
    pub fn set_links(&mut self, links: u8) {
        if let Sender::Tcp(sender) = self {
            sender.set_switches(u32::from(links).saturating_sub(1));
        }
    }

    #[inline]
    pub fn segments(&self) -> u32 {
        either!(self, s => s.segments())
    }
    #[inline]
    pub fn phase(&self) -> Phase {
        either!(self, s => s.phase())
    }
    #[inline]
    pub fn una(&self) -> u32 {
        either!(self, s => s.una())
    }
    pub fn counters(&self) -> SenderCounters {
        either!(self, s => s.counters())
    }
    #[inline]
    pub fn deadline(&self) -> Time {
        either!(self, s => s.deadline())
    }
    #[inline]
    pub fn finished(&self) -> bool {
        either!(self, s => s.finished())
    }
    pub fn abort(&mut self) {
        either!(self, s => s.abort());
    }

    /// Congestion window in bytes.
    pub fn cwnd(&self, profile: &Profile) -> u64 {
        match self {
            Sender::Tcp(sender) => sender.cwnd(),
            Sender::Pfabric(sender) => u64::from(sender.cwnd()) * profile.tcp.mss.0,
            Sender::Ndp(sender) => u64::from(sender.window()) * profile.tcp.mss.0,
        }
    }

    /// TCP's sender, if it is one.
    pub fn tcp(&self) -> Option<&tcp::Sender> {
        match self {
            Sender::Tcp(sender) => Some(sender),
            Sender::Pfabric(_) | Sender::Ndp(_) => None,
        }
    }

    #[inline]
    pub fn on_packet(
        &mut self,
        profile: &Profile,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) {
        match (self, &profile.kind) {
            (Sender::Tcp(sender), _) => sender.on_packet(&profile.tcp, now, packet, options),
            (Sender::Pfabric(sender), Kind::Pfabric(spec)) => {
                sender.on_packet(spec, now, packet, options);
            }
            (Sender::Ndp(sender), Kind::Ndp(spec)) => sender.on_packet(spec, now, packet, options),
            (Sender::Pfabric(_) | Sender::Ndp(_), _) => {}
        }
    }

    /// True where the timer is the one that repeats what is not answered.
    pub fn on_timer(&mut self, profile: &Profile, now: Time) -> bool {
        match (self, &profile.kind) {
            (Sender::Tcp(sender), _) => return sender.on_timer(&profile.tcp, now),
            (Sender::Pfabric(sender), Kind::Pfabric(spec)) => sender.on_timer(spec, now),
            (Sender::Ndp(sender), Kind::Ndp(spec)) => sender.on_timer(spec, now),
            (Sender::Pfabric(_) | Sender::Ndp(_), _) => {}
        }
        true
    }

    #[inline]
    pub fn poll_transmit(&mut self, profile: &Profile, now: Time) -> Option<Transmit> {
        match (self, &profile.kind) {
            (Sender::Tcp(sender), _) => sender.poll_transmit(&profile.tcp, now),
            (Sender::Pfabric(sender), Kind::Pfabric(spec)) => sender.poll_transmit(spec, now),
            (Sender::Ndp(sender), Kind::Ndp(spec)) => sender.poll_transmit(spec, now),
            (Sender::Pfabric(_) | Sender::Ndp(_), _) => None,
        }
    }

    #[inline]
    pub fn payload(&self, profile: &Profile, seq: u32) -> u64 {
        match (self, &profile.kind) {
            (Sender::Tcp(sender), _) => sender.payload(&profile.tcp, seq),
            (Sender::Pfabric(sender), Kind::Pfabric(spec)) => sender.payload(spec, seq),
            (Sender::Ndp(sender), Kind::Ndp(spec)) => sender.payload(spec, seq),
            (Sender::Pfabric(_) | Sender::Ndp(_), _) => 0,
        }
    }

    /// The packet for what [`Sender::poll_transmit`] yields.
    #[inline]
    pub fn packet(
        &mut self,
        profile: &Profile,
        now: Time,
        transmit: Transmit,
        mapping: Option<Mapping>,
        options: &mut OptionStore,
    ) -> Segment {
        let Profile { tcp, sizes, kind, .. } = profile;
        match (self, kind) {
            (Sender::Tcp(sender), _) => sender.packet(tcp, sizes, now, transmit, mapping, options),
            (Sender::Pfabric(sender), Kind::Pfabric(spec)) => sender.packet(spec, sizes, transmit),
            (Sender::Ndp(sender), Kind::Ndp(spec)) => sender.packet(spec, sizes, transmit),
            (Sender::Pfabric(_) | Sender::Ndp(_), _) => Segment::bare(Flags::RST, 0, sizes.bare()),
        }
    }
}
