//! Random partners of a host: all different, and never the host itself.

use tailcut_engine::RandomStream;

use super::TrafficError;
use crate::topology::HostId;

/// All hosts, in the order left by earlier draws.
pub(super) struct Partners {
    hosts: Vec<HostId>,
    count: usize,
}

impl Partners {
    /// Prepares to draw `count` partners at a time. `field` is the name of that number in the
    /// experiment.
    ///
    /// # Errors
    /// Refuses a `count` of 0, and one that exceeds the number of other hosts.
    pub fn new(
        hosts: u32,
        count: u32,
        code: &'static str,
        field: &str,
        hint: &str,
    ) -> Result<Partners, TrafficError> {
        if count == 0 || count >= hosts {
            let most = hosts.saturating_sub(1);
            let error = format!("{field} = {count}: {hosts} hosts allow from 1 to {most}");
            return Err(TrafficError::new(code, field, error).hint(hint));
        }
        Ok(Partners { hosts: (0..hosts).map(HostId).collect(), count: count as usize })
    }

    /// Draws the partners of `host`.
    pub fn draw(&mut self, host: HostId, stream: &mut RandomStream) -> &[HostId] {
        // The host itself goes last; the partners are drawn to the front (partial Fisher-Yates).
        let last = self.hosts.len() - 1;
        let place = self.hosts.iter().position(|&h| h == host).expect("every host is listed");
        self.hosts.swap(place, last);
        for i in 0..self.count {
            self.hosts.swap(i, i + stream.below((last - i) as u64) as usize);
        }
        &self.hosts[..self.count]
    }
}
