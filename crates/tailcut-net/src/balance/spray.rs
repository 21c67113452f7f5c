//! Random packet spraying (Dixit, Prakash, Hu, Kompella, INFOCOM 2013): every
//! packet takes an equal-cost port of its own, uniformly at random.

use tailcut_engine::Stream;

/// One random stream per switch.
#[derive(Debug, Clone)]
pub(crate) struct Spray {
    streams: Vec<Stream>,
}

impl Spray {
    pub fn new(switches: u32, seed: u64) -> Spray {
        let stream = |switch| Stream::new(seed, u64::from(switch), "spray");
        Spray { streams: (0..switches).map(stream).collect() }
    }

    #[inline]
    pub fn pick(&mut self, switch: u32, choices: u32) -> u32 {
        self.streams[switch as usize].below(u64::from(choices)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_gets_an_equal_share_of_the_packets() {
        let mut spray = Spray::new(2, 7);
        let mut counts = [0.0f64; 8];
        (0..80_000).for_each(|_| counts[spray.pick(1, 8) as usize] += 1.0);
        let chi2: f64 = counts.iter().map(|n| (n - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 24.32, "chi-squared {chi2} exceeds the 0.1 % point of 7 degrees of freedom");
    }
}
