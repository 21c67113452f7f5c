//! The detection of elephants at TinyFlow's edge switches: by samples, counters, or marks of the
//! hosts.

use std::collections::{BTreeMap, VecDeque};

use tailcut_engine::{RandomStream, Time};

use super::audit::Detection;
use super::{Detect, TinyFlow};
use crate::packet::{ConnectionId, Flags, FlowKey, Packet};
use crate::topology::SwitchId;

/// A flow's counter for polling.
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    bytes: u64,
    connection: ConnectionId,
    acks: bool,
    idle: bool,
}

/// A sampler and the bytes left until its next sample.
#[derive(Debug, Clone)]
struct Sampler {
    stream: RandomStream,
    left: f64,
}

impl Sampler {
    /// Begins the interval until the next sample.
    fn skip(&mut self, spec: &TinyFlow) {
        let mean = spec.sample_every.0 as f64;
        self.left += match spec.detect {
            Detect::RandomSkip | Detect::RandomSkipSwitch => self.stream.exponential(mean),
            _ => mean,
        };
    }
}

/// Recent samples and counters of a switch.
#[derive(Debug, Clone)]
struct Sights {
    samples: VecDeque<(u64, Time)>,
    counters: BTreeMap<u64, Counter>,
    next_poll: Time,
}

impl Sights {
    /// Notes a sample of a flow; returns whether that makes it an elephant.
    fn note_sample(&mut self, spec: &TinyFlow, now: Time, key: FlowKey) -> bool {
        let samples = &mut self.samples;
        while samples.front().is_some_and(|(_, at)| now - *at > spec.window) {
            samples.pop_front();
        }
        if samples.back() == Some(&(key.0, now)) {
            return false;
        }
        samples.push_back((key.0, now));
        samples.iter().filter(|(sampled, _)| *sampled == key.0).count() >= spec.samples as usize
    }

    /// Counts a packet, and looks at all counters first if a poll is due. Returns whether that poll
    /// finds the packet's flow to be large; other large flows go to `others`. A switch without
    /// traffic needs no poll.
    fn poll(
        &mut self,
        spec: &TinyFlow,
        now: Time,
        packet: &Packet,
        mut others: impl FnMut(Detection),
    ) -> bool {
        let mut found = false;
        if now >= self.next_poll {
            let every = spec.poll_every.0;
            self.next_poll = Time((now.0 / every + 1) * every);
            let large = self.counters.iter().filter(|(_, c)| c.bytes >= spec.elephant.0);
            for (&key, &Counter { connection, acks, idle, .. }) in large {
                if key == packet.key.0 {
                    found = true;
                } else if !idle {
                    others(Detection { key: FlowKey(key), connection, at: now, acks });
                }
            }
            self.counters.retain(|_, counter| !std::mem::replace(&mut counter.idle, true));
        }
        let counter = self.counters.entry(packet.key.0).or_default();
        counter.bytes += u64::from(packet.wire_bytes);
        counter.connection = packet.connection;
        counter.acks = packet.flags.has(Flags::TO_SENDER);
        counter.idle = false;
        found
    }
}

/// The detectors of all switches.
#[derive(Debug, Clone)]
pub(super) struct Detector {
    spec: TinyFlow,
    /// By host or by switch.
    samplers: Vec<Sampler>,
    /// By switch.
    sights: Vec<Sights>,
}

impl Detector {
    pub fn new(spec: &TinyFlow, switches: u32, hosts: u32, seed: u64) -> Detector {
        let samplers = match spec.detect {
            Detect::RandomSkip | Detect::ExactPort => hosts,
            _ => switches,
        };
        let sampler = |number| {
            let stream = RandomStream::new(seed, u64::from(number), "tinyflow-samples");
            let mut sampler = Sampler { stream, left: 0.0 };
            sampler.skip(spec);
            sampler
        };
        let sights = Sights {
            samples: VecDeque::new(),
            counters: BTreeMap::new(),
            next_poll: spec.poll_every,
        };
        Detector {
            spec: spec.clone(),
            samplers: (0..samplers).map(sampler).collect(),
            sights: vec![sights; switches as usize],
        }
    }

    /// Counts a packet that a host of this switch sends. Returns whether its flow is now found to
    /// be an elephant; `others` receives further flows that a poll finds to be large.
    pub fn observe(
        &mut self,
        now: Time,
        switch: SwitchId,
        packet: &Packet,
        others: impl FnMut(Detection),
    ) -> bool {
        match self.spec.detect {
            Detect::HostMarked => packet.flags.has(Flags::LARGE_FLOW),
            Detect::PolledCounters => {
                self.sights[switch.index()].poll(&self.spec, now, packet, others)
            }
            Detect::RandomSkip | Detect::ExactPort => {
                self.sample(now, switch, packet.key.src().0, packet)
            }
            Detect::RandomSkipSwitch | Detect::ExactSwitch => {
                self.sample(now, switch, switch.0, packet)
            }
        }
    }

    fn sample(&mut self, now: Time, switch: SwitchId, sampler: u32, packet: &Packet) -> bool {
        let sampler = &mut self.samplers[sampler as usize];
        sampler.left -= f64::from(packet.wire_bytes);
        if sampler.left > 0.0 {
            return false;
        }
        while sampler.left <= 0.0 {
            sampler.skip(&self.spec);
        }
        // A packet is sampled at most once, however many samples fall into it.
        self.sights[switch.index()].note_sample(&self.spec, now, packet.key)
    }
}
