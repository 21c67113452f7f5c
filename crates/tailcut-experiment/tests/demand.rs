//! The demand that other backends get is what the simulator carries, and their tables are made by
//! the same code.

use std::ops::ControlFlow;

use crate::common::{GOOD, plan};
use tailcut_experiment::{
    Column, MeasuredFlow, MeasuredRun, RunDemand, RunResult, Values, no_table_reader, run,
    run_demand, tabulate,
};

const CLOSED: &str = "[traffic]\nkind = \"transfers\"\nbytes = \"20KB\"\n";

fn planned(text: &str) -> String {
    let text = &text.replace("arrivals = \"1ms\"", "arrivals = \"200ms\"");
    serde_json::to_string(&plan(text).runs[0]).expect("a plan is plain data")
}

fn simulated(run_json: &str) -> RunResult {
    run(run_json, None, &no_table_reader, &mut |_| ControlFlow::Continue(())).expect("it runs")
}

fn demanded(run_json: &str) -> RunDemand {
    run_demand(run_json, &no_table_reader).expect("it has flows")
}

fn column<'a>(of: &'a RunResult, name: &str) -> &'a Column {
    of.flows.iter().find(|column| column.name == name).expect("the column exists")
}

fn u64s(column: &Column) -> &[u64] {
    match &column.values {
        Values::U64(values) => values,
        other => panic!("{other:?}"),
    }
}

fn i64s(column: &Column) -> Vec<i64> {
    match &column.values {
        Values::I64(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the times of a column; `None` where the value is missing.
fn times(of: &RunResult, name: &str) -> Vec<Option<u64>> {
    let column = column(of, name);
    let valid = column.valid.clone().expect("it may be missing");
    i64s(column).iter().zip(valid).map(|(ns, valid)| valid.then_some(*ns as u64)).collect()
}

#[test]
fn flows_ports_paths_and_ideal_times_equal_the_simulators() {
    let run_json = planned(GOOD);
    let (of_run, demand) = (simulated(&run_json), demanded(&run_json));
    let ns = |get: fn(&tailcut_experiment::demand::FlowDemand) -> u64| -> Vec<i64> {
        demand.flows.iter().map(|flow| (get(flow) / 1_000) as i64).collect()
    };
    assert!(demand.flows.len() > 10, "{}", demand.flows.len());
    assert_eq!(ns(|f| f.start_ps), i64s(column(&of_run, "start_ns")));
    assert_eq!(ns(|f| f.ideal_ps), i64s(column(&of_run, "ideal_fct_ns")));
    assert_eq!(ns(|f| f.ideal_ack_ps), i64s(column(&of_run, "ideal_fct_ack_ns")));
    let bytes: Vec<u64> = demand.flows.iter().map(|flow| flow.bytes).collect();
    assert_eq!(bytes, u64s(column(&of_run, "bytes")));
    for flow in &demand.flows {
        assert_eq!(flow.forward.len(), usize::from(flow.hops));
        assert_eq!(flow.source_port, 1024 + flow.id as u16);
        let ends = [&flow.forward, &flow.backward].map(|path| {
            let from = demand.graph.far_end(path[0].reversed());
            (from.0, demand.graph.far_end(path[path.len() - 1]).0)
        });
        assert_eq!(ends, [(flow.src, flow.dst), (flow.dst, flow.src)]);
    }
}

#[test]
fn sprayed_flows_have_no_single_path() {
    let demand = demanded(&planned(&format!("{GOOD}[balance]\nkind = \"spray\"\n")));
    assert!(demand.flows.iter().all(|flow| flow.forward.is_empty() && flow.backward.is_empty()));
}

fn closed() -> String {
    let text = GOOD.replace("[traffic]\nkind = \"poisson\"\nload = 0.5\n", CLOSED);
    planned(&text.replace("[sweep]\n\"traffic.load\" = [0.2, 0.5]\n", ""))
}

#[test]
fn closed_loop_traffic_has_jobs_and_dependencies() {
    let demand = demanded(&closed());
    assert!(!demand.jobs.is_empty());
    assert!(!demand.waits.is_empty() || !demand.pools.is_empty());
    assert!(demand.flows.iter().all(|flow| flow.job.is_some()));
}

/// Returns the simulator's results as another backend would report them.
fn measured_of(of: &RunResult) -> MeasuredRun {
    let (connect, fct, ack) =
        (times(of, "connect_ns"), times(of, "fct_ns"), times(of, "fct_ack_ns"));
    let flows = (0..fct.len()).map(|index| MeasuredFlow {
        index: index as u64,
        connect_ns: connect[index],
        fct_ns: fct[index],
        fct_ack_ns: ack[index],
        data_packets: u64s(column(of, "data_packets"))[index],
        retransmissions: u64s(column(of, "retransmissions"))[index],
        ..MeasuredFlow::default()
    });
    MeasuredRun { flows: flows.collect(), end_ns: 1, ..MeasuredRun::default() }
}

#[test]
fn measurements_give_the_same_table_as_the_simulator() {
    let run_json = planned(GOOD);
    let of_run = simulated(&run_json);
    let tabulated =
        tabulate(&run_json, &measured_of(&of_run), &no_table_reader).expect("its flows are known");
    let names = ["id", "src", "dst", "bytes", "start_ns", "connect_ns", "fct_ns", "fct_ack_ns"];
    let further = ["ideal_fct_ns", "class", "size_group", "data_packets", "hops", "finished"];
    for name in names.iter().chain(&further) {
        assert_eq!(column(&tabulated, name), column(&of_run, name), "{name}");
    }
}

#[test]
fn measured_flows_give_the_same_job_times_as_the_simulator() {
    let run_json = closed();
    let of_run = simulated(&run_json);
    let starts = i64s(column(&of_run, "start_ns"));
    let mut measured = measured_of(&of_run);
    for ((flow, start), id) in
        measured.flows.iter_mut().zip(&starts).zip(u64s(column(&of_run, "id")))
    {
        (flow.index, flow.start_ns) = (*id, Some(*start as u64));
    }
    let tabulated = tabulate(&run_json, &measured, &no_table_reader).expect("its flows are known");
    assert_eq!(i64s(column(&tabulated, "start_ns")), starts);
    let jobs = |of: &RunResult, name: &str| {
        let (_, table) =
            of.extra_tables.iter().find(|(name, _)| *name == "jobs").expect("it has jobs");
        table.iter().find(|column| column.name == name).expect("the column exists").clone()
    };
    for name in ["id", "kind", "start_ns", "flows", "bytes"] {
        assert_eq!(jobs(&tabulated, name), jobs(&of_run, name), "{name}");
    }
    // Measured times are whole nanoseconds, and so are sums of them.
    let [elsewhere, here] = [&tabulated, &of_run].map(|of| i64s(&jobs(of, "completion_ns")));
    assert!(elsewhere.len() > 3);
    assert!(elsewhere.iter().zip(&here).all(|(one, other)| one.abs_diff(*other) <= 1));
}

#[test]
fn unknown_columns_are_null_not_zero() {
    let run_json = planned(GOOD);
    let unknown = [("fast_recoveries".to_owned(), "nobody tells".to_owned())].into();
    let measured = MeasuredRun { unknown, ..measured_of(&simulated(&run_json)) };
    let tabulated = tabulate(&run_json, &measured, &no_table_reader).expect("its flows are known");
    let valid = column(&tabulated, "fast_recoveries").valid.clone().expect("it is missing");
    assert!(!valid.is_empty() && valid.iter().all(|valid| !valid));
    assert_eq!(column(&tabulated, "bytes").valid, None);
}

#[test]
fn measurements_of_unknown_flows_or_twice_of_one_are_refused() {
    let run_json = planned(GOOD);
    let twice = MeasuredFlow { index: 3, ..MeasuredFlow::default() };
    for flows in [vec![twice, twice], vec![MeasuredFlow { index: 1_000_000, ..twice }]] {
        let measured = MeasuredRun { flows, ..MeasuredRun::default() };
        let error =
            tabulate(&run_json, &measured, &no_table_reader).expect_err("there is no such flow");
        assert!(error.to_string().contains("no such flow"), "{error}");
    }
}
