//! What TCP sockets tell and take beyond the standard library.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::checked;

/// A socket to ask the kernel by.
pub struct ControlSocket(OwnedFd);

impl ControlSocket {
    /// A new one.
    ///
    /// # Errors
    /// The kernel's.
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

/// Listens by a protocol, and waits for nothing when it accepts.
///
/// # Errors
/// The kernel's.
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

/// From now on one connection may wait until it is accepted, and SYNs of others are dropped meanwhile.
///
/// # Errors
/// The kernel's.
#[cfg(test)]
pub fn set_backlog_of_one(listener: &TcpListener) -> io::Result<()> {
    // SAFETY: takes numbers.
    checked(unsafe { libc::listen(listener.as_raw_fd(), 0) }).map(drop)
}

/// What a socket connects by that is not bound yet, instead of what its route says.
///
/// # Errors
/// The kernel's.
pub fn set_congestion_control(socket: BorrowedFd, name: &str) -> io::Result<()> {
    let (text, length) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    // SAFETY: the name outlives the call and has the length that is said.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, text, length) })?;
    Ok(())
}

/// Begins to connect by a protocol, from a source port of the caller's choice; `prepare` is given the socket first.
///
/// # Errors
/// The kernel's, and those of `prepare`.
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

/// Where the other end of a connection is.
///
/// # Errors
/// The kernel's, and whatever is no connection by IPv4.
pub fn peer(socket: &impl AsRawFd) -> io::Result<SocketAddrV4> {
    let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address outlives the call and has the length that is said, and zeros are an address.
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

/// Whoever waits for a connection is woken once so many bytes are there, or their end (`SO_RCVLOWAT`). They are acknowledged as if each
/// packet were read when it comes.
///
/// # Errors
/// The kernel's.
pub fn set_receive_low_water(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// When it is dropped, the connection is reset, so that neither end has anything left to say.
///
/// # Errors
/// The kernel's.
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

/// From now on the bytes of a connection are counted from 0, so that acknowledgements can be asked for.
///
/// # Errors
/// The kernel's.
pub fn enable_ack_timestamps(stream: &TcpStream) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(stream, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

/// Sends as much as there is room for. `more` comes at once, so that the rest of a segment waits for it; `last` asks when
/// the last byte of it is acknowledged.
///
/// # Errors
/// The kernel's.
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

/// The next acknowledgement that was asked for: which byte, and when by the real-time clock.
///
/// # Errors
/// The kernel's; `WouldBlock` when there is none.
pub fn next_ack_timestamp(stream: &TcpStream) -> io::Result<Option<(u32, u64)>> {
    let mut control = [0_u64; 64];
    let (mut byte, mut at) = (None, None);
    // SAFETY: the message points to a buffer that outlives the calls; the kernel fills it with whole headers, and what is
    // read of each is what its type has.
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

/// What the kernel knows of a connection, of `struct tcp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Data segments sent, retransmissions included.
    pub data_segments: u32,
    /// Of these, retransmissions.
    pub retransmissions: u32,
    /// Segments that the receiver had already, as it said by DSACK.
    pub duplicates: u32,
    /// The congestion window, in segments.
    pub window: u32,
    /// Bytes of payload in a segment.
    pub segment: u32,
    /// Bytes acknowledged; the end of the connection counts for one.
    pub acknowledged: u64,
    /// Retransmission timeouts; none where the kernel does not count them (before 6.7).
    pub timeouts: Option<u16>,
}

impl TcpInfo {
    /// Bytes of `struct tcp_info` without which nothing can be read.
    const LEAST: usize = 220;

    /// Of `struct tcp_info` (linux/tcp.h), which only ever grows; the kernel has filled in so many bytes.
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
            // The SYN counts for one, too.
            acknowledged: u64::from_ne_bytes(
                info[120..128].try_into().expect("eight bytes are eight bytes"),
            )
            .saturating_sub(1),
            timeouts: (filled >= 242).then(|| u16::from_ne_bytes([info[240], info[241]])),
        }
    }

    /// Both together, of which the segments are alike.
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

/// Asks the kernel of a connection.
///
/// # Errors
/// The kernel's.
pub fn tcp_info(stream: &TcpStream) -> io::Result<TcpInfo> {
    let mut info = [0; TCP_INFO_BYTES];
    let filled = get(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(TcpInfo::read(&info, filled))
}

/// The header of what is known of several connections: its own size, how many there are, the size of what the kernel knows of each,
/// and the size of what it tells of each.
const SUBFLOW_HEADER: usize = 16;

/// Asks the kernel of a connection that has several: of all of them together, and how many there are. The option gives a header of
/// four numbers, and as many times what [`known`] reads.
///
/// # Errors
/// The kernel's.
pub fn subflow_tcp_info(stream: &TcpStream, level: i32, name: i32) -> io::Result<(TcpInfo, u32)> {
    const MOST: usize = 16;
    let mut all = [0; SUBFLOW_HEADER + MOST * TCP_INFO_BYTES];
    all[..4].copy_from_slice(&(SUBFLOW_HEADER as u32).to_ne_bytes());
    all[12..SUBFLOW_HEADER].copy_from_slice(&(TCP_INFO_BYTES as u32).to_ne_bytes());
    get(stream, level, name, &mut all)?;
    parse_subflow_tcp_info(&all)
}

/// What such an answer says. A kernel that knows less of each than it was asked for (before Linux 6.18) tells that much, one after
/// the other without a gap, and says so.
fn parse_subflow_tcp_info(all: &[u8]) -> io::Result<(TcpInfo, u32)> {
    let number = |at: usize| u32::from_ne_bytes([all[at], all[at + 1], all[at + 2], all[at + 3]]);
    let (count, each) = (number(4), number(12) as usize);
    if each < TcpInfo::LEAST {
        let message =
            format!("the kernel tells {each} bytes of each connection, which is too little");
        return Err(io::Error::other(message));
    }
    let infos = all[SUBFLOW_HEADER..].chunks_exact(each).take(count as usize);
    let infos = infos.map(|info| TcpInfo::read(info, each));
    Ok((infos.reduce(TcpInfo::and).unwrap_or_default(), count))
}

fn get(stream: &TcpStream, level: i32, name: i32, into: &mut [u8]) -> io::Result<usize> {
    let mut length = into.len() as libc::socklen_t;
    // SAFETY: there is as much room as is said.
    checked(unsafe {
        let room = into.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), level, name, room, &mut length)
    })?;
    Ok(length as usize)
}

/// The congestion control of a connection, as the kernel calls it.
///
/// # Errors
/// The kernel's.
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

    /// An answer of a kernel that tells so many bytes of each connection: their windows are 10, 20 and so on, and so are their segments.
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
            // SAFETY: there is one, and it outlives the call, which does not wait.
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
