//! Bytes that a sender without losses may have sent, by the number of ACKs.

/// The properties of a transport that determine the ideal time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportShape {
    /// Payload of a full segment in bytes.
    pub mss: u64,
    /// Bytes that a data segment needs on the wire beyond its payload.
    pub header: u16,
    /// Size of an ACK on the wire in bytes.
    pub ack: u16,
    /// Size of a SYN, and of a SYN-ACK, on the wire in bytes.
    pub syn: u16,
    /// Whether data wait for the answer to the SYN; otherwise they follow the SYN.
    pub handshake: bool,
    /// Initial congestion window in bytes.
    pub initial_window: u64,
    /// Congestion window in bytes from which on it grows by at most one segment per round trip;
    /// `u64::MAX` if it may always grow by the bytes acknowledged.
    pub ssthresh: u64,
    /// Bytes that one connection may have in flight, whatever its congestion window.
    pub receive_window: u64,
    /// The value of `receive_window` until the first ACK: the window announced in the handshake.
    pub first_window: u64,
    /// Whether a segment may leave beyond the window if no ACK arrives for two round trips.
    pub probes: bool,
    /// Whether each segment has an ACK of its own throughout, so that the last ACK waits behind the
    /// one before.
    pub acks_each: bool,
    /// Connections that help the first one, if any.
    pub subflows: Option<Subflows>,
}

/// Connections that help the first connection of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subflows {
    /// Index of the segment with which their SYNs leave.
    pub after: u64,
    /// Sum of their initial windows in bytes.
    pub initial_window: u64,
    /// Bytes that all connections together may have in flight.
    pub receive_window: u64,
}

impl TransportShape {
    /// Returns the shape with a tail probe: one segment at a time that leaves whatever the window
    /// says.
    pub(super) fn probing(self) -> TransportShape {
        let initial_window = self.initial_window.saturating_add(self.mss);
        TransportShape { initial_window, ssthresh: u64::MAX, ..self }
    }

    /// Returns the size of a full segment on the wire in bytes.
    pub fn full(&self) -> u16 {
        self.mss as u16 + self.header
    }
}

/// The congestion window after each ACK.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    shape: TransportShape,
    /// Congestion window of the first connection by the number of ACKs; with other subflows, their
    /// growth is included.
    congestion: Vec<u64>,
}

impl Windows {
    pub fn new(shape: TransportShape) -> Windows {
        Windows { shape, congestion: vec![shape.initial_window] }
    }

    /// Returns the fewest ACKs after which the first connection may have sent `bytes` bytes.
    pub fn acks_for(&mut self, bytes: u64) -> usize {
        let TransportShape { first_window, receive_window, .. } = self.shape;
        self.first(bytes, 0, |acks| if acks == 0 { first_window } else { receive_window })
    }

    /// Returns the fewest ACKs after which all connections together may have sent `bytes` bytes.
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

    /// Returns the segments that fill the receive window, if that is the limit from `acks` ACKs on.
    pub fn full_at(&self, acks: usize) -> Option<usize> {
        let (more, most) = match self.shape.subflows {
            None => (0, self.shape.receive_window),
            Some(others) => (others.initial_window, others.receive_window),
        };
        let open = self.congestion[acks].saturating_add(more) >= most;
        open.then_some((most / self.shape.mss) as usize)
    }
}
