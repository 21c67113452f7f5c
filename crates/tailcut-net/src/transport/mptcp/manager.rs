//! Multipath TCP's manager: the other subflows join when the first is established, windows are coupled, and what a
//! subflow has in flight when its timer expires the others carry again.

use tailcut_engine::Bytes;

use super::MptcpSpec;
use crate::traffic::Flow;
use crate::transport::segments_of;
use crate::transport::spread::{Action, Carries, Event, Manage, Open, Spread, View};
use crate::transport::subflows::{Collected, Data, Phase};

/// Multipath TCP on one flow.
#[derive(Debug)]
struct Manager {
    data: Data,
}

impl Spread for MptcpSpec {
    fn subflows(&self) -> u32 {
        self.subflows
    }
    fn receive_window(&self) -> Bytes {
        self.receive_window
    }
    fn scatters(&self) -> bool {
        false
    }
    fn alone(&self) -> u64 {
        0
    }
    fn manager(&self, flow: &Flow, _: u64) -> Box<dyn Manage> {
        Box::new(Manager { data: Data::new(self, self.tcp.mss.0, flow) })
    }
    fn collected(&self, flow: &Flow) -> Collected {
        Collected::new(segments_of(flow.bytes, self.tcp.mss))
    }
}

impl Manage for Manager {
    fn first(&self, _: &mut dyn FnMut() -> u32) -> Open {
        Open { copy: 0, coupled: true, dupack_threshold: None }
    }

    fn on(&mut self, event: Event, view: View<'_>, actions: &mut Vec<Action>) {
        self.data.note_window(view);
        match event {
            Event::Established => match (view.copy, self.data.of.phase()) {
                (0, Phase::Alone) => self.data.open_others(actions),
                (1.., Phase::Opening) => self.data.of.on_joined(),
                _ => {}
            },
            Event::Acknowledged { data_ack } => {
                let opened = self.data.on_ack(view, data_ack);
                if self.data.of.acknowledged() {
                    actions.push(Action::Close);
                } else if opened {
                    actions.push(Action::PumpOthers);
                }
            }
            Event::TimedOut => {
                if self.data.of.reinject_all(view.copy) {
                    actions.push(Action::PumpOthers);
                }
            }
        }
    }

    fn growth(&self) -> f64 {
        self.data.growth()
    }
    fn likely(&self) -> u64 {
        self.data.likely()
    }
    fn assign(&mut self, copy: u8, _: &mut Vec<Action>) -> Option<u64> {
        self.data.assign(copy)
    }
    fn carries(&mut self, copy: u8, seq: u32) -> Carries {
        self.data.carries(copy, seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::spread::{Script, Seen};
    use Action::{Close, PumpOthers};
    use Event::{Acknowledged, Established, TimedOut};

    /// Segments of 1,000 bytes.
    fn script(subflows: u32, bytes: u64) -> Script {
        let mut spec = MptcpSpec { subflows, receive_window: Bytes(4_000), ..MptcpSpec::default() };
        spec.tcp.mss = Bytes(1_000);
        Script::new(&spec, bytes)
    }

    fn open(copy: u8) -> Action {
        Action::Open(Open { copy, coupled: true, dupack_threshold: None })
    }

    #[test]
    fn the_others_join_when_the_first_is_established() {
        let mut script = script(3, 9_000);
        let paths = &mut || -> u32 { panic!("any number of them will do") };
        assert_eq!(Action::Open(script.manager.first(paths)), open(0));
        assert_eq!(script.on(0, Established), [open(1), open(2)]);
        assert_eq!(script.on(1, Established), []);
        assert_eq!(script.on(2, Established), []);
    }

    #[test]
    fn a_flow_ends_when_its_sender_knows_of_all_data() {
        let mut script = script(2, 1_500);
        script.on(0, Established);
        assert_eq!(script.assign(0, 0, 1), [0]);
        assert_eq!(script.assign(1, 0, 1), [1]);
        assert_eq!(script.manager.carries(1, 0).payload, 500);
        assert_eq!(script.acknowledged(1, 1, 0), [], "the first is missing");
        assert_eq!(script.acknowledged(0, 1, 2), [Close]);
    }

    #[test]
    fn what_times_out_on_one_subflow_the_others_are_asked_to_carry() {
        let mut script = script(2, 9_000);
        script.on(0, Established);
        assert_eq!(script.assign(0, 0, 2), [0, 1]);
        assert_eq!(script.on(0, TimedOut), [PumpOthers]);
        assert_eq!(script.on(0, TimedOut), [], "they have been asked");
        assert_eq!(script.assign(1, 0, 3), [0, 1, 2]);
    }

    #[test]
    fn an_acknowledgement_of_data_lets_whoever_the_shared_window_stopped_go_on() {
        let mut script = script(2, 9_000);
        script.on(0, Established);
        assert_eq!(script.assign(0, 0, 5), [0, 1, 2, 3], "four segments fit");
        assert_eq!(script.acknowledged(0, 1, 1), [PumpOthers]);
        assert_eq!(script.acknowledged(0, 2, 2), [], "none was stopped since");
        assert_eq!(script.on(0, Acknowledged { data_ack: None }), []);
    }

    #[test]
    fn two_windows_grow_together_as_one() {
        let mut script = script(2, 9_000);
        let seen = Seen { cwnd: 10_000, rtt: 100, ..script.seen[0] };
        script.seen = vec![seen; 2];
        script.on(0, Established);
        let alone = script.manager.growth();
        script.on(1, Established);
        assert_eq!((alone, script.manager.growth()), (0.1, 0.025));
    }

    #[test]
    fn the_receiver_counts_as_many_segments_as_the_sender() {
        let spec = MptcpSpec::default();
        for bytes in [1, 1_460, 1_461, 14_600] {
            let flow = script(2, bytes).flow;
            let mut collected = spec.collected(&flow);
            let segments = Data::new(&spec, spec.tcp.mss.0, &flow).of.segments();
            let complete: Vec<_> = (0..segments).map(|n| collected.on_segment(n)).collect();
            assert_eq!(complete.iter().position(|complete| *complete), Some(segments as usize - 1));
        }
    }
}
