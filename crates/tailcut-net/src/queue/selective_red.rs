//! Selective RED (Dixit, Prakash, Hu, Kompella, INFOCOM 2013, section IV-C): random early detection
//! for the packets of flows that have lost paths to a failure, drop-tail for all others.
//!
//! A fault manager learns of a failure when routing does. It makes the hosts mark the packets of
//! every flow between hosts that are left with fewer paths. RED's average counts marked packets
//! alone, and so does its idle time: with every packet marked the discipline is RED, with none it
//! is drop-tail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::RandomStream;

use super::environment::QueueEnvironment;
use super::red_core::{Early, EarlyState};
use super::{Admit, Arrival, LostPaths, Never, PortContext, PortQueue, QueueKind, Ties, Verdict};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// Parameters of selective RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelectiveRed {
    /// Most that may wait behind the packet in transmission, which is not counted; with two queues,
    /// in each of them.
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// Whether marked packets share the buffer of the others.
    pub form: BufferForm,
    /// Average number of marked packets waiting below which none is dropped (RPS: 10).
    pub min: f64,
    /// Average from which on every marked packet is dropped (RPS: 20).
    pub max: f64,
    /// Drop probability as the average reaches `max` (RPS: 0.1).
    pub max_probability: f64,
    /// Weight of the newest sample in the average. The spraying paper does not give it; 0.002 is
    /// Floyd and Jacobson's.
    pub weight: f64,
    /// Whether the acknowledgements of flows that have lost paths are marked as well: the paper
    /// marks "all packets".
    pub mark_acks: bool,
}

/// The buffers in which marked packets wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferForm {
    /// All packets share one buffer.
    #[default]
    OneQueue,
    /// Marked packets have their own buffer, of the same size.
    ///
    /// Both buffers are served in the order of arrival.
    TwoQueues,
}

impl Default for SelectiveRed {
    fn default() -> Self {
        let Early { limit, min, max, max_probability, weight, .. } = Early::default();
        let form = BufferForm::default();
        SelectiveRed {
            limit,
            ties: Ties::default(),
            form,
            min,
            max,
            max_probability,
            weight,
            mark_acks: true,
        }
    }
}

impl SelectiveRed {
    fn early(&self) -> Early {
        let &SelectiveRed { limit, min, max, max_probability, weight, .. } = self;
        Early { limit, min, max, max_probability, weight, mark: false }
    }
}

impl QueueKind for SelectiveRed {
    fn check(&self) -> Result<(), SpecError> {
        self.early().check()
    }

    fn check_thresholds(&self, around: &QueueEnvironment) -> Result<(), SpecError> {
        self.early().check_thresholds(around)
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn ties(&self) -> Ties {
        self.ties
    }

    fn limit_in_all(&self, at: &PortContext) -> Limit {
        match self.form {
            BufferForm::TwoQueues if !at.host => Limit::Unlimited,
            _ => at.limit,
        }
    }

    fn lost_paths(&self) -> Option<LostPaths> {
        Some(if self.mark_acks { LostPaths::All } else { LostPaths::Data })
    }
    fn admits_by_backlog(&self) -> bool {
        false
    }
}

impl PortQueue for SelectiveRed {
    type Admission = Box<SelectiveState>;
    type Schedule = Never;

    fn admission(&self, at: &PortContext) -> Option<Box<SelectiveState>> {
        let stream = RandomStream::new(at.seed, u64::from(at.number), "red");
        (!at.host).then(|| Box::new(SelectiveState::new(self, at.limit, stream)))
    }
    fn schedule(&self, _: &PortContext) -> Option<Never> {
        None
    }
}

/// Selective RED at one port.
#[derive(Debug, Clone)]
pub(crate) struct SelectiveState {
    early: EarlyState,
    /// Limit of each of two queues; `None` with one queue.
    each: Option<Limit>,
    /// When the last marked packet leaves, or left, in picoseconds.
    last_leaves: u64,
}

impl SelectiveState {
    pub fn new(spec: &SelectiveRed, limit: Limit, stream: RandomStream) -> SelectiveState {
        let each = (spec.form == BufferForm::TwoQueues).then_some(limit);
        SelectiveState { early: EarlyState::new(&spec.early(), stream), each, last_leaves: 0 }
    }
}

impl Admit for SelectiveState {
    fn active_from_backlog(&self) -> Option<u32> {
        None
    }

    fn counts_bytes(&self) -> bool {
        false
    }

    fn counts_marked(&self, marked: bool) -> bool {
        marked || self.each.is_some()
    }

    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        let (packets, bytes) = match arrival.marked {
            true => (arrival.marked_waiting, arrival.marked_bytes),
            false => (
                arrival.waiting - arrival.marked_waiting,
                arrival.waiting_bytes - arrival.marked_bytes,
            ),
        };
        let full = match self.each {
            Some(Limit::AtMost(Amount::Packets(limit))) => packets >= limit,
            Some(Limit::AtMost(Amount::Bytes(limit))) => {
                bytes + u64::from(arrival.wire_bytes) > limit
            }
            Some(Limit::Unlimited) | None => false,
        };
        if arrival.busy && full {
            self.on_overflow(arrival);
            return Verdict::Drop;
        }
        if !arrival.marked {
            return Verdict::Accept;
        }
        let verdict = self.early(arrival);
        if verdict != Verdict::Drop {
            self.last_leaves = arrival.leaves;
        }
        verdict
    }

    fn on_overflow(&mut self, arrival: &Arrival) {
        if arrival.marked {
            self.early(arrival);
        }
    }

    fn link_changed(&mut self, now: u64, marked_leave: Option<u64>) {
        if self.last_leaves > now {
            self.last_leaves = marked_leave.unwrap_or(now);
        }
    }
}

impl SelectiveState {
    /// Returns RED's verdict on a marked packet.
    fn early(&mut self, arrival: &Arrival) -> Verdict {
        let idle = arrival.now.saturating_sub(self.last_leaves) / arrival.full_packet.max(1);
        self.early.admit(&Arrival {
            waiting: arrival.marked_waiting,
            idle_packets: idle,
            ..*arrival
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(form: BufferForm) -> SelectiveState {
        let spec = SelectiveRed { form, weight: 1.0, ..SelectiveRed::default() };
        SelectiveState::new(&spec, spec.limit, RandomStream::new(1, 0, "red"))
    }

    fn arrival(marked: bool, marked_waiting: u32, waiting: u32) -> Arrival {
        Arrival { marked, marked_waiting, waiting, busy: true, ..Arrival::default() }
    }

    #[test]
    fn unmarked_packets_are_never_dropped_early_however_many_marked_ones_wait() {
        let mut state = state(BufferForm::OneQueue);
        for _ in 0..1_000 {
            state.admit(&arrival(true, 90, 99));
            assert_eq!(state.admit(&arrival(false, 90, 99)), Verdict::Accept);
        }
    }

    #[test]
    fn marked_packets_are_dropped_by_the_number_of_marked_ones_alone() {
        let mut state = state(BufferForm::OneQueue);
        let mut drops = |marked_waiting| {
            let arrival = arrival(true, marked_waiting, 99);
            (0..100_000).filter(|_| state.admit(&arrival) == Verdict::Drop).count() as f64 / 1e5
        };
        assert_eq!((drops(9), drops(20)), (0.0, 1.0));
        // Evenly spaced drops: uniform over 1..1/p packets (Floyd and Jacobson, section 7).
        let expected = 2.0 / (1.0 / (0.1 * 5.0 / 10.0) + 1.0);
        let rate = drops(15);
        assert!((rate - expected).abs() < 0.05 * expected, "{rate} against {expected}");
    }

    #[test]
    fn with_two_queues_each_has_the_whole_limit() {
        let mut state = state(BufferForm::TwoQueues);
        assert_eq!(state.admit(&arrival(false, 0, 99)), Verdict::Accept);
        assert_eq!(state.admit(&arrival(false, 9, 108)), Verdict::Accept);
        assert_eq!(state.admit(&arrival(false, 9, 109)), Verdict::Drop);
        assert_eq!(state.admit(&arrival(true, 9, 109)), Verdict::Accept);
    }

    #[test]
    fn time_without_marked_packets_decays_the_average() {
        let mut state = state(BufferForm::OneQueue);
        state.early.weigh(0.5);
        let at = |now, marked_waiting| Arrival {
            now,
            leaves: now + 100,
            full_packet: 100,
            ..arrival(true, marked_waiting, marked_waiting)
        };
        state.admit(&at(0, 8));
        assert_eq!(state.early.average(), 4.0);
        state.admit(&at(300, 0));
        assert_eq!(state.early.average(), 0.5);
    }
}
