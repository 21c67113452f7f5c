//! Generic netlink: commands to a part of the kernel, and what it tells by itself (`linux/genetlink.h`).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;

/// The headers of a message: netlink's, and that of generic netlink.
const HEADERS: usize = 20;
/// Longer ones are not expected here.
const LONGEST: usize = 8_192;
/// Where families are asked for, by name.
const CONTROL: u16 = libc::GENL_ID_CTRL as u16;

/// A way to talk to a family of commands and events.
pub struct GenericNetlink {
    socket: OwnedFd,
    family: u16,
}

/// Something that a family tells by itself.
pub struct NetlinkEvent {
    /// Its kind, by the family's own numbers.
    pub kind: u8,
    /// Its attributes: see [`attributes`].
    pub attributes: Vec<u8>,
}

impl GenericNetlink {
    /// To the family of this name; `group` is that of the events to be told of.
    ///
    /// # Errors
    /// The kernel's, as when it has no such family, or no such group.
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
        let missing = || io::Error::other(format!("the kernel does not say what {family} is"));
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

    /// A command, which the kernel has carried out when this returns; gives the attributes of its answer.
    ///
    /// # Errors
    /// The kernel's.
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
        // SAFETY: the message outlives the calls, and the address is a whole one, of the kernel.
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

    /// What has been told, if anything, without waiting.
    ///
    /// # Errors
    /// The kernel's, as when there was no room for all of it.
    pub fn next_event(&self) -> io::Result<Option<NetlinkEvent>> {
        match self.receive(libc::MSG_DONTWAIT) {
            Ok(heard) => {
                Ok(Some(NetlinkEvent { kind: heard[16], attributes: heard[HEADERS..].to_vec() }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One message with its headers.
    fn receive(&self, flags: i32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; LONGEST];
        let socket = self.socket.as_raw_fd();
        // SAFETY: the buffer is as long as is said.
        let count = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), flags) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        bytes.truncate(count);
        match count < HEADERS {
            true => Err(io::Error::other("a message of netlink without its headers")),
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

/// An attribute, with what fills it up to a multiple of four bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length + 3);
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// Attributes in an attribute.
pub fn nested(kind: u16, within: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | libc::NLA_F_NESTED as u16, &within.concat())
}

/// The attributes that are there whole: kinds and values.
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

/// The value of the first attribute of a kind.
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
        // The family of families is in every kernel that has any.
        let Ok(control) = GenericNetlink::open("nlctrl", Some("notify")) else { return };
        assert_eq!(control.family, CONTROL);
        assert!(control.next_event().expect("nothing is wrong").is_none());
        let missing = GenericNetlink::open("no such family", None).err().expect("there is none");
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        assert!(GenericNetlink::open("nlctrl", Some("no such group")).is_err());
    }
}
