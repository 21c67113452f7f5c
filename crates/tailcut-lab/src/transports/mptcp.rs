//! Multipath TCP of the kernel: the check of a plan, and the opening of subflows.
//!
//! A host has an address per subflow. The first subflow uses the host's own address and the
//! simulator's source port. When the kernel reports a connection as established, its client opens
//! the others, from the extra addresses and with the same port: a frame's addresses identify its
//! subflow. The kernel's own path manager would also open subflows from the receivers, and choose
//! the ports.

#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::net::{Ipv4Addr, TcpStream};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::mptcp::MptcpSpec;
use tailcut_net::transport::tcp::TcpSpec;

use super::KernelTransport;
#[cfg(target_os = "linux")]
use super::TransportService;
use super::tcp::check_tcp;
use crate::addressing::MAX_ADDRESSES;
use crate::answers::{CapabilityRow, FabricFacts, Realisation, RunCheck};
#[cfg(target_os = "linux")]
use crate::host_settings::HostSettings;
#[cfg(target_os = "linux")]
use crate::sys::netlink::{GenericNetlink, attribute, find, nested};
#[cfg(target_os = "linux")]
use crate::sys::socket::{self, TcpInfo};
#[cfg(target_os = "linux")]
use crate::sys::sysctl::set_sysctls;

/// The name of the capability.
const CAPABILITY: &str = "subflows";
/// The size in bytes of the option with the data-sequence mapping (RFC 8684, section 3.3), where
/// data flow one way only.
const DATA_SEQUENCE: u64 = 24;
/// The sysctl that selects who opens subflows; 1 is user space.
const PATH_MANAGER: &str = "mptcp/pm_type";

/// The kernel's Multipath TCP.
pub(super) struct KernelMptcp;

impl KernelTransport for KernelMptcp {
    fn name(&self) -> &'static str {
        "mptcp"
    }
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &TransportSpec,
        by_repnet: bool,
        fabric: FabricFacts,
    ) -> bool {
        let TransportSpec::Mptcp(spec) = spec else { return false };
        check(checked, spec, by_repnet, fabric);
        true
    }
    fn capability(&self) -> Option<CapabilityRow> {
        Some(CapabilityRow {
            name: CAPABILITY.to_owned(),
            needed_for: "transport.kind = \"mptcp\"",
            remedy: "Linux 5.19 or later with CONFIG_MPTCP",
            fatal: false,
        })
    }
    #[cfg(target_os = "linux")]
    fn probe(&self) -> io::Result<String> {
        set_sysctls(&[(PATH_MANAGER, "1".to_owned())])?;
        SubflowOpener::new(vec![]).map(|_| "opened by the hosts".to_owned())
    }
    #[cfg(target_os = "linux")]
    fn protocol(&self) -> i32 {
        libc::IPPROTO_MPTCP
    }
    /// The route's congestion control applies to the first subflow only; the others would use the
    /// machine's default.
    #[cfg(target_os = "linux")]
    fn configure(&self, socket: BorrowedFd, hosts: &HostSettings) -> io::Result<()> {
        socket::set_congestion_control(socket, &hosts.congestion)
    }
    /// A closed connection opens no subflows, and the kernel timestamps no ACKs of subflows.
    fn is_closed_by_receiver(&self) -> bool {
        true
    }
    #[cfg(target_os = "linux")]
    fn tcp_info(&self, stream: &TcpStream) -> io::Result<(TcpInfo, u32)> {
        // Constants of linux/mptcp.h.
        const SOL_MPTCP: i32 = 284;
        const MPTCP_TCPINFO: i32 = 2;
        match socket::subflow_tcp_info(stream, SOL_MPTCP, MPTCP_TCPINFO) {
            // The connection has fallen back to TCP.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                socket::tcp_info(stream).map(|known| (known, 1))
            }
            other => other,
        }
    }
    #[cfg(target_os = "linux")]
    fn start_service(
        &self,
        further: Vec<Ipv4Addr>,
    ) -> io::Result<Option<Box<dyn TransportService>>> {
        Ok(Some(Box::new(SubflowOpener::new(further)?)))
    }
}

/// Checks the plan's Multipath TCP.
fn check(checked: &mut RunCheck, spec: &MptcpSpec, by_repnet: bool, fabric: FabricFacts) {
    let MptcpSpec { subflows, receive_window, tcp: each } = spec;
    check_tcp(checked, &TcpSpec { receive_window: *receive_window, ..each.clone() });
    // These two fields get other outcomes below.
    let more = ["transport.mss", "transport.close"];
    checked
        .outcomes
        .retain(|told| told.realisation == Realisation::Fatal || !more.contains(&&*told.field));
    let fields = checked.outcomes.iter_mut().map(|told| &mut told.field);
    let fields = fields.chain(checked.needs.iter_mut().map(|need| &mut need.field));
    for field in fields.filter(|field| *field != "transport.receive_window") {
        *field = field.replace("transport.", "transport.tcp.");
    }
    checked.near(
        "transport.tcp.receive_window",
        "the kernel has one receive window for all subflows of a connection, and none per subflow",
    );
    match Path::new("/proc/sys/net").join(PATH_MANAGER).exists() {
        _ if by_repnet => checked.fatal(
            "transport.kind",
            "Node does not open Multipath TCP \
                                                           sockets",
        ),
        false => checked.fatal(
            "transport.kind",
            "this kernel has no Multipath TCP with subflows from user space: use Linux 5.19 or \
             later with CONFIG_MPTCP",
        ),
        true => {
            checked.needs(CAPABILITY, "transport.kind");
            checked.near(
                "transport.kind",
                "the kernel's Multipath TCP, with one uncoupled congestion window per subflow \
                 (Linux lacks RFC 6356); subflows join one round trip after the handshake, once \
                 the first data are acknowledged",
            );
        }
    }
    checked.done_or_fatal(
        (1..=MAX_ADDRESSES).contains(subflows),
        "transport.subflows",
        "one address of the host per subflow, hashed as the simulator's subflow of that number",
        format!("{subflows} subflows: a host of the lab has at most {MAX_ADDRESSES} addresses"),
    );
    if !fabric.routes_extra_addresses {
        checked.fatal(
            "transport.subflows",
            "kernel switches do not route to the extra addresses of subflows: use the engine \
             fabric (--lab-fabric engine)",
        );
    }
    checked.near(
        "transport.tcp.mss",
        format!(
            "as planned; each segment also carries {DATA_SEQUENCE} bytes of data-sequence \
                 mapping (DSS option), each ACK up to 12"
        ),
    );
    checked.done_or_fatal(
        checked.hosts.closes,
        "transport.tcp.close",
        "the receiver closes first, once it has read everything, then the sender: a closed \
         connection cannot open further subflows",
        "the sender learns from the closing of the connection that everything has arrived: write \
         close = \"fin\"",
    );
    checked.hosts.mtu += DATA_SEQUENCE;
    checked.hosts.further_addresses = subflows.saturating_sub(1);
    for (name, value) in [("mptcp/enabled", 1), (PATH_MANAGER, 1), ("mptcp/checksum_enabled", 0)] {
        checked.sysctl(name, value);
    }
    // The kernel's default: a subflow's buffer grows with its window. With room for everything, the
    // first subflow would take all data before the others have joined.
    checked.sysctl("ipv4/tcp_wmem", "4096\t16384\t4194304");
}

/// The service that opens the extra subflows of a host's connections.
#[cfg(target_os = "linux")]
struct SubflowOpener {
    /// Events of connections. While this socket is open, the kernel accepts subflows of other
    /// hosts.
    events: GenericNetlink,
    commands: GenericNetlink,
    /// The source addresses of the extra subflows.
    from: Vec<Ipv4Addr>,
}

#[cfg(target_os = "linux")]
impl SubflowOpener {
    /// Creates the service. It fails if the kernel lacks Multipath TCP.
    fn new(from: Vec<Ipv4Addr>) -> io::Result<SubflowOpener> {
        const FAMILY: &str = "mptcp_pm";
        let events = GenericNetlink::open(FAMILY, Some("mptcp_pm_events"))?;
        Ok(SubflowOpener { events, commands: GenericNetlink::open(FAMILY, None)?, from })
    }
}

#[cfg(target_os = "linux")]
impl AsFd for SubflowOpener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

#[cfg(target_os = "linux")]
impl TransportService for SubflowOpener {
    /// Opens the subflows of connections to this port that have been established; it fails if the
    /// kernel lost events.
    fn on_readable(&self, port: u16) -> io::Result<()> {
        // Constants of linux/mptcp_pm.h.
        const ESTABLISHED: u8 = 2;
        const CREATE: u8 = 10;
        const TOKEN_OF_COMMAND: u16 = 4;
        while let Some(event) = self.events.next_event()? {
            let Some(known) = Established::parse(&event.attributes) else { continue };
            if event.kind != ESTABLISHED || known.to.1 != port {
                continue;
            }
            for (number, from) in (1..).zip(&self.from) {
                let ends = [
                    attribute(TOKEN_OF_COMMAND, &known.token),
                    end(1, number, (*from, known.port)),
                    end(6, 0, known.to),
                ];
                // The connection may be closed by now. Its sender reports the number of subflows.
                let _ = self.commands.request(CREATE, &ends.concat());
            }
        }
        Ok(())
    }
}

/// An established connection, as the kernel reports it.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Established {
    token: [u8; 4],
    /// The source port of its first subflow.
    port: u16,
    to: (Ipv4Addr, u16),
}

#[cfg(target_os = "linux")]
impl Established {
    fn parse(attributes: &[u8]) -> Option<Established> {
        let four = |kind: u16| <[u8; 4]>::try_from(find(attributes, kind)?).ok();
        let port = |kind: u16| Some(u16::from_be_bytes(find(attributes, kind)?.try_into().ok()?));
        Some(Established { token: four(1)?, port: port(9)?, to: (four(7)?.into(), port(10)?) })
    }
}

/// Encodes an end of a subflow as an attribute; `number` distinguishes the addresses of a host.
#[cfg(target_os = "linux")]
fn end(kind: u16, number: u8, (address, port): (Ipv4Addr, u16)) -> Vec<u8> {
    const VERSION_4: u16 = 2;
    let within = [
        attribute(1, &VERSION_4.to_ne_bytes()),
        attribute(2, &[number]),
        attribute(3, &address.octets()),
        attribute(5, &port.to_ne_bytes()),
    ];
    nested(kind, &within)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_established_connection_is_parsed() {
        let told = [
            attribute(1, &[0xfd, 0x0b, 0x53, 0x5b]),
            attribute(2, &2_u16.to_ne_bytes()),
            attribute(5, &[10, 77, 0, 1]),
            attribute(7, &[10, 77, 0, 2]),
            attribute(9, &[4, 0]),
            attribute(10, &[0xf2, 0x30]),
        ];
        let token = [0xfd, 0x0b, 0x53, 0x5b];
        let to = (Ipv4Addr::new(10, 77, 0, 2), 62_000);
        let known = Established { token, port: 1_024, to };
        assert_eq!(Established::parse(&told.concat()), Some(known));
        for missing in [0, 3, 4, 5] {
            let mut less = told.to_vec();
            less.remove(missing);
            assert_eq!(Established::parse(&less.concat()), None, "{missing}");
        }
    }
}
