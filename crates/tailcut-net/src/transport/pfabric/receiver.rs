//! The receiving half of a pFabric connection: every segment is acknowledged at once, with all that has arrived, and so
//! is a probe. Reassembly and handshake are TCP's.

use std::ops::{Deref, DerefMut};

use tailcut_engine::Time;

use crate::packet::{Flags, OptionStore};
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

    /// A packet has arrived. True when it completes the data. `spec` is [`segments`](super::PfabricSpec::segments).
    #[inline]
    pub fn on_packet(
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

impl Deref for PfabricReceiver {
    type Target = Receiver;
    fn deref(&self) -> &Receiver {
        &self.0
    }
}

impl DerefMut for PfabricReceiver {
    fn deref_mut(&mut self) -> &mut Receiver {
        &mut self.0
    }
}
