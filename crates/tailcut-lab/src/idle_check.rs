//! Verdict of the idle flows: single flows sent before and after a run, while nothing else crosses
//! the fabric.

use serde::{Deserialize, Serialize};

/// How late the idle flows arrived, before or after a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IdleCheck {
    /// The lateness of each flow in nanoseconds; none if it did not arrive.
    pub late_ns: Vec<Option<i64>>,
    /// The largest permitted median, in nanoseconds.
    pub allowed_ns: u64,
}

impl IdleCheck {
    /// Returns why the machine does not keep time, if it does not. `when` is "before" or "after".
    pub fn reason(&self, when: &str) -> Option<String> {
        let mut late: Vec<i64> = self.late_ns.iter().map(|late| late.unwrap_or(i64::MAX)).collect();
        late.sort_unstable();
        let (first, median) = (*late.first()?, late[late.len() / 2]);
        match median {
            _ if first < 0 => Some(format!(
                "{when} the run a test flow on the idle fabric was faster than the \
                              physical minimum: clocks or rates are off"
            )),
            i64::MAX => {
                Some(format!("{when} the run test flows on the idle fabric did not arrive"))
            }
            median if median as u64 > self.allowed_ns => {
                let ms = median as f64 / 1e6;
                Some(format!(
                    "{when} the run test flows on the idle fabric took {ms:.2} ms \
                              (median) longer than the closed form allows"
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(late_us: &[i64]) -> Option<String> {
        let late_ns = late_us.iter().map(|us| Some(us * 1_000)).collect();
        IdleCheck { late_ns, allowed_ns: 300_000 }.reason("before")
    }

    #[test]
    fn the_median_lateness_or_one_impossibly_fast_flow_fails_the_check() {
        assert_eq!(alone(&[]), None);
        assert_eq!(alone(&[12, 300, 9_000, 20, 8_000]), None);
        let late = alone(&[12, 301, 9_000, 20, 8_000]).expect("it is late");
        assert!(
            late.contains(
                "before the run test flows on the idle fabric took 0.30 ms (median) longer"
            ),
            "{late}"
        );
        assert!(alone(&[12, 13, -1, 14, 15]).expect("it is early").contains("faster"));
        let lost = IdleCheck { late_ns: vec![Some(5), None, None], allowed_ns: 300_000 };
        assert!(lost.reason("after").expect("they are lost").contains("did not arrive"));
        let lost = IdleCheck { late_ns: vec![Some(5), Some(6), None], allowed_ns: 300_000 };
        assert_eq!(lost.reason("after"), None);
    }
}
