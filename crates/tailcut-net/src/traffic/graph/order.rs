//! Ids of a graph's rows, and its cycles.

use super::super::TrafficError;
use super::rows::{Rows, Work};

/// Returns the rows that each row waits for. Refuses ids given twice, unknown ids, and cycles.
pub(super) fn resolve(rows: &Rows) -> Result<Vec<Vec<u32>>, TrafficError> {
    let mut ids: Vec<(&str, u32)> =
        rows.rows.iter().enumerate().map(|(at, row)| (&*row.id, at as u32)).collect();
    ids.sort_unstable();
    if let Some(two) = ids.windows(2).find(|two| two[0].0 == two[1].0) {
        let (first, second) = (two[0].1 as usize, two[1].1 as usize);
        let what = format!("id {} is already that of {}", two[1].0, rows.place(first));
        let error = rows.refuse("graph-id", second, &what);
        return Err(error.hint("every row needs an id of its own"));
    }
    let mut waits = Vec::with_capacity(rows.rows.len());
    for (at, row) in rows.rows.iter().enumerate() {
        let mut from = Vec::with_capacity(row.after.len());
        for after in &row.after {
            let Ok(found) = ids.binary_search_by_key(&&*after.id, |(id, _)| id) else {
                let what = format!("{} waits for {}, which no row has as id", row.id, after.id);
                return Err(rows.refuse("graph-after", at, &what));
            };
            let found = ids[found].1;
            let is_computation = matches!(rows.rows[found as usize].work, Work::Computation { .. });
            if after.on.is_some() && is_computation {
                let what = format!("{} is a computation: it has one end only", after.id);
                return Err(rows.refuse("graph-after", at, &what).hint("leave @… out"));
            }
            from.push(found);
        }
        waits.push(from);
    }
    check_order(rows, &waits)?;
    Ok(waits)
}

/// Refuses rows that wait for each other.
fn check_order(rows: &Rows, waits: &[Vec<u32>]) -> Result<(), TrafficError> {
    let mut needs: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut dependents = vec![vec![]; waits.len()];
    for (at, from) in waits.iter().enumerate() {
        for &from in from {
            dependents[from as usize].push(at);
        }
    }
    let mut ready: Vec<usize> = (0..waits.len()).filter(|&at| needs[at] == 0).collect();
    while let Some(done) = ready.pop() {
        for &at in &dependents[done] {
            needs[at] -= 1;
            if needs[at] == 0 {
                ready.push(at);
            }
        }
    }
    let Some(stuck) = needs.iter().position(|&needs| needs > 0) else { return Ok(()) };
    // Every stuck row waits for a stuck row: the walk comes back to a row that it has passed.
    let mut path = vec![stuck];
    let cycle = loop {
        let last = path[path.len() - 1];
        let next = waits[last].iter().map(|&from| from as usize).find(|&from| needs[from] > 0);
        let next = next.expect("a stuck row waits for a stuck row");
        if let Some(begin) = path.iter().position(|&at| at == next) {
            break path.split_off(begin);
        }
        path.push(next);
    };
    let first = (0..cycle.len()).min_by_key(|&at| cycle[at]).unwrap_or_default();
    let name = |at: usize| {
        let row = cycle[(first + at) % cycle.len()];
        format!("{} ({})", rows.rows[row].id, rows.place(row))
    };
    let shown = cycle.len().min(8);
    let names: Vec<String> = (1..=shown).map(name).collect();
    let more = if shown < cycle.len() { ", which waits for others in a circle" } else { "" };
    let what = format!(
        "{} waits for {}{more}: none of them can start",
        rows.rows[cycle[first]].id,
        names.join(", which waits for ")
    );
    Err(rows.refuse("graph-cycle", cycle[first], &what).hint("remove one of these waits"))
}
