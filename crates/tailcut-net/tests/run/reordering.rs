//! Reordering-robust TCP under packet spraying: the retransmissions that each method avoids.

use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::spray::Spray;
use tailcut_net::measure::records::Outcome;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::transport::tcp::reordering::{adaptive, ncr, rr_tcp};
use tailcut_net::transport::tcp::{Paws, Recovery, ReorderingSpec, TcpSpec};

use crate::run::support::{flow, limit_queues, run, scenario, tcp};

#[derive(Debug)]
struct Spent {
    needless: u64,
    recoveries: u32,
    undone: u64,
    mean_us: f64,
}

/// Runs sixteen hosts of a fat-tree that send 2 MB each to the pod after next, packet by packet
/// over any path.
fn sprayed(reordering: ReorderingSpec, limit: Limit, seed: u64) -> Spent {
    let outcome = sprayed_with(limit, seed, |spec| spec.reordering = reordering);
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
    let time: u64 = outcome.flows.iter().map(|flow| flow.fct.unwrap().0).sum();
    Spent {
        needless: outcome.counters.needless_retransmissions,
        recoveries: outcome.flows.iter().map(|flow| flow.fast_recoveries).sum(),
        undone: outcome.counters.recoveries_undone,
        mean_us: time as f64 / 16.0 * 1e-6,
    }
}

/// Runs the same hosts with TCP that `change` has changed.
fn sprayed_with(limit: Limit, seed: u64, change: impl FnOnce(&mut TcpSpec)) -> Outcome {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().unwrap();
    let flows = (0..16u32)
        .map(|id| flow(id.into(), id, (id + 8) % 16, 2_000_000, Time::from_us(5 * u64::from(id))))
        .collect();
    let mut scenario = scenario(graph, flows);
    scenario.seed = seed;
    limit_queues(&mut scenario, limit);
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    let spec = tcp(&mut scenario);
    spec.recovery = Recovery::SackPrr;
    spec.receive_window = Bytes(128_000);
    change(spec);
    run(&scenario)
}

/// Returns RR-TCP with its threshold only, or with windows that return from false recoveries.
fn rr_tcp(undo: bool) -> ReorderingSpec {
    ReorderingSpec::RrTcp(rr_tcp::RrTcpSpec { undo, ..rr_tcp::RrTcpSpec::default() })
}

fn methods() -> [(&'static str, ReorderingSpec); 4] {
    let ncr = |variant| ReorderingSpec::Ncr(ncr::NcrSpec { variant });
    [
        ("adaptive", ReorderingSpec::Adaptive(adaptive::AdaptiveSpec::default())),
        ("rr-tcp", rr_tcp(false)),
        ("careful ncr", ncr(ncr::NcrVariant::Careful)),
        ("aggressive ncr", ncr(ncr::NcrVariant::Aggressive)),
    ]
}

/// Uses the sum of eight seeds: RR-TCP avoids one in seven, which single seeds do not all show.
#[test]
fn every_method_spares_needless_retransmissions_and_recoveries() {
    let spent = |method: &ReorderingSpec| {
        let all = (1..=8).map(|seed| sprayed(method.clone(), Limit::Unlimited, seed));
        all.fold((0, 0), |sum, one| (sum.0 + one.needless, sum.1 + one.recoveries))
    };
    let none = spent(&ReorderingSpec::None {});
    assert!(none.0 > 1_000 && none.1 > 1_000, "{none:?}");
    for (name, method) in methods() {
        let (needless, recoveries) = spent(&method);
        assert!(needless < none.0, "{name}: {needless} segments against {none:?}");
        assert!(recoveries < none.1, "{name}: {recoveries} recoveries against {none:?}");
    }
}

#[test]
fn undo_and_a_growing_threshold_make_flows_faster() {
    let none = sprayed(ReorderingSpec::None {}, Limit::Unlimited, 1);
    let [(_, adaptive), ..] = methods();
    let adaptive = sprayed(adaptive, Limit::Unlimited, 1);
    assert!(adaptive.undone > 0 && adaptive.mean_us < 0.9 * none.mean_us, "{adaptive:?}");
}

/// There are more needless retransmissions, because more packets in flight are overtaken.
#[test]
fn windows_that_return_from_false_recoveries_make_flows_faster() {
    let [alone, restored] = [false, true].map(|undo| sprayed(rr_tcp(undo), Limit::Unlimited, 1));
    assert!(restored.undone > 100 && alone.undone == 0, "{restored:?}");
    assert!(restored.mean_us < 0.95 * alone.mean_us, "{restored:?} against {alone:?}");
}

/// With losses among the reordering, every flow still finishes (`sprayed` asserts it).
#[test]
fn repairs_losses_under_reordering() {
    let methods = methods().into_iter().map(|(_, method)| method);
    for method in methods.chain([rr_tcp(true)]) {
        sprayed(method, Limit::AtMost(Amount::Packets(6)), 1);
    }
}

/// As kernels do: overtaken ACKs and segments count as old (RFC 7323 section 5).
#[test]
fn sprayed_flows_count_what_paws_discards_and_others_do_not_speak_of_it() {
    let discarded = [Paws::Off, Paws::Rfc7323, Paws::Linux].map(|paws| {
        let outcome = sprayed_with(Limit::AtMost(Amount::Packets(100)), 1, |spec| {
            spec.timestamps = true;
            spec.timestamp_tick = Time::from_us(1);
            spec.paws = paws;
        });
        outcome.counters.further("paws_discarded")
    });
    let [off, rfc, linux] = discarded;
    assert_eq!(off, None);
    assert!(0 < linux.unwrap() && linux < rfc, "{discarded:?}");
}
