//! Frames in and out of the interfaces of a network namespace: an `AF_PACKET` socket with a
//! TPACKET_V2 ring.
//!
//! It carries the frames itself, or observes them.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::checked;

const BLOCK: usize = 1 << 20;
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// The offset of a frame's source address in the ring, behind its header.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);

/// The frames that a socket sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDirections {
    /// Incoming frames.
    Incoming,
    /// Incoming and outgoing frames.
    Both,
}

/// A frame that was received or observed.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedFrame<'a> {
    /// The index of its interface.
    pub interface: u32,
    /// The time of the frame, in nanoseconds of the real-time clock.
    pub real_ns: u64,
    /// Whether the frame is outgoing.
    pub outgoing: bool,
    /// The bytes from the Ethernet header on.
    pub bytes: &'a [u8],
}

/// A ring of received frames, and the socket to send frames.
pub struct PacketRing {
    socket: OwnedFd,
    ring: *mut u8,
    frame: usize,
    frames: usize,
    next: usize,
    dropped: u64,
    seen: FrameDirections,
}

impl PacketRing {
    /// Creates a ring of at least `frames` frames with datagrams of up to `mtu` bytes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(seen: FrameDirections, mtu: usize, frames: usize) -> io::Result<PacketRing> {
        let frame = (ADDRESS_AT + 96 + mtu).next_power_of_two();
        let blocks = (frames * frame).div_ceil(BLOCK).max(1);
        let frames = blocks * (BLOCK / frame);
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call takes numbers, and the descriptor that it gives is new.
        let socket =
            unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, kind, 0))?) };
        option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame as u32,
            tp_frame_nr: frames as u32,
        };
        option(&socket, libc::PACKET_RX_RING, &request)?;
        option(&socket, PACKET_IGNORE_OUTGOING, &i32::from(seen == FrameDirections::Incoming))?;
        option(&socket, libc::PACKET_QDISC_BYPASS, &1_i32)?;
        let (read, write) = (libc::PROT_READ, libc::PROT_WRITE);
        // SAFETY: a new mapping of the ring, of the requested length; dropping the value unmaps it.
        let ring = unsafe {
            let length = blocks * BLOCK;
            let flags = libc::MAP_SHARED;
            libc::mmap(std::ptr::null_mut(), length, read | write, flags, socket.as_raw_fd(), 0)
        };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let made =
            PacketRing { socket, ring: ring.cast(), frame, frames, next: 0, dropped: 0, seen };
        let address = made.address(0);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address outlives the call and has the length that is said.
        checked(unsafe {
            libc::bind(made.socket.as_raw_fd(), (&raw const address).cast(), length)
        })?;
        Ok(made)
    }

    fn address(&self, interface: u32) -> libc::sockaddr_ll {
        // SAFETY: zeros are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        // A socket bound to one protocol sees no outgoing frames.
        let protocol = match self.seen {
            FrameDirections::Incoming => libc::ETH_P_IP,
            FrameDirections::Both => libc::ETH_P_ALL,
        };
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = interface as i32;
        address
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: each frame begins with its status, aligned to sixteen bytes, and lives as long as
        // the mapping. The kernel writes it concurrently, hence the atomic.
        unsafe { &*self.ring.add(self.next * self.frame).cast::<AtomicU32>() }
    }

    /// Passes the next frame to `take`; returns false if there is none.
    pub fn receive(&mut self, take: impl FnOnce(ReceivedFrame<'_>)) -> bool {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the frame is ours until its status is returned below; the kernel has written a
        // header, an address and as many bytes as the header states, all within the frame.
        let received = unsafe {
            let at = self.ring.add(self.next * self.frame);
            let header = at.cast::<libc::tpacket2_hdr>().read();
            let from = at.add(ADDRESS_AT).cast::<libc::sockaddr_ll>().read();
            let data = at.add(usize::from(header.tp_mac));
            ReceivedFrame {
                interface: from.sll_ifindex as u32,
                real_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
                outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
                bytes: std::slice::from_raw_parts(data, header.tp_snaplen as usize),
            }
        };
        take(received);
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        true
    }

    /// Sends a frame through an interface.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send(&self, interface: u32, bytes: &[u8]) -> io::Result<()> {
        let address = self.address(interface);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: bytes and address outlive the call and have the lengths that are passed.
        let sent = unsafe {
            let (data, address) = (bytes.as_ptr().cast(), (&raw const address).cast());
            libc::sendto(self.socket.as_raw_fd(), data, bytes.len(), 0, address, length)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the number of frames so far that found no room in the ring.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the buffer has the length that is passed.
        checked(unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &mut length,
            )
        })?;
        self.dropped += u64::from(counts.tp_drops);
        Ok(self.dropped)
    }
}

fn option<T>(socket: &OwnedFd, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has the length that is said.
    checked(unsafe {
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, value, length)
    })
    .map(drop)
}

impl AsRawFd for PacketRing {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        let length = self.frames / (BLOCK / self.frame) * BLOCK;
        // SAFETY: the mapping that `new` made, and nobody has a reference into it.
        unsafe { libc::munmap(self.ring.cast(), length) };
    }
}
