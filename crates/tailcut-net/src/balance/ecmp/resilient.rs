//! Resilient hashing, as switches and Linux's resilient next-hop groups do it: a hash chooses one
//! of a fixed number of buckets, and a bucket belongs to a port. When a port fails, its buckets are
//! lent to the remaining ports, and no other bucket moves. After the repair, a lent bucket returns
//! once it has been idle for a while.

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::super::hash;
use super::shares::Shares;
use crate::topology::{Graph, HostId, PortId, Routes, SwitchId};

/// The buckets of every switch.
#[derive(Debug, Clone)]
pub(super) struct Resilient {
    buckets: u32,
    idle_timer: Time,
    /// Routes of the intact network, which decide to which port a bucket belongs.
    whole: Routes,
    /// Lent buckets, by switch, group of destinations and bucket number.
    lent: BTreeMap<(SwitchId, usize, u32), Lent>,
    /// The only remaining port of switches that have several towards a group of destinations; no
    /// choice is made there.
    alone: BTreeMap<(SwitchId, usize), PortId>,
}

/// A bucket that another port carries in place of its own.
#[derive(Debug, Clone, Copy)]
struct Lent {
    to: PortId,
    /// `None` before the first packet that is hashed to the bucket.
    last_use: Option<Time>,
}

impl Resilient {
    pub fn new(buckets: u32, idle_timer: Time, routes: &Routes) -> Resilient {
        Resilient {
            buckets,
            idle_timer,
            whole: routes.clone(),
            lent: BTreeMap::new(),
            alone: BTreeMap::new(),
        }
    }

    /// Returns the position among `ports`, the remaining ones, of the port that carries `hash`
    /// towards a host. May lend or return the bucket.
    pub fn pick(
        &mut self,
        now: Time,
        switch: SwitchId,
        ports: &[PortId],
        towards: HostId,
        hash: u32,
        shares: &Shares,
    ) -> u32 {
        let bucket = hash::region(hash, self.buckets);
        let owners = self.whole.candidates(switch, towards);
        let back = place(ports, owner(bucket, self.buckets, owners, shares));
        if let (true, Some(back)) = (self.lent.is_empty(), back) {
            return back;
        }
        let group = (switch, self.whole.group(towards), bucket);
        if let Some(lent) = self.lent.get_mut(&group) {
            let idle = now.since(lent.last_use.unwrap_or(now));
            let returns = back.is_some() && idle >= self.idle_timer;
            if let Some(deputy) = place(ports, lent.to).filter(|_| !returns) {
                lent.last_use = Some(now);
                return deputy;
            }
            self.lent.remove(&group);
        }
        back.unwrap_or_else(|| {
            let deputy = deputy(bucket, self.buckets, owners, ports, shares);
            self.lent.insert(group, Lent { to: ports[deputy as usize], last_use: Some(now) });
            deputy
        })
    }

    /// Lends the buckets that one port alone has carried, where there are several ports again.
    pub fn reroute(&mut self, graph: &Graph, routes: &Routes, shares: &Shares) {
        let groups = self.whole.groups();
        let places = graph.each_switch().flat_map(|s| (0..groups).map(move |group| (s, group)));
        for (switch, group) in places {
            let owners = self.whole.towards(switch, group);
            match (owners, routes.towards(switch, group)) {
                ([] | [_], _) => {}
                (_, [only]) => drop(self.alone.insert((switch, group), *only)),
                _ => {
                    let Some(to) = self.alone.remove(&(switch, group)) else { continue };
                    let of_others =
                        |bucket: &u32| owner(*bucket, self.buckets, owners, shares) != to;
                    for bucket in (0..self.buckets).filter(of_others) {
                        let lent = Lent { to, last_use: None };
                        self.lent.entry((switch, group, bucket)).or_insert(lent);
                    }
                }
            }
        }
    }

    /// Returns what [`Resilient::pick`] would return for a packet that comes while the bucket is in
    /// use.
    pub fn look(
        &self,
        switch: SwitchId,
        ports: &[PortId],
        towards: HostId,
        hash: u32,
        shares: &Shares,
    ) -> u32 {
        let bucket = hash::region(hash, self.buckets);
        let owners = self.whole.candidates(switch, towards);
        let lent = self.lent.get(&(switch, self.whole.group(towards), bucket));
        let owner = owner(bucket, self.buckets, owners, shares);
        lent.and_then(|lent| place(ports, lent.to))
            .or_else(|| place(ports, owner))
            .unwrap_or_else(|| deputy(bucket, self.buckets, owners, ports, shares))
    }
}

fn place(ports: &[PortId], port: PortId) -> Option<u32> {
    ports.iter().position(|one| *one == port).map(|place| place as u32)
}

/// Returns the port that a bucket belongs to. Ports have runs of buckets in proportion to their
/// shares.
fn owner(bucket: u32, buckets: u32, owners: &[PortId], shares: &Shares) -> PortId {
    owners[portion(bucket, buckets, owners, shares) as usize]
}

/// Returns the position of the port that carries a bucket whose port has failed. The buckets of all
/// failed ports are shared out like a whole group.
fn deputy(bucket: u32, buckets: u32, owners: &[PortId], left: &[PortId], shares: &Shares) -> u32 {
    let homeless = |bucket: &u32| !left.contains(&owner(*bucket, buckets, owners, shares));
    let before = (0..bucket).filter(homeless).count() as u32;
    let all = before + (bucket..buckets).filter(homeless).count() as u32;
    portion(before, all, left, shares)
}

/// Returns the position of the port that gets item `number` when `all` items are shared out.
fn portion(number: u32, all: u32, ports: &[PortId], shares: &Shares) -> u32 {
    let total = u64::from(shares.total(ports));
    shares.at(ports, (u64::from(number) * total / u64::from(all)) as u32)
}
