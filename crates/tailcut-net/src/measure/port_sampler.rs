//! Samples of every port at a bounded number of instants, evenly spaced over the run.
//!
//! The end of a run is not known in advance: flows may finish long before the horizon. So the
//! interval first follows from the arrivals. Whenever the maximum number of instants is kept, every
//! second one is dropped and the interval doubles. All instants of a run are multiples of its
//! interval, and intervals of runs with equal arrivals differ by powers of two. Each instant of the
//! coarser run is therefore an instant of the finer one, so that schemes are compared at the same
//! times.

use tailcut_engine::Time;

use crate::fabric::Fabric;
use crate::measure::records::PortSamples;
use crate::topology::PortId;

/// Samples all ports.
pub struct PortSampler {
    most: usize,
    interval: Time,
    ports: usize,
    /// Here, busy times and drops count from the beginning of the run.
    taken: PortSamples,
}

impl PortSampler {
    /// Creates a sampler of at most `most` instants for a run whose arrivals last `arrivals`. A
    /// quarter of the instants is reserved for the time after the arrivals.
    pub fn new(most: u32, arrivals: Time, ports: u32) -> PortSampler {
        let (most, ports) = (most as usize, ports as usize);
        let steps = (most as u64 * 3 / 4).max(1);
        let cells = most * ports;
        let taken = PortSamples {
            times: Vec::with_capacity(most),
            packets: Vec::with_capacity(cells),
            bytes: Vec::with_capacity(cells),
            busy_ns: Vec::with_capacity(cells),
            drops: Vec::with_capacity(cells),
        };
        let interval = Time::from_ns(arrivals.as_ns().div_ceil(steps).max(1));
        PortSampler { most, interval, ports, taken }
    }

    /// Returns the time of the first sample.
    pub fn first(&self) -> Time {
        self.interval
    }

    /// Takes a sample and returns the time of the next one.
    pub(crate) fn take(&mut self, now: Time, fabric: &mut Fabric) -> Time {
        if self.taken.times.len() == self.most {
            self.thin_out();
        }
        // After thinning out, `now` may not be a multiple of the doubled interval.
        if now.0.is_multiple_of(self.interval.0) {
            self.taken.times.push(now);
            for port in (0..self.ports).map(PortId::at) {
                let (packets, bytes) = fabric.backlog(now, port);
                self.taken.packets.push(packets);
                self.taken.bytes.push(u32::try_from(bytes).unwrap_or(u32::MAX));
                self.taken.busy_ns.push(fabric.busy_time(now, port).as_ns());
                self.taken
                    .drops
                    .push(u32::try_from(fabric.counters(port).drops).unwrap_or(u32::MAX));
            }
        }
        Time((now.0 / self.interval.0 + 1) * self.interval.0)
    }

    /// Keeps every second instant and doubles the interval.
    fn thin_out(&mut self) {
        self.interval = Time(2 * self.interval.0);
        let kept = self.taken.times.len() / 2;
        every_second(&mut self.taken.times, 1, kept);
        every_second(&mut self.taken.packets, self.ports, kept);
        every_second(&mut self.taken.bytes, self.ports, kept);
        every_second(&mut self.taken.busy_ns, self.ports, kept);
        every_second(&mut self.taken.drops, self.ports, kept);
    }

    /// Returns the samples, with busy times and drops since the previous sample.
    pub fn into_samples(self) -> PortSamples {
        let mut samples = self.taken;
        for at in (self.ports..samples.drops.len()).rev() {
            let before = at - self.ports;
            samples.busy_ns[at] = samples.busy_ns[at].saturating_sub(samples.busy_ns[before]);
            samples.drops[at] -= samples.drops[before];
        }
        samples
    }
}

/// Keeps the second of every two rows of `width` values: `kept` rows in all.
fn every_second<T: Copy>(values: &mut Vec<T>, width: usize, kept: usize) {
    for row in 0..kept {
        let from = (2 * row + 1) * width;
        values.copy_within(from..from + width, row * width);
    }
    values.truncate(kept * width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::FabricSpec;
    use crate::topology::star::Star;

    /// Returns the kept instants of a run that is sampled until `end`.
    fn kept(most: u32, arrivals: Time, end: Time) -> Vec<Time> {
        let graph = Star { hosts: 3, ..Star::default() }.build().expect("hosts are enough");
        let mut fabric = Fabric::new(&FabricSpec::with_defaults(&graph)).expect("it is connected");
        let mut instants = PortSampler::new(most, arrivals, fabric.port_count());
        let mut now = instants.first();
        while now <= end {
            now = instants.take(now, &mut fabric);
        }
        let samples = instants.into_samples();
        assert_eq!(samples.packets.len(), samples.times.len() * fabric.port_count() as usize);
        samples.times
    }

    #[test]
    fn reserves_a_quarter_of_the_instants_for_the_time_after_the_arrivals() {
        let us = |n: u64| (1..=n).map(Time::from_us).collect::<Vec<_>>();
        assert_eq!(kept(8, Time::from_us(6), Time::from_us(6)), us(6));
        assert_eq!(kept(8, Time::from_us(6), Time::from_us(8)), us(8));
    }

    #[test]
    fn instants_stay_bounded_and_evenly_spaced_in_a_long_run() {
        for most in [2, 3, 7, 8, 400] {
            for end in [60, 100, 1_000, 12_345, 99_999].map(Time::from_us) {
                let times = kept(most, Time::from_us(60), end);
                let interval = times[0];
                let even = (1..=times.len() as u64).map(|k| Time(k * interval.0));
                assert!(times.len() <= most as usize);
                assert_eq!(times, even.collect::<Vec<_>>(), "{most} until {end}");
                assert!(times[times.len() - 1].0 + interval.0 > end.0, "{most} until {end}");
                let doubled = interval.0 / kept(most, Time::from_us(60), Time::from_us(60))[0].0;
                assert!(doubled.is_power_of_two());
                assert!(doubled == 1 || times.len() >= most as usize / 2);
            }
        }
    }

    #[test]
    fn every_second_drops_whole_rows() {
        let mut rows = vec![11, 12, 21, 22, 31, 32, 41, 42, 51, 52];
        every_second(&mut rows, 2, 2);
        assert_eq!(rows, [21, 22, 41, 42]);
    }
}
