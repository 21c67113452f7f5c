//! Which of the kernel's transports a plan's is: a file for each, and a line in [`TRANSPORTS`].

pub(crate) mod mptcp;
pub(crate) mod tcp;

#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::net::{Ipv4Addr, TcpStream};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};

use tailcut_net::transport::TransportSpec;

use crate::answers::{CapabilityRow, FabricFacts, RunCheck};
#[cfg(target_os = "linux")]
use crate::host_settings::HostSettings;
#[cfg(target_os = "linux")]
use crate::sys::socket::{self, TcpInfo};

/// A transport of kernels: what becomes of a plan's, and how the lab's own sockets carry flows by it.
pub(crate) trait Transport: Sync {
    /// As plans call it.
    fn name(&self) -> &'static str;

    /// What becomes of a plan's; false if it is another.
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &TransportSpec,
        by_repnet: bool,
        fabric: FabricFacts,
    ) -> bool;

    /// What it takes that not every kernel has, where it takes something.
    fn capability(&self) -> Option<CapabilityRow> {
        None
    }

    /// Tries that in a namespace of its own.
    ///
    /// # Errors
    /// Why it cannot be had.
    #[cfg(target_os = "linux")]
    fn probe(&self) -> io::Result<String> {
        Ok("there".to_owned())
    }

    /// The protocol of its sockets.
    #[cfg(target_os = "linux")]
    fn protocol(&self) -> i32 {
        libc::IPPROTO_TCP
    }

    /// What a socket is told before it connects.
    ///
    /// # Errors
    /// The kernel's.
    #[cfg(target_os = "linux")]
    fn configure(&self, _socket: BorrowedFd, _hosts: &HostSettings) -> io::Result<()> {
        Ok(())
    }

    /// Whether receivers end a connection, once they have read everything, and senders know by that that it has arrived. Otherwise
    /// senders end it, if anybody does, and the kernel stamps the last acknowledgement for them.
    fn is_closed_by_receiver(&self) -> bool {
        false
    }

    /// What the kernel knows of a connection, and of how many subflows it is.
    ///
    /// # Errors
    /// The kernel's.
    #[cfg(target_os = "linux")]
    fn tcp_info(&self, stream: &TcpStream) -> io::Result<(TcpInfo, u32)> {
        socket::tcp_info(stream).map(|known| (known, 1))
    }

    /// What a host does for its connections besides, from these further addresses of it.
    ///
    /// # Errors
    /// The kernel's.
    #[cfg(target_os = "linux")]
    fn start_service(
        &self,
        _further: Vec<Ipv4Addr>,
    ) -> io::Result<Option<Box<dyn TransportService>>> {
        Ok(None)
    }
}

/// What a host does for its connections beside carrying their bytes.
#[cfg(target_os = "linux")]
pub(crate) trait TransportService: AsFd {
    /// Something is there to be read: takes it in. The hosts listen at this port.
    ///
    /// # Errors
    /// The kernel's.
    fn on_readable(&self, port: u16) -> io::Result<()>;
}

/// All that the lab's hosts have; the first is that of hosts of which nothing is said.
pub(crate) const TRANSPORTS: [&dyn Transport; 2] = [&tcp::Tcp, &mptcp::Mptcp];

/// The one of this name.
#[cfg(target_os = "linux")]
pub(crate) fn by_name(name: &str) -> &'static dyn Transport {
    TRANSPORTS.into_iter().find(|one| one.name() == name).unwrap_or(TRANSPORTS[0])
}

/// What becomes of a plan's.
pub(crate) fn check(
    checked: &mut RunCheck,
    spec: &TransportSpec,
    by_repnet: bool,
    fabric: FabricFacts,
) {
    match TRANSPORTS.iter().find(|one| one.check(checked, spec, by_repnet, fabric)) {
        Some(found) => checked.hosts.transport = found.name(),
        None => checked.fatal(
            "transport.kind",
            "no kernel has this transport, and hosts of the lab are set alike and have one",
        ),
    }
}
