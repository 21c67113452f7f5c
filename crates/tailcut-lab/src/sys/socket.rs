//! Options and messages of TCP sockets that the standard library lacks.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::checked;

/// A socket for requests to the kernel's network stack.
pub struct ControlSocket(OwnedFd);

impl ControlSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<ControlSocket> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes numbers, and the descriptor that it gives is new.
        let socket =
            unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_INET, kind, 0))?) };
        Ok(ControlSocket(socket))
    }
}

impl AsRawFd for ControlSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn address(ip: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    }
}

fn set(socket: &impl AsRawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has the length that is said.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    })
    .map(drop)
}

fn stream(protocol: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes numbers, and the descriptor that it gives is new.
    Ok(unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_INET, kind, protocol))?) })
}

/// Listens on an address with a protocol; accepting does not block.
///
/// # Errors
/// The kernel's error.
pub fn listen(at: (Ipv4Addr, u16), protocol: i32) -> io::Result<TcpListener> {
    let socket = stream(protocol)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    let (at, length) = (address(at.0, at.1), size_of::<libc::sockaddr_in>() as libc::socklen_t);
    // SAFETY: the address outlives the call and has the length that is said.
    unsafe {
        checked(libc::bind(socket.as_raw_fd(), (&raw const at).cast(), length))?;
        checked(libc::listen(socket.as_raw_fd(), 4_096))?;
    }
    Ok(TcpListener::from(socket))
}

/// Limits the backlog to one connection: SYNs of further ones are dropped until it is accepted.
///
/// # Errors
/// The kernel's error.
#[cfg(test)]
pub fn set_backlog_of_one(listener: &TcpListener) -> io::Result<()> {
    // SAFETY: takes numbers.
    checked(unsafe { libc::listen(listener.as_raw_fd(), 0) }).map(drop)
}

/// Sets the congestion control of an unbound socket (`TCP_CONGESTION`), overriding its route's
/// `congctl`.
///
/// # Errors
/// The kernel's error.
pub fn set_congestion_control(socket: BorrowedFd, name: &str) -> io::Result<()> {
    let (text, length) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    // SAFETY: the name outlives the call and has the length that is said.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, text, length) })?;
    Ok(())
}

/// Starts to connect with a protocol, from the given source port. `prepare` receives the socket
/// before it is bound.
///
/// # Errors
/// The kernel's error, or that of `prepare`.
pub fn connect(
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
    protocol: i32,
    prepare: impl FnOnce(BorrowedFd) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let socket = stream(protocol)?;
    prepare(socket.as_fd())?;
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let (from, to) = (address(from.0, from.1), address(to.0, to.1));
    // SAFETY: the addresses outlive the calls and have the length that is said.
    unsafe {
        checked(libc::bind(socket.as_raw_fd(), (&raw const from).cast(), length))?;
        match checked(libc::connect(socket.as_raw_fd(), (&raw const to).cast(), length)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(TcpStream::from(socket)),
        }
    }
}

/// Returns the address of a connection's peer.
///
/// # Errors
/// The kernel's error, or the socket is not an IPv4 connection.
pub fn peer(socket: &impl AsRawFd) -> io::Result<SocketAddrV4> {
    let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address outlives the call and has the length that is said, and zeros are an
    // address.
    let found = unsafe {
        let mut found: libc::sockaddr_in = zeroed();
        checked(libc::getpeername(socket.as_raw_fd(), (&raw mut found).cast(), &raw mut length))?;
        found
    };
    if i32::from(found.sin_family) != libc::AF_INET {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let ip = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
    Ok(SocketAddrV4::new(ip, u16::from_be(found.sin_port)))
}

/// Sets `SO_RCVLOWAT`: the socket is readable once `bytes` bytes, or the end of the stream, have
/// arrived. ACKs are sent as if each packet were read on arrival.
///
/// # Errors
/// The kernel's error.
pub fn set_receive_low_water(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Makes closing the connection reset it, so that neither end sends anything more.
///
/// # Errors
/// The kernel's error.
pub fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has the length that is said.
    checked(unsafe {
        let value = (&raw const linger).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, length)
    })
    .map(drop)
}

const STAMP_ACKS: u32 = libc::SOF_TIMESTAMPING_TX_ACK;

/// Enables ACK timestamps (`SO_TIMESTAMPING` with `OPT_ID`); their ids count the connection's bytes
/// from 0.
///
/// # Errors
/// The kernel's error.
pub fn enable_ack_timestamps(stream: &TcpStream) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(stream, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

/// Sends as many bytes as there is room for. `more`: further bytes follow at once, so an incomplete
/// segment waits for them. `last`: requests a timestamp when the last byte is acknowledged.
///
/// # Errors
/// The kernel's error.
pub fn send(stream: &TcpStream, bytes: &[u8], more: bool, last: bool) -> io::Result<usize> {
    #[repr(C)]
    struct AckTimestampRequest {
        header: libc::cmsghdr,
        flags: u32,
        padding: u32,
    }
    let mut asked = AckTimestampRequest {
        header: libc::cmsghdr {
            cmsg_len: (size_of::<libc::cmsghdr>() + 4) as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SO_TIMESTAMPING,
        },
        flags: STAMP_ACKS,
        padding: 0,
    };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if more {
        flags |= libc::MSG_MORE;
    }
    // SAFETY: everything that the message points to outlives the call; the bytes are only read.
    let sent = unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if last {
            message.msg_control = (&raw mut asked).cast();
            message.msg_controllen = size_of::<AckTimestampRequest>() as _;
        }
        libc::sendmsg(stream.as_raw_fd(), &raw const message, flags)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Returns the next requested ACK timestamp: the number of the acknowledged byte, and the time in
/// nanoseconds of the real-time clock.
///
/// # Errors
/// The kernel's error; `WouldBlock` if there is none.
pub fn next_ack_timestamp(stream: &TcpStream) -> io::Result<Option<(u32, u64)>> {
    let mut control = [0_u64; 64];
    let (mut byte, mut at) = (None, None);
    // SAFETY: the message points to a buffer that outlives the calls; the kernel fills it with
    // complete headers, and each is read as its type.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        if libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let time: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    at = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                (libc::SOL_IP, libc::IP_RECVERR) => {
                    let error: libc::sock_extended_err =
                        data.cast::<libc::sock_extended_err>().read_unaligned();
                    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
                        byte = Some(error.ee_data);
                    }
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(byte.zip(at))
}

/// Counters of a connection, from `struct tcp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Data segments sent, retransmissions included.
    pub data_segments: u32,
    /// Retransmitted segments.
    pub retransmissions: u32,
    /// Segments that the receiver reported as duplicates (DSACK).
    pub duplicates: u32,
    /// The congestion window, in segments.
    pub window: u32,
    /// Bytes of payload in a segment.
    pub segment: u32,
    /// Acknowledged bytes; the end of the connection counts as one.
    pub acknowledged: u64,
    /// Retransmission timeouts; none if the kernel does not count them (before 6.7).
    pub timeouts: Option<u16>,
}

impl TcpInfo {
    /// The size of `struct tcp_info` up to the last field that is required.
    const LEAST: usize = 220;

    /// Parses `struct tcp_info` (linux/tcp.h), of which the kernel has filled in the first `filled`
    /// bytes; fields are only ever appended.
    fn read(info: &[u8], filled: usize) -> TcpInfo {
        let number = |at: usize| {
            u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes are four bytes"))
        };
        TcpInfo {
            retransmissions: number(100),
            data_segments: number(156),
            duplicates: number(216),
            window: number(80),
            segment: number(16),
            // The SYN counts as one byte, too.
            acknowledged: u64::from_ne_bytes(
                info[120..128].try_into().expect("eight bytes are eight bytes"),
            )
            .saturating_sub(1),
            timeouts: (filled >= 242).then(|| u16::from_ne_bytes([info[240], info[241]])),
        }
    }

    /// Adds the counters of two subflows, whose segments have the same size.
    fn and(self, other: TcpInfo) -> TcpInfo {
        TcpInfo {
            data_segments: self.data_segments + other.data_segments,
            retransmissions: self.retransmissions + other.retransmissions,
            duplicates: self.duplicates + other.duplicates,
            window: self.window + other.window,
            segment: self.segment.max(other.segment),
            acknowledged: self.acknowledged + other.acknowledged,
            timeouts: self.timeouts.zip(other.timeouts).map(|(one, two)| one + two),
        }
    }
}

const TCP_INFO_BYTES: usize = 256;

/// Reads `TCP_INFO` of a connection.
///
/// # Errors
/// The kernel's error.
pub fn tcp_info(stream: &TcpStream) -> io::Result<TcpInfo> {
    let mut info = [0; TCP_INFO_BYTES];
    let filled = get(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(TcpInfo::read(&info, filled))
}

/// The size of the header: its own size, the number of subflows, the size of the kernel's
/// `tcp_info`, and the size of an entry.
const SUBFLOW_HEADER: usize = 16;

/// Reads `struct tcp_info` of every subflow of a connection; returns their sums, and how many there
/// are. The option returns a header of four numbers followed by one `tcp_info` per subflow.
///
/// # Errors
/// The kernel's error.
pub fn subflow_tcp_info(stream: &TcpStream, level: i32, name: i32) -> io::Result<(TcpInfo, u32)> {
    const MOST: usize = 16;
    let mut all = [0; SUBFLOW_HEADER + MOST * TCP_INFO_BYTES];
    all[..4].copy_from_slice(&(SUBFLOW_HEADER as u32).to_ne_bytes());
    all[12..SUBFLOW_HEADER].copy_from_slice(&(TCP_INFO_BYTES as u32).to_ne_bytes());
    get(stream, level, name, &mut all)?;
    parse_subflow_tcp_info(&all)
}

/// Parses that answer. If the kernel's `tcp_info` is shorter than requested (before Linux 6.18),
/// entries are packed at the size given in the header.
fn parse_subflow_tcp_info(all: &[u8]) -> io::Result<(TcpInfo, u32)> {
    let number = |at: usize| u32::from_ne_bytes([all[at], all[at + 1], all[at + 2], all[at + 3]]);
    let (count, each) = (number(4), number(12) as usize);
    if each < TcpInfo::LEAST {
        let message =
            format!("the kernel reports {each} bytes of tcp_info per subflow, which is too little");
        return Err(io::Error::other(message));
    }
    let infos = all[SUBFLOW_HEADER..].chunks_exact(each).take(count as usize);
    let infos = infos.map(|info| TcpInfo::read(info, each));
    Ok((infos.reduce(TcpInfo::and).unwrap_or_default(), count))
}

fn get(stream: &TcpStream, level: i32, name: i32, into: &mut [u8]) -> io::Result<usize> {
    let mut length = into.len() as libc::socklen_t;
    // SAFETY: the buffer has the length that is passed.
    checked(unsafe {
        let room = into.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), level, name, room, &mut length)
    })?;
    Ok(length as usize)
}

/// Returns the kernel's name of a connection's congestion control.
///
/// # Errors
/// The kernel's error.
pub fn congestion_control(stream: &TcpStream) -> io::Result<String> {
    let mut name = [0_u8; 16];
    get(stream, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, SocketAddr};

    use super::super::process;
    use super::*;

    /// Returns the answer of a kernel with entries of `each` bytes; the windows and the segments
    /// sent of the subflows are 10, 20 and so on.
    fn answer(each: usize, connections: u32) -> Vec<u8> {
        let numbers = [SUBFLOW_HEADER as u32, connections, each as u32, each as u32];
        let mut all = numbers.map(u32::to_ne_bytes).concat();
        for connection in 1..=connections {
            let mut info = vec![0; each];
            for place in [80, 156] {
                info[place..place + 4].copy_from_slice(&(10 * connection).to_ne_bytes());
            }
            all.extend(info);
        }
        all.resize(SUBFLOW_HEADER + 16 * TCP_INFO_BYTES, 0);
        all
    }

    #[test]
    fn tcp_info_of_subflows_is_parsed_at_any_size_the_kernel_uses() {
        for each in [232, 248, TCP_INFO_BYTES] {
            let (known, count) = parse_subflow_tcp_info(&answer(each, 3)).expect("it is an answer");
            assert_eq!((count, known.window, known.data_segments), (3, 60, 60), "{each} bytes");
            assert_eq!(known.timeouts.is_some(), each > 240);
        }
        assert_eq!(
            parse_subflow_tcp_info(&answer(248, 0)).expect("it is an answer"),
            (TcpInfo::default(), 0)
        );
        for each in [0, 219] {
            let refused =
                parse_subflow_tcp_info(&answer(each, 0)).expect_err("nothing can be read");
            assert!(refused.to_string().contains("too little"), "{refused}");
        }
    }

    #[test]
    fn a_duplicated_socket_is_readable_at_its_low_water_mark_or_at_eof() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let at = listener.local_addr().expect("it is bound");
        let mut far = TcpStream::connect(at).expect("it listens");
        let (near, _) = listener.accept().expect("it has come");
        let this = process::open_pidfd(process::id()).expect("it runs");
        let borrowed =
            process::duplicate_from(&this, near.as_raw_fd()).expect("it is this process's own");
        let ready = || {
            let mut watched =
                libc::pollfd { fd: near.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor is passed, and it outlives the call, which does not wait.
            checked(unsafe { libc::poll(&raw mut watched, 1, 0) }).expect("it is open") == 1
        };
        let from = SocketAddr::V4(peer(&borrowed).expect("it is a connection"));
        assert_eq!(from, far.local_addr().expect("it is bound"));
        set_receive_low_water(&borrowed, 1_000).expect("it is a connection");
        far.write_all(&[0; 999]).expect("it is open");
        assert!(!ready());
        far.write_all(&[0; 1]).expect("it is open");
        assert!(ready());
        set_receive_low_water(&borrowed, 2_000).expect("it is a connection");
        assert!(!ready());
        far.shutdown(Shutdown::Write).expect("it is open");
        assert!(ready());
    }
}
