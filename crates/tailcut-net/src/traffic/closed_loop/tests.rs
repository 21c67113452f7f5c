use super::*;
use crate::topology::HostId;
use crate::traffic::demand::{Demand, FlowPool, StartRule};

const RULE: StartRule = StartRule { job: NONE, pool: NONE, delay: Time::ZERO };

fn flow() -> Flow {
    Flow { src: HostId(0), dst: HostId(1), bytes: 10, start: Time::ZERO, id: 0 }
}

fn drive(demand: Demand) -> ClosedLoop {
    let demand = demand.numbered();
    ClosedLoop::new(&demand.flows, &demand.jobs, None).expect("some flows wait")
}

#[test]
fn a_flow_starts_its_delay_after_its_last_dependency() {
    let mut demand = Demand::default();
    let (a, b) = (demand.flow(RULE, flow()), demand.flow(RULE, flow()));
    let c = demand.flow(StartRule { delay: Time::from_us(5), ..RULE }, flow());
    demand.wait(Dependent::Flow(c), a, Signal::Received);
    demand.wait(Dependent::Flow(c), b, Signal::Acknowledged);
    let mut driver = drive(demand);
    driver.on_finished(a, Signal::Received, Time::from_us(10));
    driver.on_finished(b, Signal::Received, Time::from_us(20));
    assert_eq!(driver.next(), None, "the acknowledgement of b is missing");
    driver.on_finished(b, Signal::Acknowledged, Time::from_us(30));
    assert_eq!(driver.next(), Some(Time::from_us(35)));
    assert_eq!(driver.take(Time::from_us(34)), None);
    assert_eq!(driver.take(Time::from_us(35)), Some(c));
}

#[test]
fn a_pool_starts_its_flows_in_order_and_limits_concurrency() {
    let mut demand = Demand::default();
    let opens = Time::from_us(3);
    let pool = demand.pool(FlowPool { opens, at_once: 2, on: Signal::Received });
    for _ in 0..4 {
        demand.flow(StartRule { pool, ..RULE }, flow());
    }
    let mut driver = drive(demand);
    assert_eq!(
        (driver.take(opens), driver.take(opens), driver.take(opens)),
        (Some(FlowIndex(0)), Some(FlowIndex(1)), None)
    );
    driver.on_finished(FlowIndex(1), Signal::Acknowledged, Time::from_us(8));
    assert_eq!(driver.next(), None, "this pool goes by what is received");
    driver.on_finished(FlowIndex(1), Signal::Received, Time::from_us(9));
    assert_eq!(driver.take(Time::from_us(9)), Some(FlowIndex(2)));
    driver.on_finished(FlowIndex(0), Signal::Received, Time::from_us(11));
    assert_eq!(driver.take(Time::from_us(11)), Some(FlowIndex(3)));
}

#[test]
fn a_pool_may_go_by_what_has_been_sent() {
    let mut demand = Demand::default();
    let pool = demand.pool(FlowPool { opens: Time::ZERO, at_once: 1, on: Signal::Sent });
    for _ in 0..3 {
        demand.flow(StartRule { pool, ..RULE }, flow());
    }
    let mut driver = drive(demand);
    assert_eq!(driver.take(Time::ZERO), Some(FlowIndex(0)));
    driver.on_finished(FlowIndex(0), Signal::Sent, Time::from_us(4));
    assert_eq!(driver.take(Time::from_us(4)), Some(FlowIndex(1)));
    driver.on_finished(FlowIndex(0), Signal::Received, Time::from_us(6));
    assert_eq!(driver.next(), None, "the first flow makes room once");
    driver.on_finished(FlowIndex(1), Signal::Received, Time::from_us(7));
    assert_eq!(driver.take(Time::from_us(7)), Some(FlowIndex(2)), "what is received was sent");
}

#[test]
fn a_job_lasts_from_its_first_start_to_its_last_byte() {
    let mut demand = Demand::default();
    let job = demand.job("query");
    let (a, b) = (
        demand.flow(StartRule { job, ..RULE }, flow()),
        demand.flow(StartRule { job, ..RULE }, flow()),
    );
    let mut driver = drive(demand);
    assert!(driver.records().is_empty(), "it has not begun");
    driver.on_start(a, Time::from_us(1));
    driver.on_start(b, Time::from_us(2));
    driver.on_finished(b, Signal::Received, Time::from_us(5));
    assert_eq!(driver.records()[0].completion, None);
    driver.on_finished(a, Signal::Received, Time::from_us(7));
    let record = &driver.records()[0];
    assert_eq!((record.start, record.completion), (Time::from_us(1), Some(Time::from_us(6))));
    assert_eq!((record.kind, record.flows, record.bytes), ("query", 2, 20));
}

#[test]
fn measured_jobs_last_from_their_first_start_to_their_last_byte() {
    let mut demand = Demand::default();
    let (query, other) = (demand.job("query"), demand.job("pings"));
    let a = demand.flow(StartRule { job: query, ..RULE }, flow());
    let b = demand.flow(StartRule { job: query, ..RULE }, flow());
    let c = demand.flow(StartRule { job: other, ..RULE }, flow());
    let demand = demand.numbered();
    let us = Time::from_us;
    let of = |carried: &[(FlowIndex, Time, Option<Time>)]| {
        measured_job_records(&demand.flows, &demand.jobs, carried.iter().copied())
    };
    let whole = of(&[(b, us(4), Some(us(9))), (a, us(2), Some(us(7))), (c, us(5), None)]);
    let told: Vec<_> =
        whole.iter().map(|job| (job.id, job.start, job.completion, job.flows)).collect();
    assert_eq!(told, [(0, us(2), Some(us(7)), 2), (1, us(5), None, 1)]);
    assert_eq!(of(&[(b, us(4), Some(us(9)))])[0].completion, None, "a has not started");
    assert_eq!(of(&[]), []);
}

#[test]
fn a_pool_opens_after_the_flows_it_depends_on() {
    let mut demand = Demand::default();
    let first = demand.flow(RULE, flow());
    let pool = demand.pool(FlowPool { opens: Time::ZERO, at_once: 1, on: Signal::Received });
    let second = demand.flow(StartRule { pool, ..RULE }, flow());
    demand.wait(Dependent::Pool(pool), first, Signal::Received);
    let mut driver = drive(demand);
    assert_eq!(driver.next(), None);
    driver.on_finished(first, Signal::Received, Time::from_us(4));
    assert_eq!(
        (driver.next(), driver.take(Time::from_us(4))),
        (Some(Time::from_us(4)), Some(second))
    );
}

/// A flow that its pool lets start waited for the flow that made room.
#[test]
fn the_critical_path_goes_through_a_pool() {
    let mut demand = Demand::default();
    let job = demand.job("graph");
    let first = demand.flow(StartRule { job, ..RULE }, flow());
    let pool = demand.pool(FlowPool { opens: Time::ZERO, at_once: 1, on: Signal::Received });
    let pooled: Vec<_> =
        (0..3).map(|_| demand.flow(StartRule { job, pool, ..RULE }, flow())).collect();
    for flow in &pooled {
        demand.wait(Dependent::Flow(*flow), first, Signal::Received);
    }
    let Demand { mut jobs, flows, .. } = demand.numbered();
    jobs.explained = Some(job);
    let mut driver = ClosedLoop::new(&flows, &jobs, None).expect("some flows wait");
    let mut starts = vec![Time::ZERO];
    driver.on_start(first, Time::ZERO);
    for number in 0..4 {
        let now = Time::from_us(10 * (number + 1));
        driver.on_finished(FlowIndex(number as u32), Signal::Received, now);
        if let Some(next) = driver.take(now) {
            assert_eq!(next, FlowIndex(number as u32 + 1));
            driver.on_start(next, now);
            starts.push(now);
        }
    }
    let started = |at: FlowIndex| Flow { start: starts[at.index()], ..flows[at.index()] };
    let path = driver.critical_path(job, &|at| (started(at), Time::ZERO)).expect("it has ended");
    let parts: Vec<_> = path.parts.iter().map(|part| (part.row, part.from, part.to)).collect();
    let us = Time::from_us;
    let part = |at: u32| {
        let from = u64::from(at) * 10;
        (Some(Dependent::Flow(FlowIndex(at))), us(from), us(from + 10))
    };
    assert_eq!(parts, [part(0), part(1), part(2), part(3)]);
}
