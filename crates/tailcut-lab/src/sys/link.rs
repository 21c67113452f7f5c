//! Offloads of a network interface: what it does to packets before sending and after receiving
//! them.

use std::io;
use std::os::fd::AsRawFd;

use super::checked;
use super::socket::ControlSocket;

/// Offloads that the lab switches off, with the commands to read and to set them (linux/ethtool.h).
const OFFLOADS: [(&str, u32, u32); 6] = [
    ("tx-checksumming", 0x16, 0x17),
    ("scatter-gather", 0x18, 0x19),
    ("tcp-segmentation-offload", 0x1e, 0x1f),
    ("generic-segmentation-offload", 0x23, 0x24),
    ("generic-receive-offload", 0x2b, 0x2c),
    ("rx-checksumming", 0x14, 0x15),
];
const SIOCETHTOOL: u64 = 0x8946;

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    value: *mut EthtoolValue,
    rest: [u64; 2],
}

fn ethtool(socket: &ControlSocket, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = InterfaceRequest { name: [0; 16], value: &mut value, rest: [0; 2] };
    let name = interface.as_bytes();
    if name.len() > 15 {
        return Err(io::Error::other("names of interfaces have at most 15 bytes"));
    }
    request.name[..name.len()].copy_from_slice(name);
    // SAFETY: the request has the size of an ifreq, and it and its value outlive the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) })?;
    Ok(value.data)
}

/// Switches off offloads that merge packets or leave checksums to hardware; returns each with its
/// state as read back.
///
/// # Errors
/// The name of an offload that stays on or cannot be read, with the kernel's error.
pub fn disable_offloads(interface: &str) -> io::Result<Vec<(String, bool)>> {
    let socket = ControlSocket::new()?;
    switch_off_all(|command, data| ethtool(&socket, interface, command, data))
        .map_err(|what| io::Error::other(format!("{interface}: {what}")))
}

fn switch_off_all(
    ask: impl Fn(u32, u32) -> io::Result<u32>,
) -> Result<Vec<(String, bool)>, String> {
    let mut found = vec![];
    for (name, get, set) in OFFLOADS {
        let refused = ask(set, 0).err();
        let told =
            ask(get, 0).map_err(|error| format!("the state of {name} cannot be read: {error}"));
        let on = told? != 0;
        if on && name != "rx-checksumming" {
            let why = refused.map(|error| format!(": {error}")).unwrap_or_default();
            return Err(format!("{name} stays on{why}"));
        }
        found.push((name.to_owned(), on));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_are_listed_with_their_state_as_read_back() {
        let on = |command, _| Ok(u32::from(command == 0x14));
        let found = switch_off_all(on).expect("all that must be off is off");
        assert_eq!(found.len(), OFFLOADS.len());
        assert_eq!(found[1], ("scatter-gather".to_owned(), false));
        assert!(found.contains(&("rx-checksumming".to_owned(), true)));
    }

    #[test]
    fn an_offload_that_stays_on_or_is_unknown_is_an_error() {
        let stays = switch_off_all(|command, _| Ok(u32::from(command == 0x18)));
        assert_eq!(stays, Err("scatter-gather stays on".to_owned()));
        let silent = |command, _| match command {
            0x18 => Err(io::Error::other("no such operation")),
            _ => Ok(0),
        };
        let why = "the state of scatter-gather cannot be read: no such operation";
        assert_eq!(switch_off_all(silent), Err(why.to_owned()));
    }
}
