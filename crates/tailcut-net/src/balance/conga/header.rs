//! The header of CONGA's overlay, packed into 64 bits.

use crate::balance::OverlayHeader;

/// The overlay header of a packet (section 3.1). `forth`: the packet's own uplink and the
/// congestion met so far. `back`: the same as feedback on a packet in the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub forth: Option<(u16, u8)>,
    pub back: Option<(u16, u8)>,
}

impl Header {
    pub fn read(OverlayHeader(bits): OverlayHeader) -> Header {
        let part = |bits: u64| {
            (bits & 1 == 1).then_some(((bits >> 1 & 0xffff) as u16, (bits >> 17 & 0xff) as u8))
        };
        Header { forth: part(bits), back: part(bits >> 32) }
    }

    pub fn write(self) -> OverlayHeader {
        let part = |part: Option<(u16, u8)>| match part {
            None => 0,
            Some((uplink, measure)) => 1 | u64::from(uplink) << 1 | u64::from(measure) << 17,
        };
        OverlayHeader(part(self.forth) | part(self.back) << 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_writing_and_reading() {
        for back in [None, Some((0, 0)), Some((65_535, 255))] {
            let header = Header { forth: Some((7, 3)), back };
            assert_eq!(Header::read(header.write()), header);
        }
        assert_eq!(Header::read(OverlayHeader::default()), Header::default());
    }
}
