//! Known departures from the RFCs that can be switched on, one by one or all of a simulator's, to
//! compare with it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A departure from the RFCs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deviation {
    /// The name in experiment files.
    pub name: &'static str,
    /// The rule, in a sentence.
    pub what: &'static str,
    /// The function of the other implementation.
    pub source: &'static str,
}

macro_rules! departures {
    (
        $($field:ident, $name:literal, $what:literal, $source:literal;)*
        => only by name:
        $($single:ident, $single_name:literal, $single_what:literal, $single_source:literal;)*
    ) => {
        /// The departures that are switched on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Imitation {
            $(#[doc = $what] pub $field: bool,)*
            $(#[doc = $single_what] pub $single: bool,)*
        }

        /// The departures of `"ns-3"`.
        pub const DEPARTURES: &[Deviation] =
            &[$(Deviation { name: $name, what: $what, source: $source }),*];

        /// The departures of ns-3.10, which `"ns-3"` does not include.
        pub const OLDER_DEPARTURES: &[Deviation] = &[$(
            Deviation { name: $single_name, what: $single_what, source: $single_source }
        ),*];

        impl Imitation {
            /// No departure: the RFCs' rules.
            pub const NONE: Imitation =
                Imitation { $($field: false,)* $($single: false),* };
            /// Everything that a current ns-3 does and that decides results.
            pub const NS3: Imitation =
                Imitation { $($field: true,)* $($single: false),* };

            /// The departures of these names.
            ///
            /// # Errors
            /// The first name that none has.
            pub fn of<'a>(names: &[&'a str]) -> Result<Imitation, &'a str> {
                let mut imitation = Imitation::NONE;
                for name in names {
                    match *name {
                        $($name => imitation.$field = true,)*
                        $($single_name => imitation.$single = true,)*
                        unknown => return Err(unknown),
                    }
                }
                Ok(imitation)
            }

            /// The names of the departures that are switched on.
            pub fn names(&self) -> Vec<&'static str> {
                let mut names = vec![];
                $(if self.$field { names.push($name); })*
                $(if self.$single { names.push($single_name); })*
                names
            }
        }
    };
}

departures! {
    ties_as_scheduled, "ties-as-scheduled",
        "Of events of one instant the one that was scheduled first comes first, in place of `queue.ties`: of equal packets the \
         arrival goes before the end of a transmission, an ACK that meets the end of a data packet after it.",
        "ns-3, PointToPointNetDevice::TransmitStart";
    repeated_syn_ack_resets, "repeated-syn-ack-resets",
        "A repeated SYN-ACK sets window and threshold back to those of a new connection.",
        "ns-3, TcpSocketBase::DoForwardUp";
    repeated_syn_ack_is_ignored, "repeated-syn-ack-is-ignored",
        "A repeated SYN-ACK is not acknowledged (against RFC 9293 section 3.10.7.4).",
        "ns-3, TcpSocketBase::ProcessEstablished";
    repeated_syn_ack_is_silent, "repeated-syn-ack-is-silent",
        "A repeated SYN-ACK lets nothing out but its ACK: what its reset of the window allows waits for the next ACK or timeout.",
        "ns-3, TcpSocketBase::ProcessEstablished";
    syns_beside_timer, "syns-beside-timer",
        "A repeated SYN is answered beside the timer of the SYN-ACK, whose next back-off counts that answer.",
        "ns-3, TcpSocketBase::ProcessSynRcvd";
    early_fin_is_ignored, "early-fin-is-ignored",
        "Before the handshake ends at the receiver, a segment with the FIN is ignored unless it is the one expected.",
        "ns-3, TcpSocketBase::ProcessSynRcvd";
    repeated_syn_measures, "repeated-syn-measures",
        "A repeated SYN gives a round-trip sample, from the first sending on (against Karn's algorithm).",
        "ns-3, TcpSocketBase::EstimateRtt";
    rtt_rounds_once, "rtt-rounds-once",
        "The smoothed round trip and its variation are rounded down once per sample, to ns-3's unit of time: picoseconds here.",
        "ns-3, RttMeanDeviation::IntegerUpdate";
    any_ack_ends_back_off, "any-ack-ends-back-off",
        "Any ACK of new data ends the back-off of the retransmission timer (RFC 6298 waits for a measurement).",
        "ns-3, TcpSocketBase::NewAck";
    timeout_halves_anew, "timeout-halves-anew",
        "Each timeout reduces the threshold, also those of one segment in a row (against RFC 5681, equation 4).",
        "ns-3, TcpSocketBase::ReTxTimeout";
    timeout_forgets_send_times, "timeout-forgets-send-times",
        "After a timeout the first segment sent since gives the next round-trip sample.",
        "ns-3, TcpSocketBase::ReTxTimeout";
    timeout_ends_in_open, "timeout-ends-in-open",
        "Under SACK, the ACK that ends what a timeout began opens the window only by what it tells beyond that, and its news of \
         further gaps waits for the next ACK.",
        "ns-3, TcpSocketBase::ProcessAck";
    one_partial_ack_rearms, "one-partial-ack-rearms",
        "Under SACK, too, only the first partial ACK of a recovery restarts the timer (RFC 6582 step 3 is for NewReno).",
        "ns-3, TcpSocketBase::ProcessAck";
    window_announced, "window-announced",
        "A receiver announces the window that a read opens, by one ACK more, if its scaled value was below the bytes of an MSS \
         before: the window field is compared with an MSS without the scale (RFC 7323 section 2.3).",
        "ns-3, TcpSocketBase::Recv";
    three_packet_close, "three-packet-close",
        "A receiver ends a connection with an ACK of the data, its FIN and one more ACK, where one packet does.",
        "ns-3, TcpSocketBase::DoPeerClose";
    fin_repeats, "fin-repeats",
        "A receiver's FIN is repeated by two timers until it is acknowledged; a sender acknowledges the first \
         only.",
        "ns-3, TcpSocketBase::LastAckTimeout";
    four_blocks, "four-blocks",
        "The receiver remembers four blocks: a fifth is forgotten for good, and what joins a forgotten block is reported without \
         it; a segment that it holds already leaves their order alone (against RFC 2018 section 4).",
        "ns-3, TcpRxBuffer::UpdateSackList";
    doubt_overtakes, "doubt-overtakes",
        "What the ACK in hand newly reports has overtaken every retransmission that left before, be it in doubt which of its \
         sendings arrived (RFC 8985 leaves it out then); earlier reports count no more.",
        "ns-3, TcpTxBuffer::MarkRetransmittedSegmentsLost";
    doubt_without_sack, "doubt-without-sack",
        "NextSeg rule 3 goes by marks in place of HighRxt, and without any SACK above the first outstanding segment it takes \
         whatever is neither lost nor sent again (against RFC 6675, which has nothing to send then).",
        "ns-3, TcpTxBuffer::NextSeg";
    advancing_sack_waits, "advancing-sack-waits",
        "Outside recovery, an ACK that advances and reports something beyond a gap neither opens the window nor restarts the \
         timer, and duplicates are counted on over it; one that advances and reports nothing ends the disorder.",
        "ns-3, TcpSocketBase::ProcessAck";
    slow_start_grows_twice, "slow-start-grows-twice",
        "The ACK of several segments with which slow start reaches the threshold opens the window in congestion avoidance, too.",
        "ns-3, TcpNewReno::IncreaseWindow";
    prr_twice, "prr-twice",
        "In recovery, an ACK that advances and reports something beyond a gap goes through PRR twice: its bytes count twice.",
        "ns-3, TcpSocketBase::ProcessAck";
    repair_is_safe, "repair-is-safe",
        "For PRR an ACK is safe if it covers a retransmission (RFC 9937: if it advances and tells of no further loss).",
        "ns-3, TcpPrrRecovery::DoRecovery";
    pipe_is_halved, "pipe-is-halved",
        "Under SACK, recovery halves what is thought to be in the network (RFC 6675 step 4.2: what is outstanding).",
        "ns-3, TcpSocketBase::EnterRecovery";
    recovery_repeats_first, "recovery-repeats-first",
        "Under SACK, a recovery begins with the first segment even where that was sent again just before and may be under way \
         (RFC 6675 step 4.3 by the letter).",
        "ns-3, TcpSocketBase::EnterRecovery";
    partial_ack_sends, "partial-ack-sends",
        "Under SACK, a partial ACK sends one segment whatever the window says: lost, else new, else the first.",
        "ns-3, TcpSocketBase::ProcessAck";
    short_last_again, "short-last-again",
        "Under SACK, a partial ACK sends the first outstanding segment again though it may be under way, if that is shorter than \
         an MSS: ns-3 asks for a retransmission that ends an MSS beyond the ACK.",
        "ns-3, TcpSocketBase::ProcessAck";
    fin_ends_open, "fin-ends-open",
        "Under SACK, a sender whose FIN has left sends nothing while it is neither in disorder nor in recovery, whatever is \
         known to be lost.",
        "ns-3, TcpSocketBase::SendPendingData";
    lost_waits_for_sack, "lost-waits-for-sack",
        "Under SACK, what a timeout has declared lost above the highest selective acknowledgement is not sent again before that \
         is acknowledged; new data is sent instead (NextSeg rule 1.b of RFC 6675, against its section 5.1).",
        "ns-3, TcpTxBuffer::NextSeg";
    no_rescue, "no-rescue",
        "Under SACK, there is no rescue retransmission (NextSeg rule 4 of RFC 6675).",
        "ns-3, TcpTxBuffer::NextSeg";
    guessed_scoreboard, "guessed-scoreboard",
        "Without SACK, a scoreboard by guesses stands in for the inflated window; duplicate ACKs of where the last recovery \
         or timeout ended count; a timeout sends everything again.",
        "ns-3, TcpTxBuffer::AddRenoSack";
    => only by name:
    duplicates_after_timeout, "duplicates-after-timeout",
        "Without SACK, duplicate ACKs also count before what a timeout lost is acknowledged, and where the last recovery or \
         timeout ended: the third begins a fast retransmit, be needless retransmissions the cause (against RFC 6582).",
        "ns-3.10, TcpNewReno::DupAck";
    go_back_n, "go-back-n",
        "Under SACK, a timeout forgets what was reported to have arrived: everything from the first unacknowledged segment on \
         is sent again, in order, as it always is without SACK.",
        "ns-3.10, TcpNewReno::Retransmit";
}

/// Writes `"none"` or the names in a list, all of ns-3's too: a departure that is added or renamed
/// changes the identity of the runs that use it.
impl Serialize for Imitation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Imitation::NONE => serializer.serialize_str("none"),
            _ => self.names().serialize(serializer),
        }
    }
}

/// Reads `"none"`, `"ns-3"` or a list of names.
impl<'de> Deserialize<'de> for Imitation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            All(String),
            Some(Vec<String>),
        }
        const EXPECTED: &str = "\"none\", \"ns-3\" or a list of departures";
        let unknown = |name: &str| D::Error::invalid_value(Unexpected::Str(name), &EXPECTED);
        match Written::deserialize(deserializer).map_err(|_| D::Error::custom(EXPECTED))? {
            Written::All(name) => match name.as_str() {
                "none" => Ok(Imitation::NONE),
                "ns-3" => Ok(Imitation::NS3),
                _ => Err(D::Error::unknown_variant(&name, &["none", "ns-3"])),
            },
            Written::Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Imitation::of(&names).map_err(unknown)
            }
        }
    }
}

impl JsonSchema for Imitation {
    fn schema_name() -> Cow<'static, str> {
        "Imitation".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |departure: &Deviation| {
            let description = format!("{} ({})", departure.what, departure.source);
            json_schema!({ "type": "string", "const": departure.name, "description": description })
        };
        let each: Vec<Schema> = DEPARTURES.iter().chain(OLDER_DEPARTURES).map(one).collect();
        json_schema!({
            "description": "Known departures from the RFCs that can be switched on, to compare with another simulator.",
            "oneOf": [
                { "type": "string", "const": "none", "description": "None: what the RFCs say." },
                { "type": "string", "const": "ns-3", "description": "All of a current ns-3 that decide results; not those of ns-3.10." },
                { "type": "array", "items": { "oneOf": each }, "uniqueItems": true }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn departures_are_written_as_they_are_read() {
        for written in [json!("none"), json!(["no-rescue", "guessed-scoreboard"])] {
            let imitation: Imitation = from_value(written.clone()).expect("it is known");
            assert_eq!(to_value(imitation).unwrap(), written);
        }
    }

    #[test]
    fn ns3_is_written_as_the_list_of_its_departures() {
        let ns3: Imitation = from_value(json!("ns-3")).expect("it is known");
        assert_eq!(to_value(ns3).unwrap(), json!(Imitation::NS3.names()));
    }

    #[test]
    fn an_unknown_departure_is_named() {
        let refusal = |written| from_value::<Imitation>(written).unwrap_err().to_string();
        assert!(refusal(json!(["rescue"])).contains("rescue"));
        assert!(refusal(json!("ns-2")).contains("ns-2"));
    }

    #[test]
    fn every_departure_has_a_unique_name_a_rule_and_a_source() {
        let names: Vec<&str> = DEPARTURES.iter().map(|departure| departure.name).collect();
        assert_eq!(Imitation::of(&names), Ok(Imitation::NS3));
        assert_eq!(Imitation::NS3.names(), names);
        assert!(DEPARTURES.iter().all(|d| d.what.ends_with('.') && d.source.starts_with("ns-3, ")));
    }

    #[test]
    fn departures_of_ns3_10_are_no_part_of_ns3() {
        let ns3 = Imitation::NS3.names();
        for departure in OLDER_DEPARTURES {
            assert!(departure.what.ends_with('.') && departure.source.starts_with("ns-3.10, "));
            assert!(!ns3.contains(&departure.name), "{}", departure.name);
            let imitation = Imitation::of(&[departure.name]).expect("it is known");
            assert_eq!(imitation.names(), [departure.name]);
        }
    }
}
