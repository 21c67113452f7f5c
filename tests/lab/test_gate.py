"""The verdict's reasons, each provoked over real kernels. What is forgiven, unit tests of the lab's crate say."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.disturbances import disturbed, held, star, stop
from support.kernels import carried, planned
from support.killing import Lab
from support.skipping import missing, needs
from support.stutter import stuttering

pytestmark = pytest.mark.usefixtures("kernel")

SOME = "\n".join(f"0,1,1000,{10_000 * number}" for number in range(200))
"""Two hundred flows of 1 KB, ten milliseconds apart."""
LONG = "0,1,8000000,1000"
"""A flow of 8 MB: 3.2 s at 20 Mbps."""


def within(pid: int, *command: str, network: str = "") -> None:
    """Run a command in the network of a process of the lab, or in a network that it keeps."""
    enter = shutil.which("nsenter")
    if enter is None:
        missing("the kernel lab: nsenter is not there", "apt-get install util-linux")
    where = [enter, f"--target={pid}", "--user", f"--net={network}" if network else "--net", "--preserve-credentials"]
    subprocess.run([*where, *command], check=True, capture_output=True)


def reasons(outcome: dict[str, Any]) -> str:
    return "; ".join(outcome["unfaithful"])


def test_an_undisturbed_run_discards_no_frame(experiment: Path) -> None:
    facts = carried(planned(experiment))["facts"]
    assert facts["ring_drops"] == facts["refused"] == facts["strange"] == 0
    assert facts["thrown_away"] == {}
    for when in ("before", "after"):
        late = facts[when]["late_ns"]
        assert len(late) == 5
        assert all(one is not None and one >= 0 for one in late)


@needs(Path("/proc/net/if_inet6").exists(), "this kernel has no IPv6")
def test_hosts_and_fabric_send_no_ipv6_frames(tmp_path: Path, token: str) -> None:
    addresses: list[str] = []

    def look(lab: Lab) -> None:
        addresses.extend(Path(f"/proc/{pid}/net/if_inet6").read_text() for pid in [lab.fabric, *lab.hosts])

    disturbed(star(tmp_path, SOME, drain="100ms"), token, 250_000_000, look)
    assert addresses == [""] * 5


def test_a_paused_fabric_hands_frames_over_late_and_misses_its_rate(tmp_path: Path, token: str) -> None:
    outcome = disturbed(star(tmp_path, LONG), token, 1_500_000_000, lambda lab: stop([lab.fabric], 0.3))
    assert "the fabric handed over one frame in a hundred more than" in reasons(outcome)
    assert "a busy link missed its rate in" in reasons(outcome)
    assert outcome["facts"]["paces"]["off"] >= 2


def test_a_kernel_port_that_misses_its_rate_is_reported(tmp_path: Path, token: str) -> None:
    def slow_down(lab: Lab) -> None:
        home = Path(f"/proc/{lab.fabric}/ns/net").readlink()
        kept = {one: one.readlink() for one in Path(f"/proc/{lab.fabric}/fd").iterdir()}
        (switch,) = [str(one) for one, to in kept.items() if str(to).startswith("net:[") and to != home]
        # The switch's port to the second host, whose queue is full of what two hosts send.
        slower = "tc qdisc change dev p3 root tbf rate 15mbit burst 3000 overhead 24 limit 1000000"
        within(lab.fabric, *slower.split(), network=switch)

    run = star(tmp_path, "0,1,4000000,1000\n2,1,4000000,1000")
    outcome = disturbed(run, token, 800_000_000, slow_down, fabric="kernel")
    assert "a busy link missed its rate in" in reasons(outcome)
    assert outcome["facts"]["paces"]["off"] >= 10


def test_a_late_incident_of_the_kernel_fabric_is_reported(tmp_path: Path, token: str) -> None:
    run = star(tmp_path, SOME, incidents='[{ kind = "link-down", link = "h3>s0", at = "900ms" }]')
    outcome = disturbed(run, token, 250_000_000, lambda lab: stop([lab.fabric], 1.2), fabric="kernel")
    assert "a failure or repair was carried out" in reasons(outcome)
    assert outcome["facts"]["changed"]["longest_ns"] > 50_000_000


def test_paused_hosts_start_flows_late(tmp_path: Path, token: str) -> None:
    outcome = disturbed(star(tmp_path, SOME), token, 250_000_000, lambda lab: stop(lab.hosts, 0.3))
    assert "one flow in a hundred started more than" in reasons(outcome)


TWO = "0,1,1000,1000\n0,1,1000,1500000"
"""The second goes long after the run is disturbed, however late that is: the run is not over by then."""


def test_idle_flows_reveal_an_untimely_machine_after_the_run(tmp_path: Path, token: str) -> None:
    with stuttering() as stutter:
        outcome = disturbed(star(tmp_path, TWO), token, 250_000_000, lambda lab: stutter.begin(lab.fabric))
    assert "after the run test flows on the idle fabric took" in reasons(outcome)


def test_idle_flows_reveal_an_untimely_machine_before_the_run(tmp_path: Path, token: str) -> None:
    with stuttering() as stutter:
        stutter.begin_with_the_next_run()
        outcome = disturbed(star(tmp_path, TWO), token, 250_000_000, lambda _lab: stutter.end())
    assert "before the run test flows on the idle fabric took" in reasons(outcome)
    assert None not in outcome["facts"]["before"]["late_ns"]


def test_packets_dropped_by_kernels_are_reported(tmp_path: Path, token: str) -> None:
    # A segment whose checksum is wrong, from the host to itself.
    raw = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)\n"
    raw += "s.sendto(bytes([4, 0, 4, 1, *[0] * 8, 0x50, 2, 1, 0, 9, 9, 0, 0]), ('127.0.0.1', 0))"
    run = star(tmp_path, SOME)
    outcome = disturbed(run, token, 250_000_000, lambda lab: within(lab.hosts[2], sys.executable, "-c", raw))
    assert "dropped by kernels" in reasons(outcome)
    assert outcome["facts"]["thrown_away"] == {"Tcp InCsumErrors": 1}


def test_frames_of_no_planned_flow_are_reported(tmp_path: Path, token: str) -> None:
    call = "import socket; s = socket.socket(); s.setblocking(False); s.connect_ex(('10.77.0.2', 9))"
    run = star(tmp_path, SOME)
    outcome = disturbed(run, token, 250_000_000, lambda lab: within(lab.hosts[3], sys.executable, "-c", call))
    assert "frames match no flow of the plan" in reasons(outcome)


def test_frames_that_cannot_be_handed_over_are_reported(tmp_path: Path, token: str) -> None:
    run = star(tmp_path, SOME, drain="100ms")
    outcome = disturbed(run, token, 250_000_000, lambda lab: within(lab.fabric, "ip", "link", "set", "e1", "down"))
    assert "frames were refused by a host's interface" in reasons(outcome)


def test_frames_dropped_at_the_fabrics_input_are_reported(tmp_path: Path, token: str) -> None:
    flood = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    flood += "for _ in range(20_000): s.sendto(b'', ('10.77.0.2', 9))"

    def disturb(lab: Lab) -> None:
        with held([lab.fabric]):
            within(lab.hosts[0], sys.executable, "-c", flood)

    outcome = disturbed(star(tmp_path, SOME), token, 250_000_000, disturb)
    assert "frames found no room on their way into the fabric" in reasons(outcome)
