//! Transports of kernels. A new one is a file here and a line in [`TRANSPORTS`].

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

/// A transport of kernels: the check of a plan's transport, and how the lab's sockets carry flows
/// over it.
pub(crate) trait KernelTransport: Sync {
    /// The transport's name in plans.
    fn name(&self) -> &'static str;

    /// Checks the plan's transport; returns false if `spec` is another kind.
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &TransportSpec,
        by_repnet: bool,
        fabric: FabricFacts,
    ) -> bool;

    /// The capability that this transport needs beyond any kernel's, if any.
    fn capability(&self) -> Option<CapabilityRow> {
        None
    }

    /// Probes that capability; called in a separate network namespace.
    ///
    /// # Errors
    /// The reason why the kernel lacks it.
    #[cfg(target_os = "linux")]
    fn probe(&self) -> io::Result<String> {
        Ok("there".to_owned())
    }

    /// The protocol number of its sockets.
    #[cfg(target_os = "linux")]
    fn protocol(&self) -> i32 {
        libc::IPPROTO_TCP
    }

    /// Configures a socket before it connects.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(target_os = "linux")]
    fn configure(&self, _socket: BorrowedFd, _hosts: &HostSettings) -> io::Result<()> {
        Ok(())
    }

    /// Whether the receiver closes first, once it has read everything, which tells the sender that
    /// the flow arrived. Otherwise the sender closes (or nobody), and the kernel timestamps the
    /// last ACK.
    fn is_closed_by_receiver(&self) -> bool {
        false
    }

    /// Reads the kernel's counters of a connection, and the number of its subflows.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(target_os = "linux")]
    fn tcp_info(&self, stream: &TcpStream) -> io::Result<(TcpInfo, u32)> {
        socket::tcp_info(stream).map(|known| (known, 1))
    }

    /// Starts the transport's background service on a host, if it has one, with the host's extra
    /// addresses.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(target_os = "linux")]
    fn start_service(
        &self,
        _further: Vec<Ipv4Addr>,
    ) -> io::Result<Option<Box<dyn TransportService>>> {
        Ok(None)
    }
}

/// A background service of a transport on a host. Its descriptor is readable when there are events.
#[cfg(target_os = "linux")]
pub(crate) trait TransportService: AsFd {
    /// Handles the pending events. `port` is the port on which hosts listen.
    ///
    /// # Errors
    /// The kernel's error.
    fn on_readable(&self, port: u16) -> io::Result<()>;
}

/// All transports that hosts can use; the first is the default.
pub(crate) const TRANSPORTS: [&dyn KernelTransport; 2] = [&tcp::KernelTcp, &mptcp::KernelMptcp];

/// Returns the transport of this name, or the default.
#[cfg(target_os = "linux")]
pub(crate) fn by_name(name: &str) -> &'static dyn KernelTransport {
    TRANSPORTS.into_iter().find(|one| one.name() == name).unwrap_or(TRANSPORTS[0])
}

/// Checks the plan's transport.
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
            "no kernel has this transport, and all hosts of a lab run share one transport",
        ),
    }
}
