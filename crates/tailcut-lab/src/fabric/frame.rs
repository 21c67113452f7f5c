//! Conversion between frames of real hosts and packets of the fabric. A frame's bytes leave
//! unchanged, except for a congestion mark.

use std::net::Ipv4Addr;

use tailcut_net::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, Packet, SeqField};

const ETHERNET: usize = 14;
const TCP: u8 = 6;

/// The header fields of a frame that the fabric uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedFrame {
    /// The source address and port.
    pub source: (Ipv4Addr, u16),
    /// The destination address and port.
    pub destination: (Ipv4Addr, u16),
    /// The size of the IP datagram in bytes.
    pub datagram: u16,
    /// Whether it carries payload.
    pub has_data: bool,
    /// The two ECN bits.
    pub ecn: u8,
    /// The flags of the TCP header.
    pub tcp: u8,
    /// The TCP sequence number.
    pub sequence: u32,
}

/// Parses a frame; none unless it is a complete TCP segment over IPv4.
pub fn parse(frame: &[u8]) -> Option<ParsedFrame> {
    let ip = frame.get(ETHERNET..)?;
    let word =
        |bytes: &[u8], at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let first = *ip.first()?;
    if word(frame, 12)? != 0x0800 || first >> 4 != 4 || *ip.get(9)? != TCP {
        return None;
    }
    let header = usize::from(first & 15) * 4;
    let datagram = word(ip, 2)?;
    let tcp = ip.get(header..usize::from(datagram))?;
    let data = usize::from(*tcp.get(12)? >> 4) * 4;
    let address = |at: usize| {
        let octets: [u8; 4] = ip.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    Some(ParsedFrame {
        source: (address(12)?, word(tcp, 0)?),
        destination: (address(16)?, word(tcp, 2)?),
        datagram,
        has_data: tcp.len() > data,
        ecn: *ip.get(1)? & 3,
        tcp: *tcp.get(13)?,
        sequence: u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?),
    })
}

/// Returns the packet that represents a frame in the fabric.
pub fn packet_for(
    parsed: &ParsedFrame,
    key: FlowKey,
    to_sender: bool,
    framing: u16,
    slot: ConnectionId,
) -> Packet {
    let mut flags = Flags(0);
    let says = [
        (parsed.tcp & 0x02 != 0, Flags::SYN),
        (parsed.tcp & 0x01 != 0, Flags::FIN),
        (parsed.tcp & 0x04 != 0, Flags::RST),
        (parsed.tcp & 0x10 != 0, Flags::ACK),
        (to_sender, Flags::TO_SENDER),
        (parsed.has_data, Flags::DATA),
        (parsed.ecn != 0, Flags::ECN_CAPABLE),
        (parsed.ecn == 3, Flags::CONGESTION_EXPERIENCED),
    ];
    for (_, flag) in says.into_iter().filter(|(says, _)| *says) {
        flags = flags | flag;
    }
    Packet {
        key,
        connection: slot,
        seq: SeqField::new(parsed.sequence),
        options: NO_OPTIONS,
        wire_bytes: parsed.datagram.saturating_add(framing),
        flags,
    }
}

/// Sets the CE codepoint of an ECN-capable frame, and updates its header checksum (RFC 1624).
pub fn set_ce(frame: &mut [u8]) {
    let before = u16::from_be_bytes([frame[ETHERNET], frame[ETHERNET + 1]]);
    let after = before | 3;
    frame[ETHERNET + 1] = after as u8;
    let checksum = u16::from_be_bytes([frame[ETHERNET + 10], frame[ETHERNET + 11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_net::topology::HostId;

    /// Returns a frame with an IPv4 header of 20 bytes and a TCP header of `tcp` bytes.
    fn frame(tos: u8, tcp: u8, payload: usize) -> Vec<u8> {
        let total = 20 + usize::from(tcp) + payload;
        let mut frame = vec![0; 12];
        frame.extend([
            8,
            0,
            0x45,
            tos,
            (total >> 8) as u8,
            total as u8,
            0,
            7,
            0x40,
            0,
            64,
            6,
            0,
            0,
        ]);
        frame.extend([10, 77, 0, 1, 10, 77, 0, 2]);
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend([4, 0, 242, 48, 0, 0, 1, 0, 0, 0, 0, 0, tcp << 2, 0x12, 0, 0, 0, 0, 0, 0]);
        frame.resize(14 + total, 0);
        frame
    }

    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_frame_is_parsed_into_addresses_ports_and_flags() {
        let parsed = parse(&frame(2, 24, 100)).expect("it is whole");
        assert_eq!(parsed.source, (Ipv4Addr::new(10, 77, 0, 1), 1_024));
        assert_eq!(parsed.destination, (Ipv4Addr::new(10, 77, 0, 2), 62_000));
        assert_eq!((parsed.datagram, parsed.has_data, parsed.ecn), (144, true, 2));
        assert_eq!((parsed.tcp, parsed.sequence), (0x12, 256));
        let packet = packet_for(
            &parsed,
            FlowKey::new(HostId(0), HostId(1), 1_024, 5_000),
            false,
            38,
            ConnectionId(9),
        );
        assert_eq!((packet.wire_bytes, packet.connection), (182, ConnectionId(9)));
        assert!(packet.flags.has(Flags::ECN_CAPABLE) && packet.flags.has(Flags::DATA));
        assert!(packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::FIN));
        assert!(!parse(&frame(0, 20, 0)).expect("it is whole").has_data);
    }

    #[test]
    fn truncated_frames_and_other_protocols_are_rejected() {
        let whole = frame(0, 20, 10);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length}");
        }
        let mut other = whole.clone();
        other[23] = 17;
        assert_eq!(parse(&other), None);
        let mut arp = whole;
        arp[13] = 6;
        assert_eq!(parse(&arp), None);
    }

    #[test]
    fn setting_ce_updates_the_header_checksum() {
        for tos in [1, 2, 3, 0xfe] {
            let mut marked = frame(tos, 20, 1);
            set_ce(&mut marked);
            assert_eq!(parse(&marked).expect("it is whole").ecn, 3);
            assert_eq!(checksum(&marked[14..34]), 0, "{tos}");
        }
    }
}
