//! Reads capture files with tshark, an independent reader.

use crate::common::tshark::tshark;
use tailcut_engine::{Rate, Time};
use tailcut_net::capture::frame::{Ecn, Endpoint, Frame, TcpFlags, TcpOptions, encode};
use tailcut_net::capture::pcapng::{Bounds, Direction, Interface, Writer};
use tailcut_net::topology::HostId;

const CLIENT: Endpoint = Endpoint { host: HostId(3), port: 49_152 };
const SERVER: Endpoint = Endpoint { host: HostId(70_000), port: 50_000 };
const NONE: TcpFlags =
    TcpFlags { syn: false, ack: false, fin: false, rst: false, psh: false, ece: false, cwr: false };
const SYN: TcpFlags = TcpFlags { syn: true, ..NONE };
const ACK: TcpFlags = TcpFlags { ack: true, ..NONE };

/// Returns a capture file of `frames` at a host, one microsecond apart, each a nanosecond late.
fn capture(frames: &[Frame<'_>], bounds: Bounds) -> Vec<u8> {
    let interface =
        Interface { name: "h3".into(), description: "host 3".into(), speed: Rate(1_000_000_000) };
    let mut writer = Writer::new(Vec::new(), "tailcut test", &[interface], bounds).unwrap();
    let mut bytes = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        bytes.clear();
        encode(frame, &mut bytes).unwrap();
        let outbound = frame.source == CLIENT;
        let direction = if outbound { Direction::Outbound } else { Direction::Inbound };
        let time = Time::from_ns(5_000_000_001 + 1_000 * index as u64);
        writer.packet(0, time, Some(direction), &bytes).unwrap();
    }
    writer.finish().unwrap()
}

/// Returns the values of `fields`, in their order, for each frame of a capture file.
fn values(capture: &[u8], fields: &[&'static str]) -> Vec<Vec<String>> {
    let rows = tshark(capture, fields).into_iter();
    rows.map(|row| fields.iter().map(|field| row[field].clone()).collect()).collect()
}

fn handshake() -> [Frame<'static>; 3] {
    let syn = Frame {
        source: CLIENT,
        destination: SERVER,
        flags: SYN,
        window: 64_000,
        options: TcpOptions {
            maximum_segment: Some(1460),
            window_scale: Some(3),
            sack_permitted: true,
            ..TcpOptions::default()
        },
        ..Frame::default()
    };
    let syn_ack = Frame {
        source: SERVER,
        destination: CLIENT,
        flags: TcpFlags { ack: true, ..SYN },
        acknowledgment: 1,
        ..syn
    };
    let ack = Frame {
        flags: ACK,
        sequence: 1,
        acknowledgment: 1,
        window: 8_000,
        options: TcpOptions::default(),
        ..syn
    };
    [syn, syn_ack, ack]
}

#[test]
fn a_handshake_reads_as_it_was_written() {
    let rows = values(
        &capture(&handshake(), Bounds::NONE),
        &[
            "frame.time_epoch",
            "frame.interface_name",
            "eth.src",
            "ip.src",
            "ip.dst",
            "tcp.srcport",
            "tcp.dstport",
            "tcp.flags.str",
            "tcp.window_size",
            "tcp.options.mss_val",
            "tcp.options.wscale.shift",
            "tcp.option_kind",
            "tcp.analysis.initial_rtt",
            "ip.checksum.status",
            "tcp.checksum.status",
            "_ws.malformed",
        ],
    );
    #[rustfmt::skip]
    let expected = [
        ["86405.000000001", "h3", "02:00:00:00:00:03", "10.0.0.4", "10.1.17.113", "49152", "50000", "··········S·", "64000",
         "1460", "3", "2,1,1,4,1,3", "", "1", "1", ""],
        ["86405.000001001", "h3", "02:00:00:01:11:70", "10.1.17.113", "10.0.0.4", "50000", "49152", "·······A··S·", "64000",
         "1460", "3", "2,1,1,4,1,3", "", "1", "1", ""],
        ["86405.000002001", "h3", "02:00:00:00:00:03", "10.0.0.4", "10.1.17.113", "49152", "50000", "·······A····", "64000",
         "", "", "", "0.000002000", "1", "1", ""],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn data_sack_timestamps_and_ecn_read_as_they_were_written() {
    let data = Frame {
        source: CLIENT,
        destination: SERVER,
        sequence: u32::MAX - 100,
        acknowledgment: 77,
        flags: TcpFlags { psh: true, cwr: true, ..ACK },
        payload: 1459,
        ecn: Ecn::Experienced,
        options: TcpOptions { timestamps: Some((123_456, 7)), ..TcpOptions::default() },
        ..Frame::default()
    };
    let sack = [(3_000, 4_460), (10_000, 20_000), (30_000, 40_000)];
    let ack = Frame {
        source: SERVER,
        destination: CLIENT,
        acknowledgment: 1_358,
        flags: TcpFlags { ece: true, ..ACK },
        options: TcpOptions { timestamps: Some((8, 123_456)), sack: &sack, ..data.options },
        ..Frame::default()
    };
    let rows = values(
        &capture(&[data, ack], Bounds::NONE),
        &[
            "tcp.seq_raw",
            "tcp.ack_raw",
            "tcp.len",
            "tcp.flags.str",
            "ip.dsfield.ecn",
            "tcp.options.timestamp.tsval",
            "tcp.options.timestamp.tsecr",
            "tcp.options.sack_le",
            "tcp.options.sack_re",
            "frame.packet_flags_direction",
            "ip.checksum.status",
            "tcp.checksum.status",
            "_ws.malformed",
        ],
    );
    #[rustfmt::skip]
    let expected = [
        ["4294967195", "77", "1459", "····C··AP···", "3", "123456", "7", "", "", "0x00000002", "1", "1", ""],
        ["0", "1358", "0", "·····E·A····", "0", "8", "123456", "3000,10000,30000", "4460,20000,40000", "0x00000001", "1", "1", ""],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_snapshot_length_cuts_frames_short_and_keeps_their_length() {
    let data = Frame { source: CLIENT, payload: 1460, flags: ACK, ..Frame::default() };
    let cut = capture(&[data], Bounds { snapshot: 96, ..Bounds::NONE });
    assert_eq!(values(&cut, &["frame.cap_len", "frame.len", "tcp.len"]), [["96", "1514", "1460"]]);
}

#[test]
fn a_bound_on_packets_keeps_the_first_frames_whole() {
    let data = Frame { source: CLIENT, payload: 1460, flags: ACK, ..Frame::default() };
    let bounded = capture(&[data; 5], Bounds { packets: 2, ..Bounds::NONE });
    let rows = values(&bounded, &["frame.number", "tcp.checksum.status"]);
    assert_eq!(rows, [["1", "1"], ["2", "1"]]);
}

#[test]
fn a_bound_on_bytes_is_never_exceeded_and_leaves_no_gap() {
    let long = Frame { source: CLIENT, payload: 1460, flags: ACK, ..Frame::default() };
    let short = Frame { payload: 0, ..long };
    let statistics = 12 + 12 + 4 * 12 + 4;
    for bytes in [600, 2_000, 3_000, 4_000] {
        let bounded = capture(&[short, long, short, long, short], Bounds { bytes, ..Bounds::NONE });
        assert!(bounded.len() as u64 - statistics <= bytes);
        let rows = values(&bounded, &["tcp.len"]);
        let expected = [["0"], ["1460"], ["0"], ["1460"], ["0"]];
        assert_eq!(rows, expected[..rows.len()]);
    }
}

#[test]
fn the_statistics_of_the_interface_say_how_many_frames_were_left_out() {
    let data = Frame { source: CLIENT, flags: ACK, ..Frame::default() };
    let bytes = capture(&[data; 5], Bounds { packets: 2, ..Bounds::NONE });
    // The last block ends with frames seen, frames dropped, end of options and its length.
    let drops = &bytes[bytes.len() - 16..bytes.len() - 8];
    let seen = &bytes[bytes.len() - 28..bytes.len() - 20];
    assert_eq!(u64::from_le_bytes(seen.try_into().unwrap()), 5);
    assert_eq!(u64::from_le_bytes(drops.try_into().unwrap()), 3);
}
