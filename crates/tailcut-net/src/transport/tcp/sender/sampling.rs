//! Samples for a congestion control that needs more than acknowledgements of new data: the
//! deliveries of every ACK, round trips and one-way delays, marks, delivery rates; and the pacing
//! clock. Other senders pay one comparison.

use tailcut_engine::Time;

use super::Sender;
use super::entropy::PortChoice;
use super::reordering::split;
use crate::packet::{SackBlocks, Timestamps};
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::congestion::pacing::Pacer;
use crate::transport::tcp::congestion::rate::RateSampler;
use crate::transport::tcp::congestion::{AckSample, Pacing};
use crate::transport::tcp::options::one_way;

/// The state of it.
#[derive(Debug, Clone)]
pub(super) struct Senses {
    sampler: RateSampler,
    pacer: Pacer,
    min_rtt: Time,
    /// The timestamps of the ACK in hand.
    timestamps: Option<Timestamps>,
    sample: Option<AckSample>,
    /// None where all packets have the connection's port.
    pub(super) ports: Option<Box<PortChoice>>,
}

/// Facts of an ACK before the scoreboard reads it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct News {
    delivered: u64,
    rtt: Option<Time>,
    flight: u64,
    /// Segments ever taken for lost.
    lost: u32,
}

impl Sender {
    /// Samples are taken from now on, whether the congestion control asks for them or not.
    pub fn enable_sampling(&mut self) {
        self.senses.get_or_insert_with(|| {
            Box::new(Senses {
                sampler: RateSampler::default(),
                pacer: Pacer::new(),
                min_rtt: Time::NEVER,
                timestamps: None,
                sample: None,
                ports: None,
            })
        });
    }

    /// Returns the sample of the last ACK, if samples are taken.
    pub fn sample(&self) -> Option<&AckSample> {
        self.senses.as_ref()?.sample.as_ref()
    }

    /// Spaces segments from now on; wants [`Sender::enable_sampling`].
    pub fn pace(&mut self, pacing: Pacing) {
        if let Some(senses) = &mut self.senses {
            senses.pacer.pacing = pacing;
        }
    }

    /// Seeds the random stream of the congestion control.
    pub fn draw_from(&mut self, seed: u64, entity: u64) {
        self.congestion.draw_from(seed, entity);
    }

    /// The connection is established.
    #[cold]
    pub(super) fn tell_open(&mut self, spec: &TcpSpec, now: Time) {
        let rtt = (self.life.syn_tries == 1).then(|| now.since(self.opened));
        let Some(senses) = &mut self.senses else { return };
        if let Some(pacing) = self.congestion.on_open(&self.window, spec.mss.0, now, rtt) {
            senses.pacer.pacing = pacing;
        }
    }

    /// After a timeout.
    #[cold]
    pub(super) fn tell_timeout(&mut self, spec: &TcpSpec, now: Time) {
        self.note_lost_value(now);
        let Some(senses) = &mut self.senses else { return };
        if let Some(pacing) = self.congestion.after_timeout(&mut self.window, spec.mss.0, now) {
            senses.pacer.pacing = pacing;
        }
    }

    /// The timestamps of the packet in hand.
    pub(super) fn sense_timestamps(&mut self, timestamps: Timestamps) {
        if let Some(senses) = &mut self.senses {
            senses.timestamps = Some(timestamps);
        }
    }

    /// Whether the pacing lets a segment leave now.
    #[cold]
    pub(super) fn released(&mut self, now: Time) -> bool {
        let Some(senses) = &mut self.senses else { return true };
        let released = senses.pacer.releases(now);
        self.set_wake();
        released
    }

    /// Returns when a segment that pacing holds back may leave.
    pub(super) fn paced_until(&self) -> Time {
        self.senses.as_ref().map_or(Time::NEVER, |senses| senses.pacer.wake)
    }

    /// Whoever was held back may ask again.
    pub(super) fn pause_pacing(&mut self) {
        if let Some(senses) = &mut self.senses {
            senses.pacer.wake = Time::NEVER;
        }
    }

    /// Segment `seq` is about to leave.
    #[cold]
    pub(super) fn sense_departure(&mut self, spec: &TcpSpec, seq: u32, now: Time) {
        let (idle, bytes) = (self.board.pipe() == 0, self.payload(spec, seq));
        let all_known = self.una == self.board.end();
        if all_known {
            self.note_restart(now);
        }
        if let Some(senses) = &mut self.senses {
            if all_known
                && senses.sampler.is_app_limited()
                && let Some(pacing) = self.congestion.after_idle(now)
            {
                senses.pacer.pacing = pacing;
            }
            senses.sampler.on_send(seq, now, idle);
            senses.pacer.on_send(bytes, now);
        }
    }

    /// Nothing leaves: for want of data, perhaps (section 3.4 of the draft on delivery rates).
    #[cold]
    pub(super) fn sense_silence(&mut self, spec: &TcpSpec) {
        let pipe = self.pipe(spec);
        let lacks = self.next == self.segments && pipe + spec.mss.0 <= self.window.cwnd;
        if let Some(senses) = self.senses.as_mut().filter(|_| lacks) {
            senses.sampler.on_lack_of_data(pipe);
        }
    }

    /// Records what an ACK will deliver.
    #[cold]
    pub(super) fn preview_ack(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        ack: u32,
        blocks: &SackBlocks,
        echo: bool,
    ) -> News {
        self.note_arrived_values(now, ack, blocks, echo);
        let flight = self.pipe(spec);
        let (size, mss) = (self.size, spec.mss.0);
        let mut news = News { flight, lost: self.board.ever_lost(), ..News::default() };
        let Some(senses) = &mut self.senses else { return news };
        let mut latest = Time::ZERO;
        self.board.for_each_delivered(ack, &split(ack, blocks).1, |seq, sent, resent| {
            let bytes = (size - u64::from(seq) * mss).min(mss);
            news.delivered += bytes;
            senses.sampler.on_delivered(seq, bytes, now);
            // Of a segment that was sent again nobody knows which sending has arrived (Karn).
            if !resent && sent >= latest {
                latest = sent;
                news.rtt = Some(now.since(sent));
            }
        });
        news
    }

    /// Hands the sample to the congestion control, which may set the window and the pacing.
    #[cold]
    pub(super) fn report_sample(&mut self, spec: &TcpSpec, now: Time, echo: bool, news: News) {
        let (una, end, smoothed) = (self.una, self.board.end(), self.rtt.smoothed());
        let (pipe, lost, mss) = (self.pipe(spec), self.board.ever_lost(), spec.mss.0);
        let Some(senses) = &mut self.senses else { return };
        if let Some(rtt) = news.rtt {
            senses.min_rtt = senses.min_rtt.min(rtt);
        }
        if let Some(ports) = &mut senses.ports {
            ports.on_ack(now, una, end, news.delivered, echo, news.rtt);
        }
        let timestamps = senses.timestamps.take();
        let sample = AckSample {
            now,
            delivered: news.delivered,
            marked: if echo { news.delivered } else { 0 },
            rtt: news.rtt,
            min_rtt: senses.min_rtt,
            smoothed,
            one_way: timestamps.map(|stamps| one_way(spec.timestamp_tick, stamps)),
            rate: senses.sampler.sample(una, senses.min_rtt),
            total_delivered: senses.sampler.delivered(),
            lost: u64::from(lost - news.lost) * mss,
            total_lost: u64::from(lost) * mss,
            flight: news.flight,
            pipe,
            una,
            end,
            state: self.state,
        };
        senses.sample = Some(sample);
        if let Some(pacing) = self.congestion.on_sample(&mut self.window, mss, &sample) {
            senses.pacer.pacing = pacing;
        }
        if self.congestion.is_self_limited() {
            senses.sampler.on_lack_of_data(pipe);
        }
    }
}
