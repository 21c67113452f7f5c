//! Ids of a graph's rows, and its cycles.

use super::super::TrafficError;
use super::names::Name;
use super::rows::{Rows, Work};

/// The rows that each row waits for: of row i, `from[first[i]..first[i + 1]]`.
#[derive(Debug, Default)]
pub(super) struct Waits {
    first: Vec<u32>,
    from: Vec<u32>,
}

impl Waits {
    /// Returns the rows that a row waits for.
    pub fn of(&self, row: usize) -> &[u32] {
        &self.from[self.first[row] as usize..self.first[row + 1] as usize]
    }
}

/// Returns the rows that each row waits for. Refuses ids given twice, unknown ids, and cycles.
pub(super) fn resolve(rows: &Rows) -> Result<Waits, TrafficError> {
    let mut ids: Vec<(Name, u32)> =
        rows.ids.iter().enumerate().map(|(at, id)| (*id, at as u32)).collect();
    ids.sort_unstable();
    if let Some(two) = ids.windows(2).find(|two| two[0].0 == two[1].0) {
        let (first, second) = (two[0].1 as usize, two[1].1 as usize);
        let what = format!("id {} is already that of {}", rows.id(first), rows.place(first));
        let error = rows.refuse("graph-id", second, &what);
        return Err(error.hint("every row needs an id of its own"));
    }
    let mut waits = Waits { first: vec![0], from: vec![] };
    for at in 0..rows.len() {
        for after in rows.after(at) {
            let Ok(found) = ids.binary_search_by_key(&after.name, |(id, _)| *id) else {
                let (id, after) = (rows.id(at), rows.text(after.name));
                let what = format!("{id} waits for {after}, which no row has as id");
                return Err(rows.refuse("graph-after", at, &what));
            };
            let found = ids[found].1;
            let is_computation = matches!(rows.works[found as usize], Work::Computation { .. });
            if after.on.is_some() && is_computation {
                let what =
                    format!("{} is a computation: it has one end only", rows.text(after.name));
                return Err(rows.refuse("graph-after", at, &what).hint("leave @… out"));
            }
            waits.from.push(found);
        }
        waits.first.push(waits.from.len() as u32);
    }
    drop(ids);
    check_order(rows, &waits)?;
    Ok(waits)
}

/// Refuses rows that wait for each other.
fn check_order(rows: &Rows, waits: &Waits) -> Result<(), TrafficError> {
    let mut needs: Vec<u32> = waits.first.windows(2).map(|two| two[1] - two[0]).collect();
    // The dependents of row i are `dependents[first[i]..first[i + 1]]`.
    let mut first = vec![0u32; rows.len() + 1];
    for &from in &waits.from {
        first[from as usize + 1] += 1;
    }
    for at in 0..rows.len() {
        first[at + 1] += first[at];
    }
    let (mut next, mut dependents) = (first.clone(), vec![0u32; waits.from.len()]);
    for at in 0..rows.len() {
        for &from in waits.of(at) {
            dependents[next[from as usize] as usize] = at as u32;
            next[from as usize] += 1;
        }
    }
    let mut ready: Vec<u32> =
        (0..rows.len() as u32).filter(|&at| needs[at as usize] == 0).collect();
    while let Some(done) = ready.pop() {
        let done = done as usize;
        for &at in &dependents[first[done] as usize..first[done + 1] as usize] {
            needs[at as usize] -= 1;
            if needs[at as usize] == 0 {
                ready.push(at);
            }
        }
    }
    let Some(stuck) = needs.iter().position(|&needs| needs > 0) else { return Ok(()) };
    // Every stuck row waits for a stuck row: the walk comes back to a row that it has passed.
    let (mut path, mut place) = (vec![stuck], vec![u32::MAX; rows.len()]);
    place[stuck] = 0;
    let cycle = loop {
        let last = path[path.len() - 1];
        let next = waits.of(last).iter().map(|&from| from as usize).find(|&from| needs[from] > 0);
        let next = next.expect("a stuck row waits for a stuck row");
        if place[next] != u32::MAX {
            break path.split_off(place[next] as usize);
        }
        place[next] = path.len() as u32;
        path.push(next);
    };
    let first = (0..cycle.len()).min_by_key(|&at| cycle[at]).unwrap_or_default();
    let name = |at: usize| {
        let row = cycle[(first + at) % cycle.len()];
        format!("{} ({})", rows.id(row), rows.place(row))
    };
    let shown = cycle.len().min(8);
    let names: Vec<String> = (1..=shown).map(name).collect();
    let more = if shown < cycle.len() { ", which waits for others in a circle" } else { "" };
    let what = format!(
        "{} waits for {}{more}: none of them can start",
        rows.id(cycle[first]),
        names.join(", which waits for ")
    );
    Err(rows.refuse("graph-cycle", cycle[first], &what).hint("remove one of these waits"))
}
