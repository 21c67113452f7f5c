//! Multipath TCP's manager: the other subflows join when the first is established, windows are
//! coupled, and what a subflow has in flight when its timer expires the others carry again.

use tailcut_engine::Bytes;

use super::MptcpSpec;
use crate::traffic::Flow;
use crate::transport::segments_of;
use crate::transport::spread::{
    DataMapping, MultipathSpec, OpenSubflow, SubflowAction, SubflowEvent, SubflowManager, View,
};
use crate::transport::subflows::{Data, DataReassembly, JoinPhase};

/// Multipath TCP on one flow.
#[derive(Debug)]
struct Manager {
    data: Data,
}

impl MultipathSpec for MptcpSpec {
    fn subflows(&self) -> u32 {
        self.subflows
    }
    fn receive_window(&self) -> Bytes {
        self.receive_window
    }
    fn scatters(&self) -> bool {
        false
    }
    fn segments_before_join(&self) -> u64 {
        0
    }
    fn manager(&self, flow: &Flow, _: u64) -> Box<dyn SubflowManager> {
        Box::new(Manager { data: Data::new(self, self.tcp.mss.0, flow) })
    }
    fn collected(&self, flow: &Flow) -> DataReassembly {
        DataReassembly::new(segments_of(flow.bytes, self.tcp.mss))
    }
}

impl SubflowManager for Manager {
    fn initial_subflow(&self, _: &mut dyn FnMut() -> u32) -> OpenSubflow {
        OpenSubflow { subflow: 0, coupled: true, dupack_threshold: None }
    }

    fn on_event(&mut self, event: SubflowEvent, view: View<'_>, actions: &mut Vec<SubflowAction>) {
        self.data.note_window(view);
        match event {
            SubflowEvent::Established => match (view.subflow, self.data.of.phase()) {
                (0, JoinPhase::Alone) => self.data.open_others(actions),
                (1.., JoinPhase::Opening) => self.data.of.on_joined(),
                _ => {}
            },
            SubflowEvent::Acknowledged { data_ack } => {
                let opened = self.data.on_ack(view, data_ack);
                if self.data.of.acknowledged() {
                    actions.push(SubflowAction::Close);
                } else if opened {
                    actions.push(SubflowAction::PumpOthers);
                }
            }
            SubflowEvent::TimedOut => {
                if self.data.of.reinject_all(view.subflow) {
                    actions.push(SubflowAction::PumpOthers);
                }
            }
        }
    }

    fn window_increase(&self) -> f64 {
        self.data.growth()
    }
    fn likely_segment_bytes(&self) -> u64 {
        self.data.likely()
    }
    fn assign(&mut self, copy: u8, _: &mut Vec<SubflowAction>) -> Option<u64> {
        self.data.assign(copy)
    }
    fn carries(&mut self, copy: u8, seq: u32) -> DataMapping {
        self.data.carries(copy, seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::spread::{Script, SubflowView};
    use SubflowAction::{Close, PumpOthers};
    use SubflowEvent::{Acknowledged, Established, TimedOut};

    /// Segments of 1,000 bytes.
    fn script(subflows: u32, bytes: u64) -> Script {
        let mut spec = MptcpSpec { subflows, receive_window: Bytes(4_000), ..MptcpSpec::default() };
        spec.tcp.mss = Bytes(1_000);
        Script::new(&spec, bytes)
    }

    fn open(copy: u8) -> SubflowAction {
        SubflowAction::Open(OpenSubflow { subflow: copy, coupled: true, dupack_threshold: None })
    }

    #[test]
    fn opens_subflows_when_the_first_is_established() {
        let mut script = script(3, 9_000);
        let paths = &mut || -> u32 { panic!("any number of them will do") };
        assert_eq!(SubflowAction::Open(script.manager.initial_subflow(paths)), open(0));
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
    fn asks_other_subflows_to_reinject_after_a_timeout() {
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
        let seen = SubflowView { cwnd: 10_000, rtt: 100, ..script.seen[0] };
        script.seen = vec![seen; 2];
        script.on(0, Established);
        let alone = script.manager.window_increase();
        script.on(1, Established);
        assert_eq!((alone, script.manager.window_increase()), (0.1, 0.025));
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
