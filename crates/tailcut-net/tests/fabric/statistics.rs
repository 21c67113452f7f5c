//! Tests of hypotheses. Every seed is fixed, so a test that passes once always passes; the levels
//! are those that a wrong distribution would exceed.

/// Returns the point that a chi-squared variable of `freedom` degrees exceeds with probability 0.1
/// % (Wilson and Hilferty 1931).
pub fn chi_squared_limit(freedom: usize) -> f64 {
    let n = freedom as f64;
    n * (1.0 - 2.0 / (9.0 * n) + 3.0902 * (2.0 / (9.0 * n)).sqrt()).powi(3)
}

/// Returns Pearson's statistic of counts that should all be equal.
pub fn chi_squared(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum()
}

/// Fails unless the counts are compatible with a uniform distribution.
pub fn assert_even(counts: &[u64], what: &str) {
    let (statistic, limit) = (chi_squared(counts), chi_squared_limit(counts.len() - 1));
    assert!(
        statistic < limit,
        "{what}: chi-squared {statistic:.1} exceeds {limit:.1} ({counts:?})"
    );
}

/// Fails unless the two classifications of a table of counts are independent.
pub fn assert_independent(table: &[Vec<u64>], what: &str) {
    let all = table.iter().flatten().sum::<u64>() as f64;
    let columns = table[0].len();
    let column: Vec<f64> =
        (0..columns).map(|c| table.iter().map(|row| row[c] as f64).sum()).collect();
    let mut statistic = 0.0;
    for row in table {
        let total: f64 = row.iter().map(|&c| c as f64).sum();
        for (count, column) in row.iter().zip(&column) {
            let expected = total * column / all;
            statistic += (*count as f64 - expected).powi(2) / expected;
        }
    }
    let limit = chi_squared_limit((table.len() - 1) * (columns - 1));
    assert!(statistic < limit, "{what}: chi-squared {statistic:.1} exceeds {limit:.1}");
}

/// Returns the Kolmogorov-Smirnov distance of samples from a distribution that may have atoms:
/// `below` and `up_to` give P(X < x) and P(X <= x).
pub fn kolmogorov_smirnov(
    mut samples: Vec<f64>,
    below: impl Fn(f64) -> f64,
    up_to: impl Fn(f64) -> f64,
) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let mut distance: f64 = 0.0;
    let mut first = 0;
    while first < samples.len() {
        let x = samples[first];
        let next = first + samples[first..].partition_point(|&other| other == x);
        distance = distance
            .max((first as f64 / n - below(x)).abs())
            .max((next as f64 / n - up_to(x)).abs());
        first = next;
    }
    distance
}

/// Returns the distance that n samples exceed with probability 0.1 % (asymptotic).
pub fn kolmogorov_smirnov_limit(n: usize) -> f64 {
    1.95 / (n as f64).sqrt()
}
