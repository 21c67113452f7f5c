//! The options that few packets carry: selective acknowledgements, timestamps, numbers.

use super::SelectiveAck;

/// A packet without options.
pub const NO_OPTIONS: u32 = u32::MAX;
/// From here on `options` is a number itself and no entry of the [`OptionStore`].
pub(super) const INLINE: u32 = 1 << 31;
/// The largest number that a packet carries without an entry.
pub const MAX_NUMBER: u32 = NO_OPTIONS - 1 - INLINE;

/// Returns the `options` of a packet that carries this number and nothing else: a priority
/// (pFabric), or a position in the data of a multipath flow.
#[inline]
pub fn inline_number(number: u32) -> u32 {
    INLINE + number.min(MAX_NUMBER)
}

/// Selective acknowledgement blocks (RFC 2018) as half-open ranges of segments, the most recent
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Most blocks that fit beside no other option.
    pub const MAX: usize = 4;

    /// Adds a block; ignored when full.
    pub fn push(&mut self, start: u32, end: u32) {
        if usize::from(self.count) < Self::MAX {
            self.blocks[usize::from(self.count)] = (start, end);
            self.count += 1;
        }
    }
    /// The blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
    /// The first `count` blocks.
    pub fn first(mut self, count: usize) -> SackBlocks {
        self.count = self.count.min(count as u8);
        self
    }
    /// True without any block.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The timestamp option (RFC 7323 section 3), in milliseconds from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// TSval: when the packet was sent.
    pub value: u32,
    /// TSecr: what its sender last heard from the other side.
    pub echo: u32,
}

/// The options that few packets carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Selective acknowledgements.
    pub blocks: SackBlocks,
    /// Meaningful when the connection uses timestamps.
    pub timestamps: Timestamps,
    /// The number that the packet carries.
    pub number: Option<u32>,
}

/// Options of the packets in flight; entries are recycled, so that the per-packet path does not
/// allocate.
#[derive(Debug, Clone, Default)]
pub struct OptionStore {
    entries: Vec<Options>,
    free: Vec<u32>,
    /// Acknowledgements by the numbers of their entries, as far as any has carried one.
    acks: Vec<SelectiveAck>,
}

/// All that a packet carries in an [`OptionStore`].
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    options: Options,
    ack: Option<SelectiveAck>,
}

impl OptionStore {
    /// Stores blocks for a packet and returns what its `options` must say.
    pub fn insert(&mut self, blocks: SackBlocks) -> u32 {
        let options = Options { blocks, ..Options::default() };
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = options;
            return index;
        }
        self.entries.push(options);
        self.entries.len() as u32 - 1
    }
    /// Stores an acknowledgement for a packet and returns what its `options` must say.
    pub fn insert_ack(&mut self, ack: SelectiveAck) -> u32 {
        let index = self.insert(SackBlocks::default());
        if self.acks.len() <= index as usize {
            self.acks.resize(index as usize + 1, SelectiveAck::default());
        }
        self.acks[index as usize] = ack;
        index
    }
    /// Returns all that a packet carries, for another store.
    pub fn export(&self, options: u32) -> Carried {
        Carried { options: self.get(options), ack: self.ack(options).copied() }
    }
    /// Stores what a packet from another store carries and returns what its `options` must say.
    pub fn import(&mut self, carried: Carried) -> u32 {
        let index = match carried.ack {
            Some(ack) => self.insert_ack(ack),
            None => self.insert(SackBlocks::default()),
        };
        self.entries[index as usize] = carried.options;
        index
    }
    /// Returns the acknowledgement that a packet carries; only meaningful for packets that got it
    /// by [`OptionStore::insert_ack`].
    #[inline]
    pub fn ack(&self, options: u32) -> Option<&SelectiveAck> {
        self.acks.get(options as usize)
    }
    /// The options of a packet; none for [`NO_OPTIONS`].
    pub fn get(&self, options: u32) -> Options {
        let number = (INLINE..NO_OPTIONS).contains(&options).then(|| options - INLINE);
        let inline = Options { number, ..Options::default() };
        self.entries.get(options as usize).copied().unwrap_or(inline)
    }
    /// The number that a packet carries.
    #[inline]
    pub fn number(&self, options: u32) -> Option<u32> {
        match options {
            NO_OPTIONS => None,
            inline @ INLINE.. => Some(inline - INLINE),
            entry => self.entries[entry as usize].number,
        }
    }
    /// True when `options` is an entry.
    pub fn holds(options: u32) -> bool {
        options < INLINE
    }
    /// Adds a number to the options of a packet and returns what its `options` must say.
    #[inline]
    pub fn set_number(&mut self, options: u32, number: u32) -> u32 {
        if options < INLINE {
            self.entries[options as usize].number = Some(number);
            return options;
        }
        inline_number(number)
    }
    /// Adds timestamps to the options of a packet and returns what its `options` must say.
    pub fn stamp(&mut self, options: u32, timestamps: Timestamps) -> u32 {
        let mut index = options;
        if options >= INLINE {
            let number = self.number(options);
            index = self.insert(SackBlocks::default());
            self.entries[index as usize].number = number;
        }
        self.entries[index as usize].timestamps = timestamps;
        index
    }
    /// Releases the entry of a packet that was delivered or dropped.
    #[inline]
    pub fn release(&mut self, options: u32) {
        if options < INLINE {
            self.free.push(options);
        }
    }
    /// Entries held by packets in flight.
    pub fn live(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
