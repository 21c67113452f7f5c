//! Pacing: when the next segment may leave.

use tailcut_engine::Time;

/// The spacing of segments that an algorithm asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pacing {
    /// None: only the window limits the sender.
    #[default]
    None,
    /// A rate in bytes per second.
    Rate(u64),
    /// A rate that begins after a number of segments.
    Later {
        /// Segments that leave at once.
        segments: u32,
        /// Bytes per second.
        rate: u64,
    },
    /// A gap between segments, whatever their size, for windows below one segment. The last ACK
    /// decides it, also if the segment before left under another gap or under none.
    Gap(Time),
}

/// The release times of one connection.
#[derive(Debug, Clone, Copy)]
pub(in crate::transport::tcp) struct Pacer {
    pub pacing: Pacing,
    /// The earliest departure by the rate.
    next: Time,
    /// The departure of the last segment.
    last: Option<Time>,
    /// The time at which a held-back segment may leave.
    pub wake: Time,
}

impl Pacer {
    pub fn new() -> Pacer {
        Pacer { pacing: Pacing::None, next: Time::ZERO, last: None, wake: Time::NEVER }
    }

    /// Returns whether a segment may leave now; otherwise arms the timer.
    pub fn releases(&mut self, now: Time) -> bool {
        let due = match self.pacing {
            Pacing::None => Time::ZERO,
            Pacing::Gap(gap) => self.last.map_or(Time::ZERO, |last| last + gap),
            Pacing::Rate(_) | Pacing::Later { .. } => self.next,
        };
        let released = due <= now;
        self.wake = if released { Time::NEVER } else { due };
        released
    }

    /// A segment of so many bytes leaves.
    pub fn on_send(&mut self, bytes: u64, now: Time) {
        self.last = Some(now);
        let gap = match self.pacing {
            Pacing::None | Pacing::Gap(_) => return,
            Pacing::Later { segments: 0 | 1, rate } => return self.pacing = Pacing::Rate(rate),
            Pacing::Later { segments, rate } => {
                return self.pacing = Pacing::Later { segments: segments - 1, rate };
            }
            Pacing::Rate(rate) => {
                let time = u128::from(bytes) * 1_000_000_000_000 / u128::from(rate.max(1));
                Time(u64::try_from(time).unwrap_or(u64::MAX / 2))
            }
        };
        // What was not used is not saved up.
        self.next = now.max(self.next) + gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_pacing_everything_leaves_at_once() {
        let mut pacer = Pacer::new();
        pacer.on_send(1_500, Time::ZERO);
        assert!(pacer.releases(Time::ZERO));
        assert_eq!(pacer.wake, Time::NEVER);
    }

    #[test]
    fn a_rate_spaces_segments_by_their_size() {
        let mut pacer = Pacer { pacing: Pacing::Rate(125_000_000), ..Pacer::new() };
        pacer.on_send(1_500, Time::ZERO);
        assert!(!pacer.releases(Time::ZERO));
        assert_eq!(pacer.wake, Time::from_us(12));
        assert!(pacer.releases(Time::from_us(12)));
    }

    #[test]
    fn a_gap_spaces_segments_whatever_their_size() {
        let gap = Time::from_us(100);
        let mut pacer = Pacer { pacing: Pacing::Gap(gap), ..Pacer::new() };
        pacer.on_send(1, Time::ZERO);
        assert!(!pacer.releases(Time::from_us(99)));
        assert!(pacer.releases(gap));
    }

    #[test]
    fn a_gap_is_what_it_has_become_since_the_last_segment_left() {
        let mut pacer = Pacer { pacing: Pacing::Gap(Time::from_us(100)), ..Pacer::new() };
        assert!(pacer.releases(Time::ZERO));
        pacer.on_send(1, Time::from_us(10));
        pacer.pacing = Pacing::Gap(Time::from_us(200));
        assert!(!pacer.releases(Time::from_us(209)));
        assert_eq!(pacer.wake, Time::from_us(210));
        pacer.pacing = Pacing::Gap(Time::from_us(50));
        assert!(pacer.releases(Time::from_us(60)));
    }

    #[test]
    fn a_gap_holds_from_a_segment_that_left_without_one() {
        let mut pacer = Pacer::new();
        pacer.on_send(1, Time::from_us(10));
        pacer.pacing = Pacing::Gap(Time::from_us(100));
        assert!(!pacer.releases(Time::from_us(109)));
        assert!(pacer.releases(Time::from_us(110)));
    }

    #[test]
    fn a_rate_may_begin_after_some_segments() {
        let later = Pacing::Later { segments: 2, rate: 125_000_000 };
        let mut pacer = Pacer { pacing: later, ..Pacer::new() };
        for _ in 0..2 {
            assert!(pacer.releases(Time::ZERO));
            pacer.on_send(1_500, Time::ZERO);
        }
        assert!(pacer.releases(Time::ZERO));
        pacer.on_send(1_500, Time::ZERO);
        assert!(!pacer.releases(Time::ZERO));
        assert_eq!(pacer.wake, Time::from_us(12));
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut pacer = Pacer { pacing: Pacing::Rate(1_000_000), ..Pacer::new() };
        pacer.on_send(1, Time::from_ms(5));
        assert!(!pacer.releases(Time::from_ms(5)));
    }
}
