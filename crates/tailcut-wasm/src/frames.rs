//! Frames of a run: its state at regular intervals while it is simulated.

use std::ops::ControlFlow;

use serde_json::json;
use tailcut_net::scenario::Progress;
use tailcut_net::topology::PortId;
use tailcut_net::watch::{RunView, RunWatcher};

/// Calls `show` at the first opportunity after each step of simulated time, with a frame as JSON:
/// the time, the packet-hops so far, the queue of every directed link in packets, and the flows
/// that have finished since the last frame, as `[index, bytes, fct_ns, ideal_fct_ns]`.
pub(crate) struct Frames<F: FnMut(&str)> {
    ports: u32,
    step: u64,
    next: u64,
    /// Whether each flow has been reported as finished.
    reported: Vec<bool>,
    show: F,
}

impl<F: FnMut(&str)> Frames<F> {
    /// Creates a watcher that shows a frame every `step` picoseconds.
    pub fn new(ports: u32, step: u64, show: F) -> Frames<F> {
        let step = step.max(1);
        Frames { ports, step, next: step, reported: vec![], show }
    }

    fn newly_finished(&mut self, run: &dyn RunView) -> Vec<[u64; 4]> {
        self.reported.resize(run.flows(), false);
        let mut finished = vec![];
        for (index, reported) in
            self.reported.iter_mut().enumerate().filter(|(_, reported)| !**reported)
        {
            let record = run.flow(index);
            if let Some(fct) = record.fct {
                *reported = true;
                let ideal = record.ideal_fct.as_ns();
                finished.push([index as u64, record.flow.bytes, fct.as_ns(), ideal]);
            }
        }
        finished
    }
}

impl<F: FnMut(&str)> RunWatcher for Frames<F> {
    /// Frequent enough to hardly overrun a step, and rare enough to cost nothing.
    fn interval_events(&self) -> u64 {
        64
    }

    fn on_interval(&mut self, progress: &Progress, run: &mut dyn RunView) -> ControlFlow<()> {
        if progress.now.0 < self.next {
            return ControlFlow::Continue(());
        }
        self.next = (progress.now.0 / self.step + 1) * self.step;
        let queues: Vec<u32> = (0..self.ports).map(|port| run.queue(PortId(port))).collect();
        let frame = json!({
            "now_ns": progress.now.as_ns(),
            "packet_hops": progress.packet_hops,
            "queues": queues,
            "finished": self.newly_finished(run),
        });
        (self.show)(&frame.to_string());
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::path::Path;
    use tailcut_experiment::{Changes, Values, load_text, no_table_reader, run, run_watched};

    const TEXT: &str = r#"
        title = "two hosts ask a third"
        [topology]
        kind = "star"
        hosts = 3
        [traffic]
        kind = "incast"
        fan_in = 2
        sizes = "50KB"
        period = "2ms"
        [horizon]
        arrivals = "20ms"
        drain = "10ms"
        [schemes.TCP]
    "#;

    #[test]
    fn frames_come_once_per_step_and_report_every_flow_once() {
        let plan = load_text("x.toml", TEXT, Path::new(""), Changes::default(), &no_table_reader)
            .expect("it is valid");
        let text = serde_json::to_string(&plan.runs[0]).expect("plans are JSON");
        let mut frames: Vec<Value> = vec![];
        let show = |frame: &str| frames.push(serde_json::from_str(frame).expect("it is JSON"));
        let mut watch = Frames::new(6, 1_000_000_000, show);
        let watched = run_watched(&text, None, &no_table_reader, &mut watch).expect("it runs");
        let unwatched = run(&text, None, &no_table_reader, &mut |_| ControlFlow::Continue(()))
            .expect("it runs");
        assert_eq!(watched, unwatched);

        let steps: Vec<u64> =
            frames.iter().filter_map(|f| f["now_ns"].as_u64()).map(|ns| ns / 1_000_000).collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
        assert!(steps.len() >= 9, "{steps:?}");
        assert!(frames.iter().all(|f| f["queues"].as_array().is_some_and(|q| q.len() == 6)));
        let waits = |f: &Value| f["queues"].as_array().is_some_and(|q| q.iter().any(|n| *n != 0));
        assert!(frames.iter().any(waits), "both answers meet at one link");

        let mut reported: Vec<(u64, i64)> = vec![];
        for flow in frames.iter().filter_map(|f| f["finished"].as_array()).flatten() {
            let number = |at: usize| flow[at].as_u64().expect("it is a number");
            reported.push((number(0), number(2) as i64));
        }
        reported.sort_unstable();
        let fct = watched.flows.iter().find(|column| column.name == "fct_ns").expect("it is there");
        let Values::I64(fct) = &fct.values else { panic!("times are integers") };
        let all: Vec<(u64, i64)> = fct.iter().enumerate().map(|(i, t)| (i as u64, *t)).collect();
        assert!(
            all.starts_with(&reported[..reported.len()]) && reported.len() >= 16,
            "{reported:?} of {all:?}"
        );
    }
}
