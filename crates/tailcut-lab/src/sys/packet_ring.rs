//! Frames in and out of every interface of a network namespace: one `AF_PACKET` socket with a TPACKET_V2 ring.
//! It either is the way that frames take, or looks on.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::checked;

const BLOCK: usize = 1 << 20;
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// What precedes the data in a frame of the ring: its header, then where it came from.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);

/// Which frames a socket sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDirections {
    /// Those that come in.
    Incoming,
    /// Those that come in and those that go out.
    Both,
}

/// A frame that came by.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedFrame<'a> {
    /// The number of the interface that it came by.
    pub interface: u32,
    /// When, in nanoseconds of the real-time clock.
    pub real_ns: u64,
    /// It goes out.
    pub outgoing: bool,
    /// Its bytes, from the Ethernet header on.
    pub bytes: &'a [u8],
}

/// IPv4 frames that come by, and a way out.
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
    /// A ring of at least `frames` frames with datagrams of up to `mtu` bytes.
    ///
    /// # Errors
    /// The kernel's.
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
        // SAFETY: a new mapping of the ring, as long as was asked for; it is unmapped when this is dropped.
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
        // Whoever names a protocol is shown nothing that goes out.
        let protocol = match self.seen {
            FrameDirections::Incoming => libc::ETH_P_IP,
            FrameDirections::Both => libc::ETH_P_ALL,
        };
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = interface as i32;
        address
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: each frame begins with its status, aligned to sixteen bytes, and lives as long as the mapping. The
        // kernel writes it meanwhile, which is why it is read as an atomic.
        unsafe { &*self.ring.add(self.next * self.frame).cast::<AtomicU32>() }
    }

    /// Hands the next frame to `take`; false when there is none.
    pub fn receive(&mut self, take: impl FnOnce(ReceivedFrame<'_>)) -> bool {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the frame is ours until its status is given back below; the kernel has written a header, an address and
        // so many bytes as the header says, all within the frame.
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

    /// Sends a frame by an interface.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, interface: u32, bytes: &[u8]) -> io::Result<()> {
        let address = self.address(interface);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: bytes and address outlive the call and have the lengths that are said.
        let sent = unsafe {
            let (data, address) = (bytes.as_ptr().cast(), (&raw const address).cast());
            libc::sendto(self.socket.as_raw_fd(), data, bytes.len(), 0, address, length)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// How many frames found no room in the ring so far.
    ///
    /// # Errors
    /// The kernel's.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: there is as much room as is said.
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
