//! Events of a Node process, a line each.

use std::net::SocketAddrV4;
use std::str::Split;

use tailcut_net::traffic::demand::Signal;

use crate::messages::{ACKNOWLEDGED, RECEIVED, WRONG};

/// An event of a Node process.
#[derive(Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// The flow finished at this time (monotonic), in the sense of the signal.
    Over(u64, Signal, u64),
    /// The connection from this address carries a long flow.
    Long(SocketAddrV4),
    /// An error occurred, which the report describes.
    Wrong,
}

impl NodeEvent {
    /// Parses a line; none if it is not an event.
    pub fn parse(line: &str) -> Option<NodeEvent> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let over = |mut words: Split<'_, char>, signal| {
            let (flow, at_ns) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(NodeEvent::Over(flow, signal, at_ns))
        };
        match kind.as_bytes() {
            [b'l'] => {
                let from = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                Some(NodeEvent::Long(SocketAddrV4::new(from.0, from.1)))
            }
            [RECEIVED] => over(words, Signal::Received),
            [ACKNOWLEDGED] => over(words, Signal::Acknowledged),
            [WRONG] => Some(NodeEvent::Wrong),
            _ => None,
        }
    }

    /// Returns the event's letter for the supervisor, if it is notified.
    pub fn letter(&self) -> Option<u8> {
        match self {
            NodeEvent::Over(_, Signal::Received, _) => Some(RECEIVED),
            NodeEvent::Over(_, Signal::Acknowledged, _) => Some(ACKNOWLEDGED),
            NodeEvent::Over(_, Signal::Sent, _) | NodeEvent::Long(_) => None,
            NodeEvent::Wrong => Some(WRONG),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::address;

    #[test]
    fn lines_of_node_are_parsed_into_events() {
        assert_eq!(NodeEvent::parse("r 17 900"), Some(NodeEvent::Over(17, Signal::Received, 900)));
        assert_eq!(NodeEvent::parse("a 3 12"), Some(NodeEvent::Over(3, Signal::Acknowledged, 12)));
        let from = SocketAddrV4::new(address(3), 21);
        assert_eq!(NodeEvent::parse(&format!("l {} 21", address(3))), Some(NodeEvent::Long(from)));
        assert_eq!(NodeEvent::parse("w"), Some(NodeEvent::Wrong));
        for strange in ["", "r", "r 17", "a x 1", "l", "l 1.2.3.4 65536", "hello 1 2"] {
            assert_eq!(NodeEvent::parse(strange), None, "{strange:?}");
        }
        let letters = ["r 1 2", "a 1 2", "l 1.2.3.4 21", "w"]
            .map(|line| NodeEvent::parse(line).map(|e| e.letter()));
        assert_eq!(
            letters,
            [Some(Some(RECEIVED)), Some(Some(ACKNOWLEDGED)), Some(None), Some(Some(WRONG))]
        );
    }
}
