//! The sending half of a connection, whatever its transport.

use tailcut_engine::Time;

use super::profile::{TransportKind, TransportProfile};
use crate::measure::{SenderView, TcpView};
use crate::packet::{Flags, OptionStore};
use crate::registry::static_methods;
use crate::transport::custom_endpoints::CustomEndpoints;
use crate::transport::entropy::EntropyState;
use crate::transport::tcp::{self, SenderCounters};
use crate::transport::{ConnectionState, Mapping, Segment, SendLimit, Timer, Transmit, other_ends};

macro_rules! senders {
    ($($name:ident($spec:ty),)*) => {
        #[derive(Debug, Clone)]
        pub(super) enum Sender {
            Tcp(tcp::Sender),
            $($name(<$spec as CustomEndpoints>::Sender),)*
        }

        static_methods! {
            Sender [Tcp $($name)*]
            static pub fn segments(&self) -> u32;
            static pub fn phase(&self) -> ConnectionState;
            static pub fn una(&self) -> u32;
            static pub fn counters(&self) -> SenderCounters;
            static pub fn deadline(&self) -> Time;
            static pub fn finished(&self) -> bool;
            static pub fn abort(&mut self);
        }

        impl Sender {
            pub fn new(profile: &TransportProfile, size: u64, open_at: Time) -> Sender {
                match &profile.kind {
                    TransportKind::Tcp | TransportKind::Multipath(_) => {
                        Sender::Tcp(tcp::Sender::new(&profile.tcp, size, open_at))
                    }
                    $(TransportKind::$name(spec) => Sender::$name(spec.sender(size, open_at)),)*
                }
            }

            /// Returns the sender's deadline and its purpose.
            pub fn timer(&self) -> (Time, Timer) {
                let timer = match (self.phase(), self) {
                    (ConnectionState::Closed, _) => Timer::Open,
                    (ConnectionState::SynSent, Sender::Tcp(_)) => Timer::Syn,
                    (_, Sender::Tcp(sender)) => sender.timer(),
                    $((ConnectionState::SynSent, Sender::$name(_)) if <$spec as CustomEndpoints>::HANDSHAKE => Timer::Syn,)*
                    _ => Timer::Retransmission,
                };
                (self.deadline(), timer)
            }
            /// Congestion window in bytes.
            pub fn cwnd(&self, profile: &TransportProfile) -> u64 {
                let packets = match self {
                    Sender::Tcp(sender) => return sender.cwnd(),
                    $(Sender::$name(sender) => <$spec as CustomEndpoints>::window(sender),)*
                };
                u64::from(packets) * profile.tcp.mss.0
            }

            #[inline]
            pub fn on_packet(
                &mut self,
                profile: &TransportProfile,
                now: Time,
                packet: &Segment,
                options: &OptionStore,
            ) {
                match (self, &profile.kind) {
                    (Sender::Tcp(sender), _) => {
                        sender.on_packet(&profile.tcp, now, packet, options);
                    }
                    $((Sender::$name(sender), TransportKind::$name(spec)) => {
                        sender.on_packet(spec, now, packet, options);
                    })*
                    $((Sender::$name(_), _) => {})*
                }
            }

            /// Seeds the sender's random stream.
            pub fn draw_from(&mut self, profile: &TransportProfile, seed: u64, entity: u64) {
                match (self, &profile.kind) {
                    (Sender::Tcp(sender), _) => sender.draw_from(seed, entity),
                    $((Sender::$name(sender), TransportKind::$name(spec)) => {
                        spec.draw_from(sender, seed, entity);
                    })*
                    $((Sender::$name(_), _) => {})*
                }
            }

            /// Returns whether the sender wants a turn at its interface.
            #[inline]
            pub fn wants_turn(&self, profile: &TransportProfile) -> bool {
                match (self, &profile.kind) {
                    $((Sender::$name(sender), TransportKind::$name(spec)) => spec.wants_turn(sender),)*
                    _ => false,
                }
            }

            /// The interface asks for a packet, for which so many senders of the host wait.
            pub fn grant_turn(&mut self, contenders: u32) {
                match self {
                    Sender::Tcp(_) => {}
                    $(Sender::$name(sender) => <$spec as CustomEndpoints>::grant_turn(sender, contenders),)*
                }
            }

            /// True where the timer is the one that repeats what is not answered.
            pub fn on_timer(&mut self, profile: &TransportProfile, now: Time) -> bool {
                match (self, &profile.kind) {
                    (Sender::Tcp(sender), _) => return sender.on_timer(&profile.tcp, now),
                    $((Sender::$name(sender), TransportKind::$name(spec)) => sender.on_timer(spec, now),)*
                    $((Sender::$name(_), _) => {})*
                }
                true
            }

            #[inline]
            pub fn poll_transmit(&mut self, profile: &TransportProfile, now: Time) -> Option<Transmit> {
                match (self, &profile.kind) {
                    (Sender::Tcp(sender), _) => sender.poll_transmit(&profile.tcp, now),
                    $((Sender::$name(sender), TransportKind::$name(spec)) => {
                        sender.poll_transmit(spec, now)
                    })*
                    $((Sender::$name(_), _) => None,)*
                }
            }

            #[inline]
            pub fn payload(&self, profile: &TransportProfile, seq: u32) -> u64 {
                match (self, &profile.kind) {
                    (Sender::Tcp(sender), _) => sender.payload(&profile.tcp, seq),
                    $((Sender::$name(sender), TransportKind::$name(spec)) => sender.payload(spec, seq),)*
                    $((Sender::$name(_), _) => 0,)*
                }
            }

            /// The packet for what [`Sender::poll_transmit`] yields.
            #[inline]
            pub fn packet(
                &mut self,
                profile: &TransportProfile,
                now: Time,
                transmit: Transmit,
                mapping: Option<Mapping>,
                options: &mut OptionStore,
            ) -> Segment {
                let TransportProfile { tcp, sizes, kind, .. } = profile;
                match (self, kind) {
                    (Sender::Tcp(sender), _) => {
                        sender.packet(tcp, sizes, now, transmit, mapping, options)
                    }
                    $((Sender::$name(sender), TransportKind::$name(spec)) => {
                        sender.packet(spec, sizes, transmit)
                    })*
                    $((Sender::$name(_), _) => Segment::bare(Flags::RST, 0, sizes.bare()),)*
                }
            }
        }
    };
}
other_ends!(senders);

impl Sender {
    /// The path has so many links.
    pub fn set_links(&mut self, links: u8) {
        if let Sender::Tcp(sender) = self {
            sender.set_switches(u32::from(links).saturating_sub(1));
        }
    }

    /// Lets a policy choose the source port of each packet; `port` is the connection's.
    pub fn choose_ports(&mut self, policy: EntropyState, port: u16) {
        if let Sender::Tcp(sender) = self {
            sender.choose_ports(policy, port);
        }
    }

    /// Returns an observer's view of the sender.
    pub fn view(&self, profile: &TransportProfile) -> SenderView {
        let tcp = self.tcp().map(|sender| TcpView {
            threshold: sender.ssthresh(),
            state: sender.state(),
            timeout: sender.rtt().rto(),
        });
        SenderView { counters: self.counters(), window: self.cwnd(profile), tcp }
    }

    /// Returns the sender's limit, if it has more to send. Windows of transports other than TCP are
    /// not probed.
    #[inline]
    pub fn stop(&self, profile: &TransportProfile) -> SendLimit {
        self.tcp().map_or(SendLimit::CongestionWindow, |sender| sender.send_limit(&profile.tcp))
    }

    /// TCP's sender, if it is one.
    pub fn tcp(&self) -> Option<&tcp::Sender> {
        match self {
            Sender::Tcp(sender) => Some(sender),
            _ => None,
        }
    }
}
