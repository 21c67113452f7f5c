//! What a network interface does to packets before it sends them, and after it receives them.

use std::io;
use std::os::fd::AsRawFd;

use super::checked;
use super::socket::Plain;

/// Kernel interface of ethtool (linux/ethtool.h): the switches of an interface that are of concern here.
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
struct Value {
    command: u32,
    data: u32,
}

#[repr(C)]
struct Request {
    name: [u8; 16],
    value: *mut Value,
    rest: [u64; 2],
}

fn ask(socket: &Plain, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    let mut request = Request { name: [0; 16], value: &mut value, rest: [0; 2] };
    let name = interface.as_bytes();
    if name.len() > 15 {
        return Err(io::Error::other("names of interfaces have at most 15 bytes"));
    }
    request.name[..name.len()].copy_from_slice(name);
    // SAFETY: the request is as large as an ifreq and outlives the call, and so does what it points to.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) })?;
    Ok(value.data)
}

/// Switches off whatever makes several packets one, or leaves checksums to hardware.
///
/// # Errors
/// The name of what stays on, or the kernel's error.
pub fn no_offloads(interface: &str) -> io::Result<()> {
    let socket = Plain::new()?;
    for (name, get, set) in OFFLOADS {
        let refused = ask(&socket, interface, set, 0).err();
        let on = ask(&socket, interface, get, 0).unwrap_or(0) != 0;
        if on && name != "rx-checksumming" {
            let why = refused.map(|error| format!(": {error}")).unwrap_or_default();
            return Err(io::Error::other(format!("{interface}: {name} stays on{why}")));
        }
    }
    Ok(())
}
