//! The state machine of a policy: events of a flow's connections go in, actions of the hosts come
//! out. It does no input or output and reads no clock, so that a script of events tests it as a
//! whole.
//!
//! A flow has two ends, and so has the machine: each learns of the other only by packets.

use std::fmt::Debug;

use tailcut_engine::Time;

use super::Policy;
use crate::component::SpecError;
#[cfg(test)]
use crate::topology::HostId;
use crate::traffic::Flow;

/// An event of a flow at its sending host. Copies are numbered from 0, the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyEvent {
    /// The application has the flow to send.
    Started,
    /// The handshake of a connection is complete at its sender.
    Established {
        /// The copy that the connection carries.
        copy: u8,
    },
    /// The sender of a connection knows that all that it carries has arrived.
    Acknowledged {
        /// The copy that the connection carries.
        copy: u8,
        /// No other copy had arrived before, as the acknowledgement says.
        first: bool,
    },
    /// The time has come that [`PolicyAction::WakeAt`] asked for.
    Timer,
}

/// An action of the sending host; actions are carried out in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyAction {
    /// Open a connection.
    Open(OpenConnection),
    /// The sender knows that the flow is complete.
    Confirm,
    /// Give up every connection of the flow but one.
    AbandonOthers {
        /// The copy that stays.
        but: u8,
    },
    /// Send [`PolicyEvent::Timer`] at this time.
    WakeAt(Time),
}

/// An action of the receiving host; actions are carried out in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverAction {
    /// The flow is complete, by this copy.
    Finish {
        /// The copy that has won.
        copy: u8,
    },
    /// Reset every connection of the flow but one.
    ResetOthers {
        /// The copy that stays.
        but: u8,
    },
}

/// A connection to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenConnection {
    /// Goes to the copy-th port after the service's, so that ECMP gives it a path of its own.
    pub copy: u8,
    /// Comes from the piece-th port after the flow's, to the same end.
    pub piece: u64,
    /// The first byte of the flow that it carries.
    pub from: u64,
    /// The bytes that it carries.
    pub bytes: u64,
    /// The time of its SYN.
    pub at: Time,
}

/// The state of a flow at the sending host between events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sent {
    /// Whether any connection has been established.
    pub established: bool,
    /// The sender knows that the flow is over.
    pub confirmed: bool,
    /// Bytes given to connections.
    pub handed: u64,
}

/// The state of a flow at the receiving host between events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrived {
    /// The copy that brought the flow's last byte first.
    pub winner: Option<u8>,
    /// Connections of which all has arrived.
    pub connections: u64,
}

/// A flow, as a policy sees it at the sending host.
#[derive(Debug)]
pub struct Sending<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// The state of this host.
    pub sent: &'a mut Sent,
    /// The time of the event.
    pub now: Time,
}

/// A flow, as a policy sees it at the receiving host.
#[derive(Debug)]
pub struct Receiving<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// The state of this host.
    pub arrived: &'a mut Arrived,
}

/// A policy at work on all flows of a run. What it keeps besides, it keeps by sending hosts.
pub trait Replicate: Debug + Send {
    /// Handles an event at the sender; appends the actions that follow to `actions`.
    fn on_event(&mut self, event: PolicyEvent, view: Sending<'_>, actions: &mut Vec<PolicyAction>);
    /// Handles, at the receiver, the in-order arrival of all that a copy's connection carries;
    /// appends the actions that follow to `answers`.
    fn received(&self, copy: u8, view: Receiving<'_>, answers: &mut Vec<ReceiverAction>);
}

/// The way in which a policy carries a flow of some size, as far as it is known before the flow
/// starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicationPlan {
    /// Copies of the flow, the original included, at most.
    pub copies: u32,
    /// Copies besides the original, as expected.
    pub expected_extra_copies: f64,
    /// The least time between the starts of two copies.
    pub delay: Time,
    /// Every copy sends data; otherwise only the one that is established first.
    pub all_send: bool,
    /// Bytes of each connection where one after the other carries a piece of the flow.
    pub piece: Option<u64>,
}

impl ReplicationPlan {
    /// One connection carries the whole flow.
    pub const SINGLE: ReplicationPlan = ReplicationPlan {
        copies: 1,
        expected_extra_copies: 0.0,
        delay: Time::ZERO,
        all_send: false,
        piece: None,
    };

    /// Returns the plan of `copies` copies, each `delay` after the one before.
    pub fn copied(copies: u32, delay: Time) -> ReplicationPlan {
        let further = f64::from(copies) - 1.0;
        ReplicationPlan {
            copies,
            expected_extra_copies: further,
            delay,
            all_send: true,
            piece: None,
        }
    }

    /// Opens every copy of the whole flow, each its delay after the one before.
    pub fn open_all(&self, view: &mut Sending<'_>, actions: &mut Vec<PolicyAction>) {
        for copy in 0..self.copies {
            let at = view.now + Time(self.delay.0 * u64::from(copy));
            view.open_whole(copy as u8, at, actions);
        }
    }
}

/// The policy without replication.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoReplication;

impl Policy for NoReplication {
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    fn replication_plan(&self, _: u64) -> ReplicationPlan {
        ReplicationPlan::SINGLE
    }
    fn instantiate(&self, _: u32) -> Box<dyn Replicate> {
        Box::new(*self)
    }
}

impl Replicate for NoReplication {
    fn on_event(
        &mut self,
        event: PolicyEvent,
        mut view: Sending<'_>,
        actions: &mut Vec<PolicyAction>,
    ) {
        match event {
            PolicyEvent::Started => view.open_whole(0, view.now, actions),
            event => drop(view.first_wins(event, actions)),
        }
    }

    fn received(&self, copy: u8, mut view: Receiving<'_>, answers: &mut Vec<ReceiverAction>) {
        view.first_wins(copy, answers);
    }
}

impl Sending<'_> {
    /// Opens a connection for the whole flow.
    pub fn open_whole(&mut self, copy: u8, at: Time, actions: &mut Vec<PolicyAction>) {
        let bytes = self.flow.bytes;
        self.sent.handed = bytes;
        actions.push(PolicyAction::Open(OpenConnection { copy, piece: 0, from: 0, bytes, at }));
    }

    /// Ends the flow when its sender learns that the first of its whole copies is done. Returns
    /// true if this event reports that.
    pub fn first_wins(&mut self, event: PolicyEvent, actions: &mut Vec<PolicyAction>) -> bool {
        let over = matches!(event, PolicyEvent::Acknowledged { first: true, .. });
        if over {
            self.sent.confirmed = true;
            actions.push(PolicyAction::Confirm);
        }
        over
    }

    /// Ends the flow as [`Sending::first_wins`] does, and abandons the other copies at the sender.
    pub fn first_wins_and_abandons(
        &mut self,
        event: PolicyEvent,
        actions: &mut Vec<PolicyAction>,
    ) -> bool {
        let over = self.first_wins(event, actions);
        if let (true, PolicyEvent::Acknowledged { copy, .. }) = (over, event) {
            actions.push(PolicyAction::AbandonOthers { but: copy });
        }
        over
    }
}

impl Receiving<'_> {
    /// The flow is over when the first of its whole copies is: true if this one ends it.
    pub fn first_wins(&mut self, copy: u8, answers: &mut Vec<ReceiverAction>) -> bool {
        let over = self.arrived.winner.is_none();
        if over {
            self.arrived.winner = Some(copy);
            answers.push(ReceiverAction::Finish { copy });
        }
        over
    }

    /// Ends the flow as [`Receiving::first_wins`] does, and resets the other copies at the
    /// receiver.
    pub fn first_wins_and_resets(&mut self, copy: u8, answers: &mut Vec<ReceiverAction>) {
        if self.first_wins(copy, answers) {
            answers.push(ReceiverAction::ResetOthers { but: copy });
        }
    }
}

/// A policy on one flow, event by event: what tests write.
#[cfg(test)]
pub(super) struct Script {
    policy: Box<dyn Replicate>,
    flow: Flow,
    sent: Sent,
    arrived: Arrived,
}

#[cfg(test)]
impl Script {
    pub fn new(policy: &impl Policy, bytes: u64) -> Script {
        Script {
            policy: policy.instantiate(2),
            flow: Flow { src: HostId(0), dst: HostId(1), bytes, start: Time::ZERO, id: 0 },
            sent: Sent::default(),
            arrived: Arrived::default(),
        }
    }

    /// Returns the actions that follow from an event at a time in microseconds.
    pub fn at(&mut self, us: u64, event: PolicyEvent) -> Vec<PolicyAction> {
        let mut actions = vec![];
        let Script { policy, flow, sent, .. } = self;
        policy.on_event(event, Sending { flow, sent, now: Time::from_us(us) }, &mut actions);
        actions
    }

    /// Returns the receiver's actions when all that a copy carries has arrived.
    pub fn received(&mut self, copy: u8) -> Vec<ReceiverAction> {
        let mut answers = vec![];
        let Script { policy, flow, arrived, .. } = self;
        policy.received(copy, Receiving { flow, arrived }, &mut answers);
        answers
    }

    /// The next flow of the same host, from some time on, in microseconds.
    pub fn next_flow(&mut self, us: u64, bytes: u64) {
        let flow = Flow { bytes, start: Time::from_us(us), id: self.flow.id + 1, ..self.flow };
        (self.flow, self.sent, self.arrived) = (flow, Sent::default(), Arrived::default());
    }

    /// A connection for the whole flow.
    pub fn open(&self, copy: u8, us: u64) -> PolicyAction {
        let bytes = self.flow.bytes;
        PolicyAction::Open(OpenConnection { copy, piece: 0, from: 0, bytes, at: Time::from_us(us) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PolicyAction::Confirm;
    use PolicyEvent::{Acknowledged, Established, Started};
    use ReceiverAction::Finish;

    #[test]
    fn a_flow_alone_opens_one_connection_and_ends_with_it() {
        let mut script = Script::new(&NoReplication, 5_000);
        assert_eq!(script.at(3, Started), [script.open(0, 3)]);
        assert_eq!(script.at(5, Established { copy: 0 }), []);
        assert_eq!(script.received(0), [Finish { copy: 0 }]);
        assert_eq!(script.at(11, Acknowledged { copy: 0, first: true }), [Confirm]);
    }
}
