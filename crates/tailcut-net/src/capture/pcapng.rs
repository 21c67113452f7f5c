//! The pcapng file format (draft-ietf-opsawg-pcapng), as far as a capture of frames needs it.
//!
//! A file has one section: its header, one interface description per capture point, an enhanced
//! packet block per frame and, at the end, the statistics of each interface. Timestamps count
//! nanoseconds from the start of the run. Each interface declares that the run starts at midnight
//! UTC of 2 January 1970, because readers take a time of zero for a missing one.

use std::io::{self, Write};

use tailcut_engine::{Rate, Time};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u16 = 1;

const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const NANOSECONDS: u8 = 9;
const IF_TSOFFSET: u16 = 14;
/// Seconds from the beginning of 1970 to the start of a run.
pub const START_OF_RUN: u64 = 86_400;
const EPB_FLAGS: u16 = 2;
const ISB_STARTTIME: u16 = 2;
const ISB_ENDTIME: u16 = 3;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// An interface at which frames are captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Short name: `"h3"`, `"h0>s0"`.
    pub name: String,
    /// Description that readers show beside the name.
    pub description: String,
    /// Rate of the link.
    pub speed: Rate,
}

/// Direction in which a frame passes the interface of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The host received it.
    Inbound = 1,
    /// The host sent it.
    Outbound = 2,
}

/// Limits of a capture. Later frames are counted as dropped by their interface and not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum frames in the file.
    pub packets: u64,
    /// Maximum bytes in the file, including the format's headers and excluding the closing
    /// statistics.
    pub bytes: u64,
    /// Maximum bytes kept of one frame, beside its original length. The checksum of a truncated
    /// frame cannot be verified.
    pub snapshot: u32,
}

impl Bounds {
    /// No limits: all frames, each as a whole.
    pub const NONE: Bounds = Bounds { packets: u64::MAX, bytes: u64::MAX, snapshot: 262_144 };
}

#[derive(Debug, Clone, Copy, Default)]
struct InterfaceCounts {
    frames: u64,
    written: u64,
}

/// Writes one capture file.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    bounds: Bounds,
    seen: Vec<InterfaceCounts>,
    packets: u64,
    bytes: u64,
    last: Time,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a file: writes the section header and interface descriptions. `application` names the
    /// program and its version.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn new(
        out: W,
        application: &str,
        interfaces: &[Interface],
        bounds: Bounds,
    ) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            out,
            bounds,
            seen: vec![InterfaceCounts::default(); interfaces.len()],
            packets: 0,
            bytes: 0,
            last: Time::ZERO,
            block: Vec::new(),
        };
        writer.begin();
        writer.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        writer.put(&1u16.to_le_bytes());
        writer.put(&0u16.to_le_bytes());
        // The length of the section is unknown while it is streamed.
        writer.put(&u64::MAX.to_le_bytes());
        writer.option(SHB_USERAPPL, application.as_bytes());
        writer.end_of_options();
        writer.end(SECTION_HEADER)?;
        for interface in interfaces {
            writer.describe(interface)?;
        }
        Ok(writer)
    }

    fn describe(&mut self, interface: &Interface) -> io::Result<()> {
        self.begin();
        self.put(&LINKTYPE_ETHERNET.to_le_bytes());
        self.put(&0u16.to_le_bytes());
        self.put(&self.bounds.snapshot.to_le_bytes());
        self.option(IF_NAME, interface.name.as_bytes());
        self.option(IF_DESCRIPTION, interface.description.as_bytes());
        self.option(IF_SPEED, &interface.speed.0.to_le_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.option(IF_TSOFFSET, &START_OF_RUN.to_le_bytes());
        self.end_of_options();
        self.end(INTERFACE_DESCRIPTION)
    }

    /// Writes a frame that passed `interface` (an index into those described) at `time`, unless a
    /// limit is reached.
    ///
    /// # Errors
    /// Returns the errors of the file.
    pub fn packet(
        &mut self,
        interface: usize,
        time: Time,
        direction: Option<Direction>,
        frame: &[u8],
    ) -> io::Result<()> {
        self.last = self.last.max(time);
        self.seen[interface].frames += 1;
        if self.packets >= self.bounds.packets {
            return Ok(());
        }
        let kept = frame.len().min(self.bounds.snapshot as usize);
        let options = if direction.is_some() { 12 } else { 0 };
        let length = 32 + kept.next_multiple_of(4) + options;
        if self.bytes + length as u64 > self.bounds.bytes {
            // No later frame is written either, not even a shorter one, so that the file has no
            // gap.
            self.bounds.packets = self.packets;
            return Ok(());
        }
        self.begin();
        self.put(&(interface as u32).to_le_bytes());
        self.timestamp(time);
        self.put(&(kept as u32).to_le_bytes());
        self.put(&(frame.len() as u32).to_le_bytes());
        self.put(&frame[..kept]);
        self.pad();
        if let Some(direction) = direction {
            self.option(EPB_FLAGS, &(direction as u32).to_le_bytes());
            self.end_of_options();
        }
        self.end(ENHANCED_PACKET)?;
        self.packets += 1;
        self.seen[interface].written += 1;
        Ok(())
    }

    /// Returns the number of frames that passed the interfaces after a limit was reached and are
    /// not in the file.
    pub fn left_out(&self) -> u64 {
        self.seen.iter().map(|seen| seen.frames - seen.written).sum()
    }

    /// Returns the number of frames written.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Ends the file with the statistics of each interface, flushes the output and returns it.
    ///
    /// # Errors
    /// Returns the errors of the file.
    pub fn finish(mut self) -> io::Result<W> {
        for (index, seen) in std::mem::take(&mut self.seen).into_iter().enumerate() {
            self.begin();
            self.put(&(index as u32).to_le_bytes());
            self.timestamp(self.last);
            self.option(ISB_STARTTIME, &split(Time::ZERO));
            self.option(ISB_ENDTIME, &split(self.last));
            self.option(ISB_IFRECV, &seen.frames.to_le_bytes());
            self.option(ISB_IFDROP, &(seen.frames - seen.written).to_le_bytes());
            self.end_of_options();
            self.end(INTERFACE_STATISTICS)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self) {
        self.block.clear();
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn timestamp(&mut self, time: Time) {
        self.put(&split(time));
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.put(&[0; 4]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self, kind: u32) -> io::Result<()> {
        let length = self.block.len() as u32 + 12;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.bytes += u64::from(length);
        Ok(())
    }
}

/// Returns nanoseconds in the format's order: the upper 32 bits, then the lower.
fn split(time: Time) -> [u8; 8] {
    let nanoseconds = time.as_ns();
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((nanoseconds >> 32) as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(nanoseconds as u32).to_le_bytes());
    bytes
}
