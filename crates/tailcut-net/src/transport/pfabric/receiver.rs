//! The receiving half of a pFabric connection: every segment is acknowledged at once, with all that
//! has arrived, and so is a probe. Reassembly, handshake and answers are TCP's.

use tailcut_engine::Time;

use crate::packet::{Flags, OptionStore};
use crate::transport::custom_endpoints::ReceivingEnd;
use crate::transport::segment::Segment;
use crate::transport::tcp::{Receiver, TcpSpec};

/// The receiving half of a connection.
#[derive(Debug, Clone)]
pub struct PfabricReceiver(Receiver);

impl PfabricReceiver {
    /// A receiver of `segments` segments.
    pub fn new(segments: u32) -> PfabricReceiver {
        PfabricReceiver(Receiver::new(segments))
    }
}

impl ReceivingEnd for PfabricReceiver {
    #[inline]
    fn tcp(&self) -> &Receiver {
        &self.0
    }
    #[inline]
    fn tcp_mut(&mut self) -> &mut Receiver {
        &mut self.0
    }

    #[inline]
    fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool {
        if packet.flags.has(Flags::PROBE) && !self.0.closed {
            self.0.end_handshake();
            self.0.acknowledge_now();
            return false;
        }
        self.0.on_packet(spec, now, packet, options)
    }
}
