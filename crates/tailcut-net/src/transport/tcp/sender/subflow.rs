//! A sender whose data is assigned to it piece by piece: a subflow of a multipath connection.

use tailcut_engine::Time;

use super::{CongestionState, Sender};
use crate::transport::SendLimit;
use crate::transport::tcp::{Recovery, TcpSpec};

impl Sender {
    /// Returns a sender without data that opens its connection at `open_at` and gets segments by
    /// [`Sender::assign_segment`].
    pub fn open_ended(spec: &TcpSpec, open_at: Time) -> Sender {
        Sender { endless: true, ..Sender::new(spec, 0, open_at) }
    }

    /// Returns true if the window has room for a new segment of `payload` bytes and every assigned
    /// segment has been sent.
    pub fn has_room(&mut self, spec: &TcpSpec, payload: u64) -> bool {
        if !self.life.is_established() || self.next != self.segments {
            return false;
        }
        match spec.recovery {
            Recovery::Newreno if !spec.guesses() => self.fits_window(spec, payload),
            Recovery::Newreno | Recovery::SackPrr => {
                let held_back = self.state == CongestionState::Disorder && !spec.limited_transmit;
                !held_back
                    && self.board.next_lost().is_none()
                    && self.pipe(spec) + payload <= self.window.cwnd
                    && self.flight(spec) + payload <= self.receive_window(spec)
            }
        }
    }

    /// Returns the limit that keeps a sender with more data from sending. A subflow without assigned
    /// data waits for the receive window of the whole flow.
    pub fn send_limit(&self, spec: &TcpSpec) -> SendLimit {
        let payload = match self.next < self.segments {
            true => self.payload(spec, self.next),
            false => spec.mss.0,
        };
        let by_pipe = spec.recovery == Recovery::SackPrr || spec.guesses();
        let under_way = if by_pipe { self.pipe(spec) } else { self.flight(spec) };
        let room = under_way + payload <= self.window.cwnd;
        let unassigned = self.endless && self.next == self.segments;
        if room && (unassigned || self.flight(spec) + payload > self.receive_window(spec)) {
            SendLimit::ReceiveWindow
        } else if self.window.cwnd < self.window.ssthresh {
            SendLimit::SlowStart
        } else {
            SendLimit::CongestionWindow
        }
    }

    /// Assigns one more segment; every segment but the last is full.
    pub fn assign_segment(&mut self, spec: &TcpSpec, payload: u64) {
        self.size = u64::from(self.segments) * spec.mss.0 + payload;
        self.segments += 1;
    }

    /// Ends the data: the connection is done when every segment is acknowledged.
    pub fn finish(&mut self) {
        self.endless = false;
        if self.life.is_established() && self.una == self.segments {
            self.life.complete();
        }
    }

    /// Returns the segments sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.board.end() - self.una
    }

    /// Duplicate ACKs since the last that acknowledged new data.
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }
}
