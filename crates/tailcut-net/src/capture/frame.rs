//! Encoding of a simulated packet as an Ethernet frame with IPv4 and TCP.
//!
//! The fabric looks like one Ethernet segment: MAC addresses are those of the two hosts, and the
//! time to live is the same on every link. Headers follow RFC 791 and RFC 9293; options RFC 9293
//! (MSS), RFC 7323 (window scale, timestamps) and RFC 2018 (SACK); ECN bits RFC 3168. Payload bytes
//! are zero, because the simulator models only their number.

use crate::topology::HostId;
use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement,
};

/// Bytes of the Ethernet header, before the IP datagram.
pub const ETHERNET_HEADER: usize = Ethernet2Header::LEN;
/// Number of hosts with an address: those of 10.0.0.0/8 without the first and the last.
pub const ADDRESSABLE_HOSTS: u32 = (1 << 24) - 2;

const TIME_TO_LIVE: u8 = 64;
/// Maximum bytes of TCP options in a header.
const OPTION_SPACE: usize = 40;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Endpoint {
    /// Host number.
    pub host: HostId,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Returns the host's locally administered MAC address: 02:00 and the host number.
    pub fn mac(self) -> [u8; 6] {
        let [a, b, c, d] = self.host.0.to_be_bytes();
        [0x02, 0, a, b, c, d]
    }

    /// Returns the host's IPv4 address: 10.0.0.1 for host 0, 10.0.1.0 for host 255.
    pub fn ip(self) -> [u8; 4] {
        let [_, b, c, d] = (self.host.0 + 1).to_be_bytes();
        [10, b, c, d]
    }
}

/// Explicit congestion notification in the IP header (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable: ECT(0).
    Capable,
    /// Congestion experienced.
    Experienced,
}

/// TCP flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags {
    /// Synchronise sequence numbers.
    pub syn: bool,
    /// The acknowledgement number is valid.
    pub ack: bool,
    /// No more data from the sender.
    pub fin: bool,
    /// Reset the connection.
    pub rst: bool,
    /// Push: set on the last segment of what the application wrote.
    pub psh: bool,
    /// ECN echo.
    pub ece: bool,
    /// Congestion window reduced.
    pub cwr: bool,
}

/// TCP options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions<'a> {
    /// Maximum segment size; on a SYN.
    pub maximum_segment: Option<u16>,
    /// Window scale; on a SYN.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements permitted; on a SYN.
    pub sack_permitted: bool,
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Selectively acknowledged ranges of sequence numbers, half open. Ranges that do not fit are
    /// left out: beyond four, or beyond three with timestamps.
    pub sack: &'a [(u32, u32)],
}

/// The contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame<'a> {
    /// Sending end.
    pub source: Endpoint,
    /// Receiving end.
    pub destination: Endpoint,
    /// Sequence number of the first payload byte (or of the SYN).
    pub sequence: u32,
    /// Next sequence number expected, when the ACK flag is set.
    pub acknowledgment: u32,
    /// TCP flags.
    pub flags: TcpFlags,
    /// The window field as transmitted: shifted by the scale, except on a SYN.
    pub window: u16,
    /// TCP options.
    pub options: TcpOptions<'a>,
    /// Payload bytes.
    pub payload: u16,
    /// ECN bits of the IP header.
    pub ecn: Ecn,
}

/// Reasons for which a packet has no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The packet does not fit an IPv4 datagram, which holds at most 65,535 bytes.
    #[error("{0} payload bytes and their headers do not fit into an IPv4 datagram")]
    PayloadTooLong(u16),
    /// The host number is beyond 10.0.0.0/8.
    #[error("host {0} has no address: captures number at most {ADDRESSABLE_HOSTS} hosts")]
    HostWithoutAddress(HostId),
}

/// Appends the bytes of `frame` to `out`, without the frame check sequence.
///
/// # Errors
/// See [`FrameError`]; `out` is then unchanged.
pub fn encode(frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), FrameError> {
    for end in [frame.source, frame.destination] {
        if end.host.0 >= ADDRESSABLE_HOSTS {
            return Err(FrameError::HostWithoutAddress(end.host));
        }
    }
    let mut tcp = tcp_header(frame);
    let length = usize::from(tcp.header_len_u16()) + usize::from(frame.payload);
    let too_long = FrameError::PayloadTooLong(frame.payload);
    let ip = ipv4_header(frame, u16::try_from(length).map_err(|_| too_long)?).ok_or(too_long)?;
    let start = out.len();
    let ethernet = Ethernet2Header {
        source: frame.source.mac(),
        destination: frame.destination.mac(),
        ether_type: EtherType::IPV4,
    };
    out.extend_from_slice(&ethernet.to_bytes());
    out.extend_from_slice(&ip.to_bytes());
    let tcp_at = out.len();
    out.resize(start + ETHERNET_HEADER + ip.header_len() + length, 0);
    let (header, payload) = out[tcp_at..].split_at_mut(tcp.header_len());
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).expect("the datagram's length was checked");
    header.copy_from_slice(&tcp.to_bytes());
    Ok(())
}

/// Returns the IP header over `payload` bytes, with its checksum; `None` if the datagram is too
/// long.
fn ipv4_header(frame: &Frame<'_>, payload: u16) -> Option<Ipv4Header> {
    let (source, destination) = (frame.source.ip(), frame.destination.ip());
    let mut ip = Ipv4Header::new(payload, TIME_TO_LIVE, IpNumber::TCP, source, destination).ok()?;
    // An atomic datagram (RFC 6864) is never fragmented, so its identification has no meaning.
    ip.dont_fragment = true;
    ip.ecn = match frame.ecn {
        Ecn::NotCapable => IpEcn::ZERO,
        Ecn::Capable => IpEcn::TWO,
        Ecn::Experienced => IpEcn::THREE,
    };
    ip.header_checksum = ip.calc_header_checksum();
    Some(ip)
}

fn tcp_header(frame: &Frame<'_>) -> TcpHeader {
    let (source, destination) = (frame.source.port, frame.destination.port);
    let mut tcp = TcpHeader::new(source, destination, frame.sequence, frame.window);
    tcp.acknowledgment_number = frame.acknowledgment;
    let flags = frame.flags;
    (tcp.syn, tcp.ack, tcp.fin, tcp.rst) = (flags.syn, flags.ack, flags.fin, flags.rst);
    (tcp.psh, tcp.ece, tcp.cwr) = (flags.psh, flags.ece, flags.cwr);
    let mut elements = [const { TcpOptionElement::Noop }; 12];
    let count = lay_out(&frame.options, &mut elements);
    tcp.set_options(&elements[..count]).expect("the options chosen fit into 40 bytes");
    tcp
}

/// Lays out the options, each padded in front to words of four bytes as the simulator counts them.
/// Returns the number of elements.
fn lay_out(options: &TcpOptions<'_>, elements: &mut [TcpOptionElement; 12]) -> usize {
    use TcpOptionElement::*;
    let (mut count, mut used) = (0, 0);
    let mut push = |bytes, element| {
        elements[count] = element;
        count += 1;
        used += bytes;
        used
    };
    if let Some(size) = options.maximum_segment {
        push(4, MaximumSegmentSize(size));
    }
    match options.sack_permitted {
        true => {
            // Beside a timestamp, SACK-permitted needs no padding of its own, as in Linux.
            if options.timestamps.is_none() {
                push(1, Noop);
                push(1, Noop);
            }
            push(2, SelectiveAcknowledgementPermitted);
        }
        false if options.timestamps.is_some() => {
            push(1, Noop);
            push(1, Noop);
        }
        false => {}
    }
    if let Some((value, echo)) = options.timestamps {
        push(10, Timestamp(value, echo));
    }
    if let Some(shift) = options.window_scale {
        push(1, Noop);
        push(3, WindowScale(shift));
    }
    if !options.sack.is_empty() {
        push(1, Noop);
        let used = push(1, Noop);
        let mut blocks = options.sack.iter().copied().take((OPTION_SPACE - used - 2) / 8);
        if let Some(first) = blocks.next() {
            let others = [blocks.next(), blocks.next(), blocks.next()];
            push(0, SelectiveAcknowledgement(first, others));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the one's complement sum of RFC 1071; a valid header sums to all ones.
    fn internet_sum(bytes: &[u8]) -> u16 {
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn bytes_of(frame: &Frame<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        encode(frame, &mut out).unwrap();
        out
    }

    #[test]
    fn a_syn_is_laid_out_byte_by_byte() {
        let syn = Frame {
            source: Endpoint { host: HostId(0), port: 40_000 },
            destination: Endpoint { host: HostId(1), port: 5_001 },
            sequence: 0x0102_0304,
            flags: TcpFlags { syn: true, ..TcpFlags::default() },
            window: 64_000,
            options: TcpOptions {
                maximum_segment: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                ..TcpOptions::default()
            },
            ..Frame::default()
        };
        #[rustfmt::skip]
        let expected: [u8; 66] = [
            // Ethernet: to host 1, from host 0, IPv4.
            0x02, 0, 0, 0, 0, 1,  0x02, 0, 0, 0, 0, 0,  0x08, 0x00,
            // IPv4: 52 bytes, don't fragment, 64 hops, TCP, checksum, 10.0.0.1 to 10.0.0.2.
            0x45, 0x00, 0x00, 0x34,  0x00, 0x00, 0x40, 0x00,  0x40, 0x06, 0x26, 0xc2,  10, 0, 0, 1,  10, 0, 0, 2,
            // TCP: ports, sequence, no acknowledgment, 8 words, SYN, window, checksum, no urgent
            // data.
            0x9c, 0x40, 0x13, 0x89,  1, 2, 3, 4,  0, 0, 0, 0,  0x80, 0x02, 0xfa, 0x00,  0xad, 0x3e, 0, 0,
            // MSS 1460; two no-operations and SACK permitted; a no-operation and window scale 7.
            0x02, 0x04, 0x05, 0xb4,  0x01, 0x01, 0x04, 0x02,  0x01, 0x03, 0x03, 0x07,
        ];
        assert_eq!(bytes_of(&syn), expected);
    }

    #[test]
    fn leaves_out_sack_blocks_that_do_not_fit() {
        let sack = [(10, 20), (30, 40), (50, 60), (70, 80), (90, 100)];
        let options = TcpOptions { sack: &sack, ..TcpOptions::default() };
        let four = bytes_of(&Frame { options, ..Frame::default() });
        assert_eq!(four.len(), 54 + 2 + 2 + 4 * 8);
        let options = TcpOptions { timestamps: Some((1, 2)), ..options };
        let three = bytes_of(&Frame { options, ..Frame::default() });
        assert_eq!(three.len(), 54 + 12 + 2 + 2 + 3 * 8);
        assert_eq!(three[54 + 12..][..4], [1, 1, 5, 26]);
    }

    #[test]
    fn refuses_frames_ipv4_cannot_carry_and_writes_nothing() {
        let mut out = vec![7];
        let frame = Frame { payload: 65_500, ..Frame::default() };
        assert_eq!(encode(&frame, &mut out), Err(FrameError::PayloadTooLong(65_500)));
        let far = Endpoint { host: HostId(ADDRESSABLE_HOSTS), port: 1 };
        let frame = Frame { destination: far, ..Frame::default() };
        assert_eq!(
            encode(&frame, &mut out),
            Err(FrameError::HostWithoutAddress(HostId(ADDRESSABLE_HOSTS)))
        );
        assert_eq!(out, [7]);
    }

    #[test]
    fn addresses_of_hosts_are_distinct_and_inside_the_network() {
        let address = |host| Endpoint { host, port: 0 }.ip();
        assert_eq!(address(HostId(0)), [10, 0, 0, 1]);
        assert_eq!(address(HostId(255)), [10, 0, 1, 0]);
        assert_eq!(address(HostId(ADDRESSABLE_HOSTS - 1)), [10, 255, 255, 254]);
    }

    proptest! {
        #[test]
        fn both_checksums_of_any_frame_are_valid(
            ends in prop::array::uniform2((0..ADDRESSABLE_HOSTS, any::<u16>())),
            (sequence, acknowledgment, window) in any::<(u32, u32, u16)>(),
            flags in prop::array::uniform7(any::<bool>()),
            payload in 0..9_000u16,
            (maximum_segment, window_scale, sack_permitted) in any::<(Option<u16>, Option<u8>, bool)>(),
            timestamps in any::<Option<(u32, u32)>>(),
            sack in prop::collection::vec(any::<(u32, u32)>(), 0..6),
            ecn in prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Experienced]),
        ) {
            let [source, destination] = ends.map(|(host, port)| Endpoint { host: HostId(host), port });
            let [syn, ack, fin, rst, psh, ece, cwr] = flags;
            let options = TcpOptions {
                maximum_segment, window_scale, sack_permitted, timestamps, sack: &sack,
            };
            let flags = TcpFlags { syn, ack, fin, rst, psh, ece, cwr };
            let frame = bytes_of(&Frame {
                source, destination, sequence, acknowledgment, flags, window, options, payload, ecn,
            });
            let (ip, tcp) = frame[ETHERNET_HEADER..].split_at(20);
            prop_assert_eq!(usize::from(ip[2]) << 8 | usize::from(ip[3]), 20 + tcp.len());
            prop_assert_eq!(tcp.len(), usize::from(tcp[12] >> 4) * 4 + usize::from(payload));
            prop_assert_eq!(internet_sum(ip), 0xffff);
            let length = (tcp.len() as u16).to_be_bytes();
            let pseudo_header = [&ip[12..20], &[0, 6], &length, tcp].concat();
            prop_assert_eq!(internet_sum(&pseudo_header), 0xffff);
        }
    }
}
