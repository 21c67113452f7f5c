//! Generic netlink: commands to a subsystem of the kernel, and its events (`linux/genetlink.h`).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;

/// The size of a message's headers: that of netlink and that of generic netlink.
const HEADERS: usize = 20;
/// The longest message that is expected, in bytes.
const LONGEST: usize = 8_192;
/// The family that resolves the names of families.
const CONTROL: u16 = libc::GENL_ID_CTRL as u16;

/// A socket for the commands and events of a family.
pub struct GenericNetlink {
    socket: OwnedFd,
    family: u16,
}

/// An event of a family.
pub struct NetlinkEvent {
    /// The kind of event, by the family's numbers.
    pub kind: u8,
    /// Its attributes, for [`attributes`].
    pub attributes: Vec<u8>,
}

impl GenericNetlink {
    /// Opens a socket to the family of this name; `group` names the multicast group of events to
    /// join, if any.
    ///
    /// # Errors
    /// The kernel's error, for instance if the family or the group does not exist.
    pub fn open(family: &str, group: Option<&str>) -> io::Result<GenericNetlink> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes numbers, and the descriptor that it gives is new.
        let socket = unsafe {
            let made = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC);
            OwnedFd::from_raw_fd(checked(made)?)
        };
        let mut generic = GenericNetlink { socket, family: CONTROL };
        let name = attribute(libc::CTRL_ATTR_FAMILY_NAME as u16, &text(family));
        let answer = generic.request(libc::CTRL_CMD_GETFAMILY as u8, &name)?;
        let missing = || {
            io::Error::other(format!(
                "the kernel does not resolve the netlink family \
                                                   {family}"
            ))
        };
        let number = find(&answer, libc::CTRL_ATTR_FAMILY_ID as u16).ok_or_else(missing)?;
        generic.family = u16::from_ne_bytes(number.try_into().map_err(|_| missing())?);
        if let Some(group) = group {
            generic.join(group_of(&answer, group).ok_or_else(missing)?)?;
        }
        Ok(generic)
    }

    fn join(&self, group: u32) -> io::Result<()> {
        let length = size_of::<u32>() as libc::socklen_t;
        let (level, name) = (libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP);
        // SAFETY: the value outlives the call and has the length that is said.
        checked(unsafe {
            let value = (&raw const group).cast();
            libc::setsockopt(self.socket.as_raw_fd(), level, name, value, length)
        })
        .map(drop)
    }

    /// Sends a command, waits until the kernel has carried it out, and returns the attributes of
    /// the answer.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn request(&self, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
        const VERSION: u8 = 1;
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Vec::with_capacity(HEADERS + attributes.len());
        message.extend(((HEADERS + attributes.len()) as u32).to_ne_bytes());
        message.extend(self.family.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
        message.extend([command, VERSION, 0, 0]);
        message.extend(attributes);
        // SAFETY: the message outlives the calls, and the address is a complete one of the kernel.
        let sent = unsafe {
            let mut kernel: libc::sockaddr_nl = zeroed();
            kernel.nl_family = libc::AF_NETLINK as libc::sa_family_t;
            let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            let (socket, bytes) = (self.socket.as_raw_fd(), message.as_ptr().cast());
            libc::sendto(socket, bytes, message.len(), 0, (&raw const kernel).cast(), length)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = vec![];
        loop {
            let heard = self.receive(0)?;
            let word = |at: usize| heard.get(at..at + 4).and_then(|four| four.try_into().ok());
            let kind = u16::from_ne_bytes([heard[4], heard[5]]);
            if i32::from(kind) != libc::NLMSG_ERROR {
                answer = heard[HEADERS..].to_vec();
                continue;
            }
            return match word(16).map_or(-libc::EBADMSG, i32::from_ne_bytes) {
                0 => Ok(answer),
                number => Err(io::Error::from_raw_os_error(-number)),
            };
        }
    }

    /// Returns the next event without waiting, if there is one.
    ///
    /// # Errors
    /// The kernel's error, for instance if events were lost for lack of room.
    pub fn next_event(&self) -> io::Result<Option<NetlinkEvent>> {
        match self.receive(libc::MSG_DONTWAIT) {
            Ok(heard) => {
                Ok(Some(NetlinkEvent { kind: heard[16], attributes: heard[HEADERS..].to_vec() }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Receives one message with its headers.
    fn receive(&self, flags: i32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; LONGEST];
        let socket = self.socket.as_raw_fd();
        // SAFETY: the buffer has the length that is passed.
        let count = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), flags) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        bytes.truncate(count);
        match count < HEADERS {
            true => Err(io::Error::other("a netlink message is shorter than its headers")),
            false => Ok(bytes),
        }
    }
}

impl AsFd for GenericNetlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn text(of: &str) -> Vec<u8> {
    [of.as_bytes(), &[0]].concat()
}

fn group_of(answer: &[u8], name: &str) -> Option<u32> {
    let groups = find(answer, libc::CTRL_ATTR_MCAST_GROUPS as u16)?;
    let named = attributes(groups).map(|(_, group)| group).find(|group| {
        find(group, libc::CTRL_ATTR_MCAST_GRP_NAME as u16) == Some(text(name).as_slice())
    })?;
    let number = find(named, libc::CTRL_ATTR_MCAST_GRP_ID as u16)?;
    Some(u32::from_ne_bytes(number.try_into().ok()?))
}

/// Encodes an attribute, padded to a multiple of four bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length + 3);
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// Encodes an attribute that contains attributes.
pub fn nested(kind: u16, within: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | libc::NLA_F_NESTED as u16, &within.concat())
}

/// Iterates over the complete attributes: kinds and values.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let [low, high, first, second, ..] = *rest else { return None };
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((u16::from_ne_bytes([first, second]) & libc::NLA_TYPE_MASK as u16, value))
    })
}

/// Returns the value of the first attribute of a kind.
pub fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_round_trip_and_truncated_ones_are_ignored() {
        let all = [attribute(3, &[1]), nested(7, &[attribute(1, b"ab"), attribute(2, &[5; 4])])];
        let bytes = all.concat();
        assert_eq!(bytes.len(), 8 + 4 + 8 + 8);
        assert_eq!(find(&bytes, 3), Some(&[1][..]));
        let within = find(&bytes, 7).expect("it is there");
        assert_eq!((find(within, 1), find(within, 2)), (Some(&b"ab"[..]), Some(&[5; 4][..])));
        assert_eq!(find(&bytes, 4), None);
        for length in 0..bytes.len() {
            assert_eq!(find(&bytes[..length], 7), None, "{length}");
        }
        assert_eq!(attributes(&[3, 0, 1, 0, 9]).count(), 0, "shorter than its header");
    }

    #[test]
    fn known_families_are_resolved_and_unknown_ones_are_errors() {
        // The family `nlctrl` exists in every kernel with generic netlink.
        let Ok(control) = GenericNetlink::open("nlctrl", Some("notify")) else { return };
        assert_eq!(control.family, CONTROL);
        assert!(control.next_event().expect("nothing is wrong").is_none());
        let missing = GenericNetlink::open("no such family", None).err().expect("there is none");
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        assert!(GenericNetlink::open("nlctrl", Some("no such group")).is_err());
    }
}
