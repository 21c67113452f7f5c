//! Payload of flows: its bytes reveal loss, repetition and mix-ups of flows.

use std::fmt::Write as _;

/// The period of the payload: a prime, so that no multiple of a segment's size starts at the same
/// bytes again.
const PERIOD: usize = 65_521;

/// The number of bytes that identify a flow: any 8 consecutive bytes occur at one position of the
/// period only.
pub const ID_BYTES: u64 = 8;

/// The bytes of all flows, which start at different positions of one period.
pub struct Payload {
    /// Two periods, so that a slice of up to one period is contiguous.
    bytes: Vec<u8>,
}

impl Default for Payload {
    /// Computes the period.
    fn default() -> Payload {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = || {
            // Marsaglia, "Xorshift RNGs" (2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let period: Vec<u8> = (0..PERIOD).map(|_| draw()).collect();
        Payload { bytes: [&period[..], &period].concat() }
    }
}

impl Payload {
    /// Returns one period in hexadecimal.
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(2 * PERIOD);
        for byte in &self.bytes[..PERIOD] {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Returns the position in the period at which the bytes of a flow start.
    pub fn place(&self, flow: u64) -> u64 {
        flow * 7_919 % PERIOD as u64
    }

    /// Returns the first bytes of a flow, by which its receiver identifies it.
    pub fn head(&self, flow: u64, bytes: u64) -> &[u8] {
        self.slice(flow, 0, bytes.min(ID_BYTES))
    }

    /// Returns up to `most` bytes of a flow from `offset` on, and at most one period.
    pub fn slice(&self, flow: u64, offset: u64, most: u64) -> &[u8] {
        let at = ((self.place(flow) + offset) % PERIOD as u64) as usize;
        &self.bytes[at..at + most.min(PERIOD as u64) as usize]
    }

    /// Returns the offset of the first byte of `found` that differs from the flow's bytes at
    /// `offset`, if any.
    pub fn mismatch(&self, flow: u64, offset: u64, found: &[u8]) -> Option<u64> {
        let mut at = 0;
        while at < found.len() {
            let expected = self.slice(flow, offset + at as u64, (found.len() - at) as u64);
            let here = &found[at..at + expected.len()];
            if here != expected {
                let differs = here.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
                return Some(offset + (at + differs) as u64);
            }
            at += expected.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn lost_repeated_and_foreign_bytes_are_detected() {
        let payload = Payload::default();
        let sent: Vec<u8> = payload.slice(3, 1_000, 30_000).to_vec();
        assert_eq!(payload.mismatch(3, 1_000, &sent), None);
        assert!(payload.mismatch(4, 1_000, &sent).is_some());
        for shift in [1, 1_448, 1_460, 65_536] {
            assert!(payload.mismatch(3, 1_000 + shift, &sent).is_some(), "{shift}");
        }
        let mut wrong = sent.clone();
        wrong[20_000] ^= 1;
        assert_eq!(payload.mismatch(3, 1_000, &wrong), Some(21_000));
    }

    #[test]
    fn the_first_bytes_differ_between_all_flows_of_a_run() {
        let payload = Payload::default();
        let flows = 0..crate::traffic::MAX_FLOWS as u64;
        let heads: BTreeSet<&[u8]> = flows.clone().map(|flow| payload.head(flow, 1_000)).collect();
        assert_eq!(heads.len() as u64, flows.end);
        assert_eq!(payload.head(7, 3), &payload.slice(7, 0, 100)[..3]);
    }

    #[test]
    fn the_payload_follows_from_its_period_and_the_start_of_a_flow() {
        let (payload, hex) = (Payload::default(), Payload::default().hex());
        let start = 2 * payload.place(5) as usize;
        let first: String =
            payload.slice(5, 0, 4).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex[start..start + 8], first);
    }

    #[test]
    fn the_payload_repeats_after_its_period() {
        let payload = Payload::default();
        let mut stream = vec![];
        while stream.len() < 200_000 {
            let offset = stream.len() as u64;
            stream.extend_from_slice(payload.slice(9, offset, 200_000 - offset));
        }
        assert_eq!(payload.mismatch(9, 0, &stream), None);
        assert_eq!(payload.mismatch(9, 70_000, &stream[70_000..]), None);
    }
}
