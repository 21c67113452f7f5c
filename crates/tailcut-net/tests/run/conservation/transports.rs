//! Random transports.

use proptest::prelude::*;
use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::Amount;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::entropy::EntropySpec;
use tailcut_net::transport::entropy::bitmap::Bitmap;
use tailcut_net::transport::entropy::mixed::Mixed;
use tailcut_net::transport::entropy::oblivious::Oblivious;
use tailcut_net::transport::entropy::plb::{Plb, PlbRounds};
use tailcut_net::transport::entropy::random::Random;
use tailcut_net::transport::entropy::reps::{FrozenOrder, Reps};
use tailcut_net::transport::mixed::{Lot, MixedTransport, TransportPart};
use tailcut_net::transport::mmptcp::{MmptcpSpec, ScatterThreshold, SwitchTrigger};
use tailcut_net::transport::mptcp::MptcpSpec;
use tailcut_net::transport::ndp::NdpSpec;
use tailcut_net::transport::pfabric::PfabricSpec;
use tailcut_net::transport::tcp::congestion::{bbr::BbrSpec, cubic::CubicSpec, dctcp::DctcpSpec};
use tailcut_net::transport::tcp::{Close, CongestionSpec, Recovery, ReorderingSpec, TcpSpec};
use tailcut_net::transport::uet::{UetControl, UetSpec};

fn windows() -> impl Strategy<Value = Bytes> {
    (1..40u64).prop_map(|segments| Bytes(segments * 1_460))
}

fn mptcps() -> impl Strategy<Value = TransportSpec> {
    (1..9u32, windows(), tcps()).prop_map(|(subflows, receive_window, tcp)| {
        let tcp = TcpSpec { entropy: None, ..tcp };
        TransportSpec::Mptcp(MptcpSpec { subflows, receive_window, tcp })
    })
}

fn mmptcps() -> impl Strategy<Value = TransportSpec> {
    let switch = prop_oneof![
        Just(SwitchTrigger::Congestion {}),
        (0..200_000u64).prop_map(|bytes| SwitchTrigger::Volume { bytes: Bytes(bytes) }),
    ];
    (2..9u32, windows(), tcps(), switch, any::<bool>()).prop_map(
        |(subflows, receive_window, tcp, switch, robust)| {
            let dupack_threshold =
                if robust { ScatterThreshold::Topology } else { ScatterThreshold::Tcp };
            TransportSpec::Mmptcp(MmptcpSpec {
                subflows,
                switch,
                dupack_threshold,
                receive_window,
                tcp: TcpSpec { entropy: None, ..tcp },
            })
        },
    )
}

pub fn transports() -> impl Strategy<Value = TransportSpec> {
    let pfabric = (1..20u32, 20..400u64, 1..4u32).prop_map(|(initial_window, rto, probe_after)| {
        let max_window = initial_window + 5;
        let rto = Time::from_us(rto);
        let spec =
            PfabricSpec { initial_window, max_window, rto, probe_after, ..Default::default() };
        TransportSpec::Pfabric(spec)
    });
    let ndp = (1..40u32, 20..9_000u64).prop_map(|(initial_window, rto)| {
        let rto = Time::from_us(rto);
        TransportSpec::Ndp(NdpSpec { initial_window, rto: Some(rto), ..NdpSpec::default() })
    });
    let uet = (0..3usize, 20..2_000u64, 1..40_000u64).prop_map(|(control, rto, threshold)| {
        TransportSpec::Uet(UetSpec {
            control: [UetControl::Nscc, UetControl::Rccc, UetControl::Both][control],
            rto: Some(Time::from_us(rto)),
            ack_threshold: Bytes(threshold),
            ..UetSpec::default()
        })
    });
    prop_oneof![
        3 => tcps().prop_map(TransportSpec::Tcp),
        1 => pfabric,
        1 => ndp,
        1 => uet,
        1 => mptcps(),
        1 => mmptcps(),
        1 => (tcps(), mptcps(), mmptcps()).prop_map(|(tcp, mptcp, mmptcp)| {
            let part = |transport| TransportPart { transport, weight: 1, above: Bytes(0), up_to: None };
            let parts = [TransportSpec::Tcp(tcp), mptcp, mmptcp].map(part).to_vec();
            TransportSpec::Mixed(MixedTransport { parts, by: Lot::Flows })
        }),
        1 => (tcps(), tcps()).prop_map(|(short, long)| {
            let small = Bytes(5_000);
            let parts = [(short, Bytes(0), Some(small)), (long, small, None)];
            let part = |(tcp, above, up_to)| TransportPart {
                transport: TransportSpec::Tcp(tcp),
                weight: 1,
                above,
                up_to,
            };
            TransportSpec::Mixed(MixedTransport { parts: parts.map(part).to_vec(), by: Lot::Flows })
        }),
    ]
}

fn tcps() -> impl Strategy<Value = TcpSpec> {
    let congestion = prop_oneof![
        2 => Just(CongestionSpec::default()),
        1 => Just(CongestionSpec::Cubic(CubicSpec::default())),
        2 => Just(CongestionSpec::Dctcp(DctcpSpec::default())),
        1 => Just(CongestionSpec::Bbr(BbrSpec::default())),
    ];
    let kinds = (any::<bool>(), any::<bool>(), 1..3u32, any::<bool>(), 1..20u32, 1..4u64);
    let kinds = (kinds, congestion, any::<bool>(), reordering(), entropies());
    kinds.prop_map(
        |(
            (sack, fin, ack_every, timestamps, window, rto_ms),
            congestion,
            ecn,
            reordering,
            entropy,
        )| {
            let sack = sack || matches!(congestion, CongestionSpec::Bbr(_));
            TcpSpec {
                reordering: if sack { reordering } else { ReorderingSpec::None {} },
                congestion,
                ecn,
                recovery: if sack { Recovery::SackPrr } else { Recovery::Newreno },
                close: if fin { Close::Fin } else { Close::None },
                ack_every,
                timestamps,
                initial_window: Amount::Packets(window),
                receive_window: Bytes(1 << 20),
                min_rto: Time::from_ms(rto_ms),
                delayed_ack_timeout: Time::from_ms(1),
                entropy,
                ..TcpSpec::default()
            }
        },
    )
}

/// Returns policies with few values and short rounds and freezes, or none.
fn entropies() -> impl Strategy<Value = Option<EntropySpec>> {
    let kinds = (0..12u8, 0..8u32, 1..2_000u64, any::<bool>());
    kinds.prop_map(|(kind, bits, freeze, other)| {
        let values = 1 << bits;
        let policy = match kind {
            0 => EntropySpec::Random(Random { values }),
            1 => EntropySpec::Oblivious(Oblivious { values }),
            2 => EntropySpec::Bitmap(Bitmap { values, ..Bitmap::default() }),
            3 => EntropySpec::Mixed(Mixed { values, ..Mixed::default() }),
            4 => {
                let frozen = if other { FrozenOrder::InTurn } else { FrozenOrder::FreshFirst };
                let freeze = Time::from_us(freeze);
                EntropySpec::Reps(Reps { values, freeze, frozen, ..Reps::default() })
            }
            5 => {
                let (length, timeout_gap) = (Some(Time::from_us(freeze)), None);
                let clock = PlbRounds::Clock { length, timeout_gap };
                let rounds = if other { clock } else { PlbRounds::Window {} };
                EntropySpec::Plb(Plb { values, rounds, rehash_rounds: bits, ..Plb::default() })
            }
            _ => return None,
        };
        Some(policy)
    })
}

fn reordering() -> impl Strategy<Value = ReorderingSpec> {
    prop::sample::select(vec![
        ReorderingSpec::None {},
        ReorderingSpec::Adaptive(Default::default()),
        ReorderingSpec::RrTcp(Default::default()),
        ReorderingSpec::Ncr(Default::default()),
        ReorderingSpec::Rack(Default::default()),
    ])
}
