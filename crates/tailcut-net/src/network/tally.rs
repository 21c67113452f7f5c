//! Observations of a run: totals, samples, busy times of ports, and an observer.

use tailcut_engine::{Rate, Time};

use super::books::Books;
use crate::fabric::Fabric;
use crate::measure::port_sampler::PortSampler;
use crate::measure::records::{PortSamples, RunCounters, Series};
use crate::measure::series::{ConnectionSample, SeriesSampler, UnknownPlace};
use crate::measure::{Loss, Observer, PacketView, SenderView};
use crate::scenario::Scenario;
use crate::topology::{Graph, HostId, PortId};
use crate::transport::tcp::Sender;

/// Counts, samples and shows. What an observer sees is only prepared when there is one.
pub(super) struct RunRecorder<O: Observer> {
    counters: RunCounters,
    pub books: Books,
    sampler: SeriesSampler,
    instants: Option<PortSampler>,
    /// Busy time of every port within the arrivals window, once that has ended.
    busy: Option<Vec<Time>>,
    observer: O,
}

impl<O: Observer> RunRecorder<O> {
    /// Nothing has happened.
    ///
    /// # Errors
    /// When a requested series names no link or host.
    pub fn new(scenario: &Scenario, fabric: &Fabric, observer: O) -> Result<Self, UnknownPlace> {
        let sampler = SeriesSampler::new(&scenario.series, &scenario.graph, fabric.routes())?;
        let instants = (scenario.max_port_samples > 0).then(|| {
            PortSampler::new(
                scenario.max_port_samples,
                scenario.horizon.arrivals,
                fabric.port_count(),
            )
        });
        let (counters, books) = (RunCounters::default(), Books::new(fabric.port_count()));
        Ok(RunRecorder { counters, books, sampler, instants, busy: None, observer })
    }

    /// An event is handled; so many are by now.
    #[inline]
    pub fn note_event(&mut self) -> u64 {
        self.counters.events += 1;
        self.counters.events
    }

    /// Returns the number of events handled.
    pub fn events(&self) -> u64 {
        self.counters.events
    }

    /// Packets times links crossed.
    pub fn packet_hops(&self) -> u64 {
        self.counters.packet_hops
    }

    /// A packet has crossed a link.
    #[inline]
    pub fn note_hop(&mut self) {
        self.counters.packet_hops += 1;
    }

    /// A host hands a packet to its interface.
    #[inline]
    pub fn note_sent(&mut self, now: Time, host: HostId, view: impl FnOnce() -> PacketView) {
        self.counters.sent += 1;
        if O::WANTS_VIEWS {
            self.observer.host_sends(now, host, &view());
        }
    }

    /// A packet has reached its host.
    #[inline]
    pub fn note_delivered(&mut self, now: Time, host: HostId, view: impl FnOnce() -> PacketView) {
        self.counters.delivered += 1;
        if O::WANTS_VIEWS {
            self.observer.host_receives(now, host, &view());
        }
    }

    /// A packet found no room at a port, or made way in it.
    pub fn note_dropped(&mut self, now: Time, port: PortId, view: impl FnOnce() -> PacketView) {
        self.counters.dropped += 1;
        self.books.count(port, |fates| &mut fates.dropped);
        if O::WANTS_VIEWS {
            self.observer.dropped(now, port, &view());
        }
    }

    /// A packet found no room at a port even for its header, which goes back.
    pub fn note_returned(&mut self, now: Time, port: PortId, view: impl FnOnce() -> PacketView) {
        self.books.count(port, |fates| &mut fates.returned);
        if O::WANTS_VIEWS {
            self.observer.returned(now, port, &view());
        }
    }

    /// A packet is lost to a failure.
    pub fn note_lost(
        &mut self,
        now: Time,
        port: PortId,
        loss: Loss,
        view: impl FnOnce() -> PacketView,
    ) {
        self.counters.lost_on_links += 1;
        self.books.count(port, |fates| &mut fates.lost);
        if O::WANTS_VIEWS {
            self.observer.lost(now, port, loss, &view());
        }
    }

    /// A packet has reached a port; `view` has none unless the queue there decides the order at
    /// departure.
    #[inline]
    pub fn note_queues(
        &mut self,
        now: Time,
        port: PortId,
        view: impl FnOnce() -> Option<PacketView>,
    ) {
        if O::WANTS_VIEWS
            && let Some(view) = view()
        {
            self.observer.link_queues(now, port, &view);
        }
    }

    /// A port has accepted a packet; `seen` tells when its last bit leaves, and what the packet
    /// looks like.
    #[inline]
    pub fn note_accepted(
        &mut self,
        now: Time,
        port: PortId,
        seen: impl FnOnce() -> (Time, PacketView),
    ) {
        if O::WANTS_VIEWS {
            let (departs, view) = seen();
            self.observer.link_accepts(now, port, departs, &view);
        }
    }

    /// Routing has settled on other routes.
    pub fn reroute(&mut self, graph: &Graph, fabric: &Fabric) {
        self.sampler.reroute(graph, fabric.routes());
    }

    /// Tells an observer who follows packets and causes.
    #[inline(always)]
    pub fn trace(&mut self, tell: impl FnOnce(&mut O)) {
        if O::TRACES_PACKETS {
            tell(&mut self.observer);
        }
    }

    /// A link is another one from now on.
    pub fn note_change(&mut self, now: Time, port: PortId, rate: Rate, propagation: Time) {
        if O::WANTS_VIEWS {
            self.observer.link_changes(now, port, rate, propagation);
        }
    }

    /// A sender has handled an event; `seen` tells of what flow, copy and source port, what it
    /// looks like, and who it is if it is TCP's.
    #[inline]
    pub fn note_acted<'s>(
        &mut self,
        now: Time,
        seen: impl FnOnce() -> (u64, u8, u16, SenderView, Option<&'s Sender>),
    ) {
        if O::WANTS_VIEWS {
            let (flow, copy, port, view, tcp) = seen();
            if let Some(sender) = tcp {
                self.observer.tcp_sender_acted(now, flow, copy, sender);
            }
            self.observer.any_sender_acted(now, flow, copy, port, &view);
        }
    }

    /// The arrivals have ended.
    pub fn close_window(&mut self, now: Time, fabric: &Fabric) {
        self.busy = Some(
            (0..fabric.port_count()).map(|port| fabric.busy_time(now, PortId(port))).collect(),
        );
    }

    /// Whether they have.
    pub fn window_is_closed(&self) -> bool {
        self.busy.is_some()
    }

    /// Time between samples, or none when nothing is asked for.
    pub fn interval(&self) -> Option<Time> {
        self.sampler.interval()
    }

    /// Takes samples: of links, and of the flows that these tell of: identifier, window and
    /// acknowledged bytes.
    pub fn sample(
        &mut self,
        now: Time,
        fabric: &mut Fabric,
        connections: impl Iterator<Item = ConnectionSample>,
    ) {
        self.sampler.sample_links(now, fabric);
        for sample in connections {
            self.sampler.sample_connection(now, sample);
        }
    }

    /// Returns the time of the first sample of all ports; `None` without samples.
    pub fn first_instant(&self) -> Option<Time> {
        self.instants.as_ref().map(PortSampler::first)
    }

    /// Samples all ports, and says when that is due again.
    pub fn sample_ports(&mut self, now: Time, fabric: &mut Fabric) -> Option<Time> {
        self.instants.as_mut().map(|instants| instants.take(now, fabric))
    }

    /// Returns the samples of all ports.
    pub fn take_instants(&mut self) -> Option<PortSamples> {
        self.instants.take().map(PortSampler::into_samples)
    }

    /// All that was told, the busy times of ports among it.
    pub fn finish(self) -> (RunCounters, Vec<Time>, Vec<Series>, Books, O) {
        let (busy, series) = (self.busy.unwrap_or_default(), self.sampler.into_series());
        (self.counters, busy, series, self.books, self.observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::FabricSpec;
    use crate::measure::Unobserved;
    use crate::measure::records::Sampled;
    use crate::measure::series::SeriesSpec;
    use crate::network::tests::scenario;

    /// Notes what it is shown.
    #[derive(Default)]
    struct Witness(Vec<&'static str>);

    impl Observer for Witness {
        fn link_changes(&mut self, _: Time, _: PortId, _: Rate, _: Time) {
            self.0.push("changed");
        }
    }

    fn tally<O: Observer>(scenario: &Scenario, observer: O) -> RunRecorder<O> {
        let fabric =
            Fabric::new(&FabricSpec::with_defaults(&scenario.graph)).expect("it is connected");
        RunRecorder::new(scenario, &fabric, observer).expect("the places are there")
    }

    #[test]
    fn builds_no_views_without_an_observer() {
        let scenario = scenario();
        let mut tally = tally(&scenario, Unobserved);
        let never = || -> PacketView { panic!("nobody looks") };
        tally.note_sent(Time(1), HostId(0), never);
        tally.note_delivered(Time(2), HostId(1), never);
        tally.note_dropped(Time(3), PortId(0), never);
        tally.note_returned(Time(3), PortId(0), never);
        tally.note_lost(Time(4), PortId(0), Loss::DeadLink, never);
        tally.note_queues(Time(5), PortId(0), || panic!("nobody looks"));
        tally.note_accepted(Time(6), PortId(0), || panic!("nobody looks"));
        tally.note_acted(Time(7), || panic!("nobody looks"));
        tally.trace(|_| panic!("nobody looks"));
        tally.note_hop();
        assert_eq!((tally.note_event(), tally.note_event(), tally.packet_hops()), (1, 2, 1));
        let (counters, ..) = tally.finish();
        let counted = [counters.sent, counters.delivered, counters.dropped, counters.lost_on_links];
        assert_eq!(counted, [1; 4]);
    }

    #[test]
    fn reports_link_changes_to_the_observer() {
        let scenario = scenario();
        let mut tally = tally(&scenario, Witness::default());
        tally.note_change(Time(1), PortId(0), Rate(1_000_000_000), Time(1));
        tally.note_queues(Time(1), PortId(0), || None);
        assert_eq!(tally.finish().4.0, ["changed"]);
    }

    #[test]
    fn samples_are_taken_of_what_is_asked_for() {
        let mut scenario = scenario();
        let mut fabric =
            Fabric::new(&FabricSpec::with_defaults(&scenario.graph)).expect("it is connected");
        assert_eq!(tally(&scenario, Unobserved).interval(), None);
        scenario.series = SeriesSpec { flows: vec![7], ..SeriesSpec::default() };
        let mut tally = tally(&scenario, Unobserved);
        assert_eq!(tally.interval(), Some(scenario.series.interval));
        let sample = |flow, copy, window| {
            let of = Sampled { flow, copy };
            ConnectionSample { of, window, acknowledged: 5 }
        };
        let samples = [sample(7, 2, 300), sample(7, 0, 100), sample(8, 0, 200)];
        tally.sample(Time(9), &mut fabric, samples.into_iter());
        let (_, _, series, ..) = tally.finish();
        let names: Vec<_> = series.iter().map(|series| series.name.as_str()).collect();
        let first = ["flow 7 cwnd_bytes", "flow 7 rate_bps"];
        let third = ["flow 7 connection 2 cwnd_bytes", "flow 7 connection 2 rate_bps"];
        assert_eq!(names, [first, third].concat());
        assert_eq!((&series[0].values, &series[2].values), (&vec![100.0], &vec![300.0]));
        assert_eq!(series[2].of, Some(Sampled { flow: 7, copy: 2 }));
    }

    #[test]
    fn the_window_is_closed_once() {
        let scenario = scenario();
        let fabric =
            Fabric::new(&FabricSpec::with_defaults(&scenario.graph)).expect("it is connected");
        let mut tally = tally(&scenario, Unobserved);
        assert!(!tally.window_is_closed());
        tally.close_window(Time(5), &fabric);
        assert!(tally.window_is_closed());
        assert_eq!(tally.finish().1, vec![Time::ZERO; fabric.port_count() as usize]);
    }
}
