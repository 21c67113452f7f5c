//! Covering arrays: few combinations in which every pair of values of two factors meets.

use std::collections::BTreeSet;

/// A value of a factor: the numbers of both.
pub type Choice = (usize, usize);

/// Returns rows with one value for each factor, and the wanted pairs that no row can contain. Every
/// pair of values that is `wanted` and `allowed` is in some row. `allowed` also judges rows with
/// values not chosen yet.
pub fn pairs(
    sizes: &[usize],
    wanted: &dyn Fn(&(Choice, Choice)) -> bool,
    allowed: &dyn Fn(&[Option<usize>]) -> bool,
) -> (Vec<Vec<usize>>, Vec<(Choice, Choice)>) {
    let mut left = BTreeSet::new();
    for (a, &values) in sizes.iter().enumerate() {
        for (b, &others) in sizes.iter().enumerate().skip(a + 1) {
            left.extend((0..values).flat_map(|v| (0..others).map(move |w| ((a, v), (b, w)))));
        }
    }
    left.retain(wanted);
    let (mut rows, mut never) = (vec![], vec![]);
    while let Some(pair @ (a, b)) = left.pop_first() {
        let mut row = vec![None; sizes.len()];
        (row[a.0], row[b.0]) = (Some(a.1), Some(b.1));
        if !fill(&mut row, sizes, allowed, &left) {
            never.push(pair);
            continue;
        }
        let row: Vec<usize> = row.into_iter().flatten().collect();
        left.retain(|(a, b)| row[a.0] != a.1 || row[b.0] != b.1);
        rows.push(row);
    }
    (rows, never)
}

/// Fills the rest of a row, at each factor first the value with most new pairs. Returns false if
/// nothing is allowed.
fn fill(
    row: &mut [Option<usize>],
    sizes: &[usize],
    allowed: &dyn Fn(&[Option<usize>]) -> bool,
    left: &BTreeSet<(Choice, Choice)>,
) -> bool {
    if !allowed(row) {
        return false;
    }
    let Some(factor) = row.iter().position(Option::is_none) else { return true };
    let news = |value: usize| {
        let met = |(other, chosen): (usize, &Option<usize>)| {
            chosen.is_some_and(|chosen| {
                let (one, two) = ((other, chosen), (factor, value));
                left.contains(&(one.min(two), one.max(two)))
            })
        };
        row.iter().enumerate().filter(|entry| met(*entry)).count()
    };
    let mut values: Vec<(usize, usize)> = (0..sizes[factor]).map(|v| (news(v), v)).collect();
    values.sort_by_key(|(news, value)| (std::cmp::Reverse(*news), *value));
    for (_, value) in values {
        row[factor] = Some(value);
        if fill(row, sizes, allowed, left) {
            return true;
        }
    }
    row[factor] = None;
    false
}

#[test]
fn every_wanted_and_allowed_pair_meets_in_a_row() {
    // The first values of factors 0 and 1 exclude each other, and so do the second values of
    // factors 2 and 3.
    let allowed = |row: &[Option<usize>]| {
        (row[0], row[1]) != (Some(0), Some(0)) && (row[2], row[3]) != (Some(1), Some(1))
    };
    let sizes = [3, 4, 2, 2];
    let (rows, never) = pairs(&sizes, &|_| true, &allowed);
    assert_eq!(never, [((0, 0), (1, 0)), ((2, 1), (3, 1))]);
    let mut met = BTreeSet::new();
    for row in &rows {
        for a in 0..4 {
            met.extend((a + 1..4).map(|b| ((a, row[a]), (b, row[b]))));
        }
    }
    let all = 3 * 4 + 3 * 2 + 3 * 2 + 4 * 2 + 4 * 2 + 2 * 2;
    assert_eq!(met.len(), all - never.len());
    assert!(rows.len() < 16, "few rows: {}", rows.len());
    let (rows, never) = pairs(&sizes, &|(a, b)| (a.0, b.0) == (2, 3), &allowed);
    assert_eq!((rows.len(), never), (3, vec![((2, 1), (3, 1))]));
}
