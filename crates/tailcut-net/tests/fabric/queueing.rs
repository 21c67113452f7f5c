//! Open-loop Poisson packets through one port wait as long as the Pollaczek-Khinchine formula says:
//! E[W] = lambda E[S^2] / (2 (1 - rho)).

use tailcut_engine::{RandomStream, Rate, Time};
use tailcut_net::amount::Limit;
use tailcut_net::port::{Port, PortOutcome};

use crate::fabric::ports::packet;

/// Packets of several sizes, each with its probability.
type Mixture = &'static [(u16, f64)];

/// Measurements of each batch of packets: mean wait in seconds, and the fraction without wait.
struct Batches {
    waits: Vec<f64>,
    idle: Vec<f64>,
}

const RATE: Rate = Rate(1_000_000_000);
const BATCHES: usize = 40;

fn seconds(bytes: u16) -> f64 {
    f64::from(bytes) * 8.0 / RATE.0 as f64
}

fn moment(mixture: Mixture, power: i32) -> f64 {
    mixture.iter().map(|&(bytes, p)| p * seconds(bytes).powi(power)).sum()
}

/// Sends batches of Poisson packets through one port, after as many again to forget the empty
/// start.
fn measure(mixture: Mixture, utilisation: f64, per_batch: usize) -> Batches {
    let mut port = Port::new(RATE, Time::from_us(2), Limit::Unlimited);
    let mut gaps = RandomStream::new(1, 0, "gaps");
    let mut sizes = RandomStream::new(1, 0, "sizes");
    let mean_gap_ps = moment(mixture, 1) / utilisation * 1e12;
    let mut batches = Batches { waits: vec![], idle: vec![] };
    let (mut now, mut due) = (0.0, None::<Time>);
    for batch in 0..=BATCHES {
        let (mut wait, mut idle) = (0.0, 0u32);
        for _ in 0..per_batch {
            now += gaps.exponential(mean_gap_ps);
            let at = Time(now as u64);
            while due.is_some_and(|time| time <= at) {
                due = port.take().1;
            }
            let mut u = sizes.unit();
            let drawn = mixture.iter().find(|(_, p)| {
                u -= p;
                u < 0.0
            });
            let bytes = drawn.unwrap_or(&mixture[0]).0;
            if let PortOutcome::First(time) = port.offer(at, packet(0, bytes)) {
                due = Some(time);
            }
            let begins = port.busy_until() - RATE.transmission_time(u64::from(bytes));
            wait += begins.since(at).as_secs_f64();
            idle += u32::from(begins == at);
        }
        if batch > 0 {
            batches.waits.push(wait / per_batch as f64);
            batches.idle.push(f64::from(idle) / per_batch as f64);
        }
    }
    batches
}

/// Returns the mean of the batches and the half width of its 99.9 % confidence interval (Student's
/// t, 39 degrees of freedom).
fn interval(batches: &[f64]) -> (f64, f64) {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 3.558 * (variance / n).sqrt())
}

fn assert_pollaczek_khintchine(mixture: Mixture, utilisations: &[f64]) {
    for &rho in utilisations {
        let batches = measure(mixture, rho, 20_000);
        let lambda = rho / moment(mixture, 1);
        let expected = lambda * moment(mixture, 2) / (2.0 * (1.0 - rho));
        let (mean, half_width) = interval(&batches.waits);
        assert!(
            (mean - expected).abs() < half_width,
            "rho {rho}: wait {mean:.4e} +- {half_width:.1e} s, expected {expected:.4e} s"
        );
        assert!(
            half_width < 0.08 * expected,
            "rho {rho}: the interval of {half_width:.1e} s says little"
        );
        // Poisson arrivals see time averages: a fraction 1 - rho of them finds the port idle.
        let (idle, half_width) = interval(&batches.idle);
        assert!(
            (idle - (1.0 - rho)).abs() < half_width,
            "rho {rho}: {idle} +- {half_width} found it idle"
        );
    }
}

#[test]
fn packets_of_one_size_wait_as_in_m_d_1() {
    assert_pollaczek_khintchine(&[(1_502, 1.0)], &[0.2, 0.5, 0.8, 0.9]);
}

#[test]
fn data_and_acknowledgements_wait_as_in_m_g_1() {
    assert_pollaczek_khintchine(&[(1_502, 0.5), (42, 0.5)], &[0.2, 0.5, 0.8]);
}

#[test]
fn a_broad_mixture_waits_as_in_m_g_1() {
    assert_pollaczek_khintchine(
        &[(42, 0.6), (576, 0.2), (1_502, 0.15), (9_038, 0.05)],
        &[0.3, 0.6, 0.8],
    );
}
