//! What flows carry: bytes that tell what is lost, doubled, or another flow's.

use std::fmt::Write as _;

/// A prime, so that no multiple of a segment's size falls on the same bytes again.
const PERIOD: usize = 65_521;

/// The bytes of every flow, which begin at places of their own.
pub struct Payload {
    /// Two periods, so that any period of it is in one piece.
    bytes: Vec<u8>,
}

impl Default for Payload {
    /// Computes it.
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
    /// One period, in hexadecimal.
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(2 * PERIOD);
        for byte in &self.bytes[..PERIOD] {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Where in the period the bytes of a flow begin.
    pub fn place(&self, flow: u64) -> u64 {
        flow * 7_919 % PERIOD as u64
    }

    /// The 32-bit FNV-1a hash of the first so many bytes of a flow (Fowler, Noll and Vo; RFC 9923).
    pub fn digest(&self, flow: u64, bytes: u64) -> u32 {
        let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
        while at < bytes {
            let part = self.of(flow, at, bytes - at);
            for byte in part {
                hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            }
            at += part.len() as u64;
        }
        hash
    }

    /// As many of the bytes of a flow from `offset` on as are in one piece, at most `most` and a period.
    pub fn of(&self, flow: u64, offset: u64, most: u64) -> &[u8] {
        let at = ((self.place(flow) + offset) % PERIOD as u64) as usize;
        &self.bytes[at..at + most.min(PERIOD as u64) as usize]
    }

    /// The first place from which on `found` is not what the flow has at `offset`.
    pub fn mismatch(&self, flow: u64, offset: u64, found: &[u8]) -> Option<u64> {
        let mut at = 0;
        while at < found.len() {
            let expected = self.of(flow, offset + at as u64, (found.len() - at) as u64);
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
    use super::*;

    #[test]
    fn whatever_is_lost_doubled_or_of_another_flow_shows() {
        let payload = Payload::default();
        let sent: Vec<u8> = payload.of(3, 1_000, 30_000).to_vec();
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
    fn the_hash_is_fnv_1a_of_what_is_sent() {
        let payload = Payload::default();
        let hash = |bytes: &[u8]| {
            let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619);
            bytes.iter().fold(2_166_136_261, step)
        };
        assert_eq!(hash(b"foobar"), 0xbf9c_f968); // a published test vector
        assert_eq!(payload.digest(3, 20_000), hash(payload.of(3, 0, 20_000)));
        let period = payload.of(9, 0, u64::MAX);
        let beyond = [period, &period[..100]].concat();
        assert_eq!(payload.digest(9, beyond.len() as u64), hash(&beyond));
        assert_eq!(payload.digest(0, 0), 2_166_136_261);
        let hex = payload.hex();
        let start = 2 * payload.place(5) as usize;
        let first: String = payload.of(5, 0, 4).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex[start..start + 8], first);
    }

    #[test]
    fn it_goes_on_beyond_its_period() {
        let payload = Payload::default();
        let mut stream = vec![];
        while stream.len() < 200_000 {
            let offset = stream.len() as u64;
            stream.extend_from_slice(payload.of(9, offset, 200_000 - offset));
        }
        assert_eq!(payload.mismatch(9, 0, &stream), None);
        assert_eq!(payload.mismatch(9, 70_000, &stream[70_000..]), None);
    }
}
