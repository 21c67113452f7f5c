//! Two ends of a connection without a network: a clock, two wires of one delay, and a script of
//! what the wires do to single packets.

use tailcut_engine::{Bytes, Time};
use tailcut_net::packet::{Flags, OptionStore, SackBlocks, Timestamps};
use tailcut_net::transport::tcp::{Receiver, Sender, SenderCounters, TcpSpec, WireSizes};
use tailcut_net::transport::{ConnectionState, Segment};

/// One way.
pub const DELAY: Time = Time::from_us(500);

/// A packet that a script is about, whenever it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Syn,
    SynAck,
    /// A segment with data.
    Data(u32),
    /// An acknowledgement of everything below this segment.
    Ack(u32),
    /// The ACK that ends the handshake, or the connection.
    Last,
    Reset,
}

/// What the wire does to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Late(Time),
    Marked,
    Twice,
}

/// A packet as it left.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Time,
    pub what: What,
    pub flags: Flags,
    pub wire_bytes: u16,
    pub blocks: SackBlocks,
    pub timestamps: Timestamps,
}

pub struct Pair {
    pub spec: TcpSpec,
    sizes: WireSizes,
    pub now: Time,
    pub sender: Sender,
    pub receiver: Receiver,
    options: OptionStore,
    /// What is under way, and when it arrives; in the order of sending.
    wires: Vec<(Time, Segment)>,
    script: Vec<(What, Fate)>,
    /// How far apart packets arrive, and when the last will, at the receiver and at the sender.
    spacing: Time,
    last: [Time; 2],
    pub log: Vec<Sent>,
    /// When the last byte arrived, in order.
    pub received: Option<Time>,
}

impl Pair {
    /// A connection of so many segments that is about to be opened.
    pub fn new(spec: TcpSpec, segments: u64) -> Pair {
        let bytes = segments * spec.mss.0;
        Pair::of_bytes(spec, bytes)
    }

    pub fn of_bytes(spec: TcpSpec, bytes: u64) -> Pair {
        spec.check().expect("the parameters work");
        let sender = Sender::new(&spec, bytes, Time::ZERO);
        Pair {
            sizes: WireSizes::new(&spec, Bytes(0)),
            receiver: Receiver::new(sender.segments()),
            sender,
            spec,
            now: Time::ZERO,
            options: OptionStore::default(),
            wires: vec![],
            script: vec![],
            spacing: Time::ZERO,
            last: [Time::ZERO; 2],
            log: vec![],
            received: None,
        }
    }

    /// The next sending of `what` is lost; named twice, the one after as well.
    pub fn lose(self, what: What) -> Pair {
        self.script(what, Fate::Lost)
    }

    /// The next sending of `what` arrives later than others by `time`.
    pub fn delay(self, what: What, time: Time) -> Pair {
        self.script(what, Fate::Late(time))
    }

    /// The next sending of `what` meets congestion, if it may be marked.
    pub fn mark(self, what: What) -> Pair {
        self.script(what, Fate::Marked)
    }

    /// The next sending of `what` arrives twice.
    pub fn duplicate(self, what: What) -> Pair {
        self.script(what, Fate::Twice)
    }

    /// Packets arrive apart.
    pub fn spaced(mut self, spacing: Time) -> Pair {
        self.spacing = spacing;
        self
    }

    fn script(mut self, what: What, fate: Fate) -> Pair {
        self.script.push((what, fate));
        self
    }

    /// Lets everything happen. Both ends fall silent, and whatever carried options has given them
    /// back.
    pub fn run(self) -> Pair {
        let pair = self.run_loosely();
        assert!(pair.script.is_empty(), "never sent: {:?}", pair.script);
        pair
    }

    /// The same with a script that may name packets that are never sent.
    pub fn run_loosely(mut self) -> Pair {
        while self.step() {}
        assert_eq!(self.options.live(), 0, "options leak");
        self
    }

    /// The same up to a time.
    pub fn run_until(mut self, end: Time) -> Pair {
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = end;
        self
    }

    fn next(&self) -> Option<Time> {
        let arrival = self.wires.iter().map(|(time, _)| *time).min();
        let times = [arrival, Some(self.sender.deadline()), Some(self.receiver.deadline())];
        times.into_iter().flatten().min().filter(|time| *time < Time::NEVER)
    }

    /// The next thing happens: arrivals come before timers.
    fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        assert!(self.log.len() < 100_000, "the connection never ends");
        let arrival = (0..self.wires.len()).min_by_key(|&at| (self.wires[at].0, at));
        match arrival.filter(|&at| self.wires[at].0 <= self.now) {
            Some(at) => {
                let (_, segment) = self.wires.remove(at);
                self.arrive(segment);
            }
            None => {
                if self.receiver.deadline() <= self.now {
                    self.receiver.on_timer(&self.spec, self.now);
                }
                if self.sender.deadline() <= self.now {
                    self.sender.on_timer(&self.spec, self.now);
                }
            }
        }
        self.poll();
        true
    }

    fn arrive(&mut self, segment: Segment) {
        if segment.flags.has(Flags::TO_SENDER) {
            self.sender.on_packet(&self.spec, self.now, &segment, &self.options);
        } else if self.receiver.on_packet(&self.spec, self.now, &segment, &self.options) {
            self.received = Some(self.now);
        }
        self.options.release(segment.options);
    }

    /// Puts on the wires what the ends have to send.
    pub fn poll(&mut self) {
        let (now, options) = (self.now, &mut self.options);
        let mut sent = vec![];
        while let Some(segment) =
            self.receiver.poll_transmit(&self.spec, &self.sizes, now, None, options)
        {
            sent.push(segment);
        }
        while let Some(transmit) = self.sender.poll_transmit(&self.spec, now) {
            sent.push(self.sender.packet(&self.spec, &self.sizes, now, transmit, None, options));
        }
        sent.into_iter().for_each(|segment| self.send(segment));
    }

    fn send(&mut self, mut segment: Segment) {
        let what = name(&segment);
        let carried = self.options.get(segment.options);
        self.log.push(Sent {
            at: self.now,
            what,
            flags: segment.flags,
            wire_bytes: segment.wire_bytes,
            blocks: carried.blocks,
            timestamps: carried.timestamps,
        });
        let scripted = self.script.iter().position(|(scripted, _)| *scripted == what);
        let last = &mut self.last[usize::from(segment.flags.has(Flags::TO_SENDER))];
        *last = (self.now + DELAY).max(*last + self.spacing);
        let mut arrives = *last;
        match scripted.map(|at| self.script.remove(at).1) {
            Some(Fate::Lost) => return self.options.release(segment.options),
            Some(Fate::Late(time)) => arrives += time,
            Some(Fate::Marked) if segment.flags.has(Flags::ECN_CAPABLE) => {
                segment.flags = segment.flags | Flags::CONGESTION_EXPERIENCED;
            }
            Some(Fate::Twice) => {
                let mut copy = segment;
                if OptionStore::holds(copy.options) {
                    let stored = self.options.get(copy.options);
                    let options = self.options.insert(stored.blocks);
                    copy.options = self.options.stamp(options, stored.timestamps);
                }
                self.wires.push((arrives, copy));
            }
            Some(Fate::Marked) | None => {}
        }
        self.wires.push((arrives, segment));
    }

    /// When packets of this name left, in microseconds.
    pub fn times(&self, what: What) -> Vec<u64> {
        self.of(what).map(|sent| sent.at.as_ns() / 1_000).collect()
    }

    /// Packets of this name.
    pub fn of(&self, what: What) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(move |sent| sent.what == what)
    }

    /// The first packet of this name.
    pub fn first(&self, what: What) -> &Sent {
        self.of(what).next().unwrap_or_else(|| panic!("{what:?} was never sent"))
    }

    /// Segments with data in the order in which they left.
    pub fn data(&self) -> Vec<u32> {
        let seq = |sent: &Sent| match sent.what {
            What::Data(seq) => Some(seq),
            _ => None,
        };
        self.log.iter().filter_map(seq).collect()
    }

    /// Acknowledgements in the order in which they left.
    pub fn acks(&self) -> Vec<u32> {
        let ack = |sent: &Sent| match sent.what {
            What::Ack(ack) => Some(ack),
            _ => None,
        };
        self.log.iter().filter_map(ack).collect()
    }

    pub fn counters(&self) -> SenderCounters {
        self.sender.counters()
    }

    /// All data has arrived and the sender knows.
    pub fn done(&self) -> bool {
        self.received.is_some() && self.sender.phase() == ConnectionState::Done
    }

    /// When the last byte arrived, in microseconds.
    pub fn finished(&self) -> u64 {
        self.received.expect("all data has arrived").as_ns() / 1_000
    }
}

fn name(segment: &Segment) -> What {
    let Segment { seq, flags, .. } = *segment;
    match (flags.has(Flags::TO_SENDER), flags.has(Flags::SYN)) {
        _ if flags.has(Flags::RST) => What::Reset,
        (false, true) => What::Syn,
        (true, true) => What::SynAck,
        (true, false) => What::Ack(seq),
        (false, false) if flags.has(Flags::DATA) => What::Data(seq),
        (false, false) => What::Last,
    }
}
