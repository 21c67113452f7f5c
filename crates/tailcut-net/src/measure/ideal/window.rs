//! How much a sender that loses nothing may have sent, from ACK to ACK.

/// What the closed form needs to know of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportShape {
    /// Payload of a full segment.
    pub mss: u64,
    /// Bytes that a data segment needs on the wire beyond its payload.
    pub header: u16,
    /// Wire size of an ACK.
    pub ack: u16,
    /// Wire size of a SYN and of a SYN-ACK.
    pub syn: u16,
    /// Data wait for the answer to the SYN; otherwise they follow it.
    pub handshake: bool,
    /// Initial congestion window in bytes.
    pub initial_window: u64,
    /// Bytes of window from which on it grows by a segment per round trip only, at the most; none where it may always
    /// grow by what is acknowledged.
    pub ssthresh: u64,
    /// Bytes that one connection may have in flight, whatever its congestion window.
    pub receive_window: u64,
    /// The same until the first ACK, when the window is the one that the handshake has told.
    pub first_window: u64,
    /// A segment leaves beyond the window where no ACK comes for two round trips.
    pub probes: bool,
    /// Whether each segment has an ACK of its own throughout, so that that of the last one waits behind that of the one before.
    pub acks_each: bool,
    /// Connections that help the first one.
    pub subflows: Option<Subflows>,
}

/// Connections that help the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subflows {
    /// The segment with which their SYNs leave.
    pub after: u64,
    /// Their initial windows together, in bytes.
    pub initial_window: u64,
    /// Bytes that all connections together may have in flight.
    pub receive_window: u64,
}

impl TransportShape {
    /// The same with a probe, which leaves whatever the window says, one at a time.
    pub(super) fn probing(self) -> TransportShape {
        let initial_window = self.initial_window.saturating_add(self.mss);
        TransportShape { initial_window, ssthresh: u64::MAX, ..self }
    }

    /// Wire size of a full segment.
    pub fn full(&self) -> u16 {
        self.mss as u16 + self.header
    }
}

/// The window after each ACK.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    shape: TransportShape,
    /// The first connection's congestion window by the number of ACKs; with others, what all have grown by is in it.
    congestion: Vec<u64>,
}

impl Windows {
    pub fn new(shape: TransportShape) -> Windows {
        Windows { shape, congestion: vec![shape.initial_window] }
    }

    /// The fewest ACKs after which the first connection may have sent that many bytes.
    pub fn acks_for(&mut self, bytes: u64) -> usize {
        let TransportShape { first_window, receive_window, .. } = self.shape;
        self.first(bytes, 0, |acks| if acks == 0 { first_window } else { receive_window })
    }

    /// The fewest ACKs after which all connections together may have.
    pub fn acks_for_all(&mut self, bytes: u64) -> usize {
        match self.shape.subflows {
            None => self.acks_for(bytes),
            Some(others) => self.first(bytes, others.initial_window, |_| others.receive_window),
        }
    }

    fn first(&mut self, bytes: u64, more: u64, most: impl Fn(usize) -> u64) -> usize {
        let mss = self.shape.mss;
        let edge = |acks: usize, congestion: u64| {
            (acks as u64 * mss).saturating_add(congestion.saturating_add(more).min(most(acks)))
        };
        let last = |windows: &[u64]| edge(windows.len() - 1, windows[windows.len() - 1]);
        while last(&self.congestion) < bytes {
            self.congestion.push(self.grown(self.congestion[self.congestion.len() - 1]));
        }
        let (mut low, mut high) = (0, self.congestion.len() - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if edge(middle, self.congestion[middle]) < bytes {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Slow start, then congestion avoidance (RFC 5681 section 3.1).
    fn grown(&self, window: u64) -> u64 {
        let TransportShape { mss, ssthresh, .. } = self.shape;
        let growth = if window < ssthresh { mss } else { (mss * mss / window).max(1) };
        window.saturating_add(growth)
    }

    /// Once the receive window is what limits from that many ACKs on: the segments that fill it.
    pub fn full_at(&self, acks: usize) -> Option<usize> {
        let (more, most) = match self.shape.subflows {
            None => (0, self.shape.receive_window),
            Some(others) => (others.initial_window, others.receive_window),
        };
        let open = self.congestion[acks].saturating_add(more) >= most;
        open.then_some((most / self.shape.mss) as usize)
    }
}
