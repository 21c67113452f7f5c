//! Tests of how many flows a failure moves, in closed form, and of shares by rate.

use tailcut_engine::Rate;

use super::*;
use crate::balance::blind;
use crate::packet::{ConnectionId, Flags, NO_OPTIONS, SeqField};
use crate::topology::HostId;
use crate::topology::parallel_paths::ParallelPaths;

const FLOWS: u16 = 20_000;

/// A switch with `paths` equal-cost ports towards host 1, and its balancer.
struct Edge {
    graph: Graph,
    whole: Routes,
    left: Routes,
    hashing: Hashing,
}

impl Edge {
    fn new(spec: Ecmp, paths: u32) -> Edge {
        let shape = ParallelPaths { paths, ..ParallelPaths::default() };
        Edge::of(spec, shape.build().expect("the parameters are valid"))
    }

    fn of(spec: Ecmp, graph: Graph) -> Edge {
        let whole = Routes::new(&graph).expect("it is connected");
        let hashing = spec.state(Layout { graph: &graph, routes: &whole, seed: 1 });
        Edge { graph, left: whole.clone(), whole, hashing }
    }

    fn ports(&self) -> Vec<PortId> {
        self.whole.candidates(SwitchId(0), self.far()).to_vec()
    }

    fn far(&self) -> HostId {
        HostId(self.graph.hosts - 1)
    }

    /// Removes ports, or restores all, and updates the balancer.
    fn without(&mut self, dead: &[PortId]) {
        let alive = |link: usize| dead.iter().all(|port| port.link() != link);
        self.left = self.whole.avoiding(&self.graph, alive).expect("it fits");
        self.hashing.reroute(&self.graph, &self.left);
    }

    /// Returns the port that each flow takes at a time in microseconds.
    fn ways(&mut self, us: u64) -> Vec<PortId> {
        let ports = self.left.candidates(SwitchId(0), self.far()).to_vec();
        let far = self.far();
        let of = |number| {
            let key = FlowKey::new(HostId(0), far, number, 5_000);
            let connection = ConnectionId(u32::from(number));
            let (options, flags) = (NO_OPTIONS, Flags::DATA);
            let mut packet = Packet {
                key,
                connection,
                seq: SeqField::new(0),
                options,
                wire_bytes: 1_500,
                flags,
            };
            let fork = blind(Time::from_us(us), SwitchId(0), ports.len() as u32);
            let foretold = self.hashing.predict(SwitchId(0), &ports, key);
            let place = match ports.len() {
                1 => 0,
                _ => self.hashing.pick(PickContext { ports: &ports, ..fork }, &mut packet),
            };
            assert!(us > 0 || foretold == Some(place), "what is foretold happens");
            ports[place as usize]
        };
        (0..FLOWS).map(of).collect()
    }
}

fn spread(spread: Spread) -> Ecmp {
    Ecmp { spread, ..Ecmp::default() }
}

/// Returns the share of the flows that did not use the port at `place` of `paths` and take another
/// port without it.
fn moved(spec: Ecmp, paths: u32, place: usize) -> f64 {
    let mut edge = Edge::new(spec, paths);
    let dead = edge.ports()[place];
    let before = edge.ways(0);
    edge.without(&[dead]);
    let after = edge.ways(0);
    assert!(after.iter().all(|port| *port != dead));
    let others = before.iter().zip(&after).filter(|(port, _)| **port != dead);
    let (all, moved) =
        others.fold((0, 0), |(all, moved), (a, b)| (all + 1, moved + u32::from(a != b)));
    f64::from(moved) / f64::from(all)
}

/// Asserts a share of some 15,000 flows within five standard deviations.
fn assert_share(found: f64, expected: f64, what: &str) {
    let deviation = (expected * (1.0 - expected) / 14_000.0).sqrt();
    assert!((found - expected).abs() <= 5.0 * deviation, "{what}: {found} for {expected}");
}

#[test]
fn every_spread_gives_each_port_an_equal_share() {
    for kind in [Spread::Modulo, Spread::Threshold, Spread::Resilient] {
        for paths in [2, 4, 8] {
            let mut edge = Edge::new(spread(kind), paths);
            let ways = edge.ways(0);
            for port in edge.ports() {
                let count = ways.iter().filter(|way| **way == port).count();
                assert_share(count as f64 / ways.len() as f64, 1.0 / f64::from(paths), "a port");
            }
        }
    }
}

/// Without the port at place p of n, the region of the port at place i before it begins i/(n(n -
/// 1)) of the range later. The region of a port behind it ends (n - 1 - i)/(n(n - 1)) earlier (RFC
/// 2992, section 2).
#[test]
fn hash_threshold_moves_the_flows_of_shifted_regions() {
    for paths in 2..=8_u32 {
        for place in 0..paths {
            let n = f64::from(paths);
            let before = (0..place).map(f64::from);
            let behind = (place + 1..paths).map(|i| n - 1.0 - f64::from(i));
            let expected = before.chain(behind).sum::<f64>() / (n - 1.0) / (n - 1.0);
            let found = moved(spread(Spread::Threshold), paths, place as usize);
            assert_share(found, expected, &format!("port {place} of {paths}"));
        }
    }
    assert_share(moved(spread(Spread::Threshold), 4, 3), 1.0 / 3.0, "the last of four");
    assert_share(moved(spread(Spread::Threshold), 4, 1), 1.0 / 9.0, "the second of four");
}

#[test]
fn modulo_moves_all_flows_but_one_in_the_number_of_remaining_ports() {
    for (paths, place) in [(3, 0), (4, 0), (4, 3), (8, 5)] {
        let n = f64::from(paths);
        let found = moved(spread(Spread::Modulo), paths, place);
        assert_share(found, (n - 2.0) / (n - 1.0), &format!("port {place} of {paths}"));
    }
}

#[test]
fn resilient_hashing_moves_only_flows_of_the_failed_port_and_spreads_them() {
    for (paths, place) in [(2, 0), (4, 0), (4, 2), (8, 7)] {
        let mut edge = Edge::new(spread(Spread::Resilient), paths);
        let dead = edge.ports()[place];
        let before = edge.ways(0);
        edge.without(&[dead]);
        let after = edge.ways(0);
        let on_others = before.iter().zip(&after).filter(|(port, _)| **port != dead);
        assert!(on_others.clone().all(|(port, now)| port == now));
        let lent = before.iter().zip(&after).filter(|(port, _)| **port == dead);
        let lent: Vec<_> = lent.map(|(_, now)| *now).collect();
        for port in edge.ports().into_iter().filter(|port| *port != dead) {
            let share = lent.iter().filter(|now| **now == port).count() as f64 / lent.len() as f64;
            let expected = 1.0 / f64::from(paths - 1);
            // 128 buckets do not divide evenly.
            assert!((share - expected).abs() < 0.06, "{share} for {expected}");
        }
    }
}

#[test]
fn a_lent_bucket_returns_after_the_repair_when_it_has_been_idle_for_the_timer() {
    let idle_timer = Some(Time::from_us(500));
    for paths in [2, 4] {
        let mut edge = Edge::new(Ecmp { idle_timer, ..spread(Spread::Resilient) }, paths);
        let dead = edge.ports()[1];
        let before = edge.ways(10);
        edge.without(&[dead]);
        let meanwhile = edge.ways(20);
        edge.without(&[]);
        assert_eq!(edge.ways(30), meanwhile, "every bucket has just been used");
        assert_eq!(edge.ways(529), meanwhile, "and again in time");
        assert_eq!(edge.ways(1_029), before);
    }
}

#[test]
fn buckets_return_at_once_with_a_zero_timer_and_stay_by_default() {
    for (idle_timer, stays) in [(Some(Time::ZERO), false), (None, true)] {
        let mut edge = Edge::new(Ecmp { idle_timer, ..spread(Spread::Resilient) }, 4);
        let before = edge.ways(10);
        edge.without(&edge.ports()[..1]);
        let meanwhile = edge.ways(20);
        edge.without(&[]);
        let after = edge.ways(1_000_000);
        assert_eq!(after == meanwhile, stays);
        assert_eq!(after == before, !stays);
    }
}

#[test]
fn shares_by_rate_follow_the_links() {
    let rates = [10, 10, 40, 100].map(|gbps| Rate(gbps * 1_000_000_000));
    let shape = ParallelPaths { paths: 4, path_rates: rates.to_vec(), ..ParallelPaths::default() };
    let graph = shape.build().expect("the parameters are valid");
    for kind in [Spread::Modulo, Spread::Threshold, Spread::Resilient] {
        // With 128 buckets a port's share is a multiple of 1/128.
        let buckets = (kind == Spread::Resilient).then_some(1_600);
        let spec = Ecmp { weights: Weights::Rate, buckets, ..spread(kind) };
        let mut edge = Edge::of(spec, graph.clone());
        let (ways, ports) = (edge.ways(0), edge.ports());
        for (port, rate) in ports.iter().zip(rates) {
            assert_eq!(edge.graph.links[port.link()].rate, rate);
            let count = ways.iter().filter(|way| *way == port).count();
            assert_share(count as f64 / ways.len() as f64, rate.0 as f64 / 160e9, "a port");
        }
    }
}

#[test]
fn links_of_one_rate_have_equal_shares() {
    let graph = ParallelPaths::default().build().expect("the parameters are valid");
    assert!(Shares::by_rate(&graph).are_equal());
}

#[test]
fn salts_differ_by_seed_or_stay_fixed_and_without_any_all_switches_choose_alike() {
    let choices = |salt, seed, switch| {
        let salts = Salts::of_run(salt, seed);
        (0..64).map(|key| hash::pick(key, salts.of(SwitchId(switch)), 4)).collect::<Vec<_>>()
    };
    assert_ne!(choices(Salting::Seed, 1, 0), choices(Salting::Seed, 2, 0));
    assert_ne!(choices(Salting::Seed, 1, 0), choices(Salting::Seed, 1, 1));
    assert_eq!(choices(Salting::Fixed, 1, 0), choices(Salting::Fixed, 2, 0));
    assert_ne!(choices(Salting::Fixed, 1, 0), choices(Salting::Fixed, 1, 1));
    assert_eq!(choices(Salting::None, 1, 0), choices(Salting::None, 1, 1));
}

#[test]
fn refuses_bucket_parameters_without_resilient_hashing() {
    let buckets = Ecmp { buckets: Some(64), ..Ecmp::default() };
    assert_eq!(buckets.check().expect_err("no buckets").field, "buckets");
    let idle = Ecmp { idle_timer: Some(Time::ZERO), ..spread(Spread::Modulo) };
    assert_eq!(idle.check().expect_err("no buckets").code, "ecmp-resilient");
    let none = Ecmp { buckets: Some(0), ..spread(Spread::Resilient) };
    assert_eq!(none.check().expect_err("no bucket").code, "ecmp-buckets");
    assert_eq!(Ecmp { buckets: Some(64), ..spread(Spread::Resilient) }.check(), Ok(()));
}
