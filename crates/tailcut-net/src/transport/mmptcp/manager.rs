//! MMPTCP's manager: the first subflow scatters its packets; when the flow turns out to be long the
//! others are opened, and it only delivers what it has.

use tailcut_engine::{Bytes, RandomStream};

use super::{MmptcpSpec, ScatterThreshold, SwitchTrigger};
use crate::packet::SOURCE_PORTS;
use crate::traffic::Flow;
use crate::transport::entropy::random::Draws;
use crate::transport::segments_of;
use crate::transport::spread::{
    DataMapping, MultipathSpec, OpenSubflow, SubflowAction, SubflowEvent, SubflowManager, View,
};
use crate::transport::subflows::{Data, DataReassembly, JoinPhase};

/// MMPTCP on one flow.
#[derive(Debug)]
struct Manager {
    data: Data,
    switch: SwitchTrigger,
    bears_all_paths: bool,
    /// Source ports of the packets that are scattered.
    ports: Draws,
}

impl MultipathSpec for MmptcpSpec {
    fn subflows(&self) -> u32 {
        self.subflows
    }
    fn receive_window(&self) -> Bytes {
        self.receive_window
    }
    fn scatters(&self) -> bool {
        true
    }
    fn segments_before_join(&self) -> u64 {
        match &self.switch {
            SwitchTrigger::Volume { bytes } => bytes.0.div_ceil(self.tcp.mss.0).saturating_sub(1),
            SwitchTrigger::Congestion {} => 0,
        }
    }
    fn manager(&self, flow: &Flow, seed: u64) -> Box<dyn SubflowManager> {
        let mut data = Data::new(self, self.tcp.mss.0, flow);
        data.of = data.of.retire_first();
        Box::new(Manager {
            data,
            switch: self.switch.clone(),
            bears_all_paths: self.dupack_threshold == ScatterThreshold::Topology,
            ports: Draws::new(SOURCE_PORTS, RandomStream::new(seed, flow.id, "packet-scatter")),
        })
    }
    fn collected(&self, flow: &Flow) -> DataReassembly {
        DataReassembly::new(segments_of(flow.bytes, self.tcp.mss))
    }
}

impl Manager {
    /// The flow goes on over subflows, if it has data left for them.
    fn switch(&mut self, actions: &mut Vec<SubflowAction>) {
        let more = self.data.of.assigned() < self.data.of.segments();
        if more && self.data.of.phase() == JoinPhase::Alone {
            self.data.open_others(actions);
        }
    }

    /// The first sign of congestion: a fast retransmit or a timeout. A lost SYN is none: no window
    /// has been sent that could have been too large.
    fn on_congestion(&mut self, copy: u8, actions: &mut Vec<SubflowAction>) {
        if copy == 0 && matches!(self.switch, SwitchTrigger::Congestion {}) {
            self.switch(actions);
        }
    }

    /// The first hole of the scattering subflow, another carries.
    fn reinject_hole(&mut self, actions: &mut Vec<SubflowAction>) {
        if self.data.of.reinject_first(0) {
            actions.push(SubflowAction::PumpOthers);
        }
    }
}

/// Duplicate acknowledgements that mean a loss where packets take all of so many paths: 3, and as
/// many more as there are paths, if there are several.
fn threshold(paths: u32) -> u32 {
    let reordering = if paths > 1 { paths } else { 0 };
    reordering.saturating_add(3)
}

impl SubflowManager for Manager {
    fn initial_subflow(&self, paths: &mut dyn FnMut() -> u32) -> OpenSubflow {
        let dupack_threshold = self.bears_all_paths.then(|| threshold(paths()));
        OpenSubflow { subflow: 0, coupled: false, dupack_threshold }
    }

    fn on_event(&mut self, event: SubflowEvent, view: View<'_>, actions: &mut Vec<SubflowAction>) {
        self.data.note_window(view);
        match event {
            SubflowEvent::Established => {
                if view.subflow > 0 && self.data.of.phase() == JoinPhase::Opening {
                    self.data.of.on_joined();
                    if (view.look)(0).is_some_and(|first| first.has_hole()) {
                        self.reinject_hole(actions);
                    }
                }
            }
            SubflowEvent::Acknowledged { data_ack } => {
                let opened = self.data.on_ack(view, data_ack);
                if self.data.of.acknowledged() {
                    actions.push(SubflowAction::Close);
                    return;
                }
                if view.seen.fast_recoveries > 0 {
                    self.on_congestion(view.subflow, actions);
                }
                if view.subflow == 0 && self.data.of.drains_first() && view.seen.has_hole() {
                    self.reinject_hole(actions);
                }
                if opened {
                    actions.push(SubflowAction::PumpOthers);
                }
            }
            SubflowEvent::TimedOut => {
                self.on_congestion(view.subflow, actions);
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

    fn assign(&mut self, copy: u8, actions: &mut Vec<SubflowAction>) -> Option<u64> {
        let payload = self.data.assign(copy)?;
        if matches!(&self.switch, SwitchTrigger::Volume { bytes } if self.data.assigned() >= bytes.0)
        {
            self.switch(actions);
        }
        Some(payload)
    }

    fn carries(&mut self, copy: u8, seq: u32) -> DataMapping {
        let scattered = (copy == 0).then(|| self.ports.draw());
        DataMapping { scattered, ..self.data.carries(copy, seq) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::spread::Script;
    use SubflowAction::{Close, PumpOthers};
    use SubflowEvent::{Acknowledged, Established, TimedOut};

    /// Segments of 1,000 bytes, three subflows.
    fn script(switch: SwitchTrigger, bytes: u64) -> Script {
        let mut spec = MmptcpSpec { subflows: 3, switch, ..MmptcpSpec::default() };
        spec.tcp.mss = Bytes(1_000);
        Script::new(&spec, bytes)
    }

    fn volume(bytes: u64) -> SwitchTrigger {
        SwitchTrigger::Volume { bytes: Bytes(bytes) }
    }

    fn others() -> [SubflowAction; 2] {
        [1, 2].map(|copy| {
            SubflowAction::Open(OpenSubflow {
                subflow: copy,
                coupled: true,
                dupack_threshold: None,
            })
        })
    }

    #[test]
    fn the_first_subflow_is_alone_and_has_a_window_of_its_own() {
        let mut script = script(volume(100_000), 9_000);
        let first = OpenSubflow { subflow: 0, coupled: false, dupack_threshold: Some(19) };
        assert_eq!(script.manager.initial_subflow(&mut || 16), first);
        assert_eq!(script.on(0, Established), []);
    }

    #[test]
    fn raises_the_dupack_threshold_by_the_number_of_other_paths() {
        assert_eq!([1, 2, 16, u32::MAX].map(threshold), [3, 5, 19, u32::MAX]);
        let mut spec =
            MmptcpSpec { dupack_threshold: ScatterThreshold::Tcp, ..MmptcpSpec::default() };
        spec.tcp.mss = Bytes(1_000);
        let script = Script::new(&spec, 9_000);
        let paths = &mut || -> u32 { panic!("TCP's parameters say it") };
        assert_eq!(script.manager.initial_subflow(paths).dupack_threshold, None);
    }

    #[test]
    fn only_the_scattering_subflow_varies_its_ports() {
        let mut script = script(volume(100_000), 9_000);
        script.assign(0, 0, 1);
        let ports: Vec<_> = (0..4).map(|_| script.manager.carries(0, 0).scattered).collect();
        assert!(ports.iter().all(Option::is_some));
        assert!(ports.windows(2).any(|pair| pair[0] != pair[1]), "{ports:?}");
        script.assign(1, 0, 1);
        assert_eq!(script.manager.carries(1, 0).scattered, None);
    }

    #[test]
    fn opens_subflows_at_the_volume_if_data_is_left() {
        let mut script = script(volume(2_000), 3_000);
        let mut actions = vec![];
        script.manager.assign(0, &mut actions);
        assert_eq!(actions, []);
        script.manager.assign(0, &mut actions);
        assert_eq!(actions, others());
        let mut short = self::script(volume(2_000), 2_000);
        assert_eq!(short.assign(0, 0, 2), [0, 1]);
        let mut actions = vec![];
        assert_eq!(short.manager.assign(0, &mut actions), None);
        assert_eq!(actions, [], "nothing is left for them");
    }

    #[test]
    fn opens_subflows_at_the_first_congestion() {
        for timeout in [false, true] {
            let mut script = script(SwitchTrigger::Congestion {}, 9_000);
            script.assign(0, 0, 4);
            assert_eq!(script.acknowledged(0, 1, 1), []);
            let mut actions = match timeout {
                true => script.on(0, TimedOut),
                false => {
                    script.seen[0].fast_recoveries = 1;
                    script.on(0, Acknowledged { data_ack: Some(1) })
                }
            };
            // Nobody is there yet to carry what has timed out, but they shall know of it.
            assert_eq!(timeout.then(|| actions.pop()), timeout.then_some(Some(PumpOthers)));
            assert_eq!(actions, others());
        }
    }

    #[test]
    fn once_another_is_up_the_first_only_delivers_and_its_holes_are_carried_by_the_others() {
        let mut script = script(volume(3_000), 9_000);
        assert_eq!(script.assign(0, 0, 3), [0, 1, 2]);
        assert_eq!(script.on(1, Established), [], "the first has no hole");
        assert!(script.assign(0, 3, 1).is_empty(), "nor is there anything new for it");
        (script.seen[0].outstanding, script.seen[0].duplicates) = (3, 1);
        assert_eq!(script.acknowledged(0, 0, 0), [], "two are beyond the hole");
        script.seen[0].duplicates = 2;
        assert_eq!(script.acknowledged(0, 0, 0), [PumpOthers]);
        assert_eq!(script.assign(1, 0, 2), [0, 3]);
    }

    #[test]
    fn a_new_subflow_is_asked_to_fill_an_older_hole() {
        let mut script = script(volume(3_000), 9_000);
        script.assign(0, 0, 3);
        (script.seen[0].outstanding, script.seen[0].duplicates) = (3, 2);
        assert_eq!(script.on(2, Established), [PumpOthers]);
    }

    #[test]
    fn closes_when_all_data_is_acknowledged() {
        let mut script = script(volume(100_000), 1_500);
        script.assign(0, 0, 2);
        assert_eq!(script.acknowledged(0, 2, 2), [Close]);
    }
}
