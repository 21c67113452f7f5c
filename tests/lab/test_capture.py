"""Captures of hosts with real kernels, as tshark reads them."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import tailcut
from support.skipping import needs
from tailcut.lab.fabrics import FABRICS

pytestmark = pytest.mark.usefixtures("kernel")


def tshark(file: Path, shown: str, *fields: str) -> list[list[str]]:
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    what = [part for field in fields for part in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-n", "-r", file, *checks, "-Y", shown, "-T", "fields", *what],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


@needs(shutil.which("tshark"), "tshark is not installed", "apt-get install tshark")
@pytest.mark.parametrize("fabric", FABRICS)
def test_frames_of_a_host_are_whole_and_in_order_and_those_of_its_flows(
    experiment: Path, tmp_path: Path, fabric: str
) -> None:
    out = tmp_path / "results"
    result = tailcut.run(tailcut.load(experiment), on=tailcut.Lab(fabric=fabric), out=out, capture=["host:0"])
    (file,) = (tmp_path / "results").glob("runs/*/capture.pcapng")
    about = json.loads((file.parent / "run.json").read_text())
    frames = tshark(file, "frame", "frame.time_epoch")
    assert len(frames) == about["captured"]["packets"] > 0
    times = [float(time) for (time,) in frames]
    assert times == sorted(times)
    # Linux writes a checksum of zero as 0xffff, which is its other form (RFC 1624), in one frame of
    # 65,536.
    bad = "ip.checksum.status == Bad or (tcp.checksum.status == Bad and tcp.checksum != 0xffff)"
    wrong = f"_ws.malformed or {bad}"
    assert tshark(file, wrong, "frame.number") == []
    assert all("10.77.0.1" in pair for pair in tshark(file, "ip", "ip.src", "ip.dst"))
    # Every flow of the host begins with a SYN, and every flow to it with an answer.
    flows = result.lab.flows
    opened = {port for (port,) in tshark(file, "ip.src == 10.77.0.1 and tcp.flags == 0x002", "tcp.srcport")}
    answered = {
        tuple(pair) for pair in tshark(file, "ip.src == 10.77.0.1 and tcp.flags == 0x012", "ip.dst", "tcp.dstport")
    }
    assert len(opened) == flows.filter(src=0).height
    assert len(answered) == flows.filter(dst=0).height


@needs(shutil.which("tshark"), "tshark is not installed", "apt-get install tshark")
@pytest.mark.parametrize("recovery", ["sack-prr", "newreno"])
def test_handshakes_weigh_what_the_simulators_do(experiment: Path, tmp_path: Path, recovery: str) -> None:
    """Else a flow alone is faster than any flow can be, the more so the slower links are."""
    loaded = tailcut.load(experiment, set={"transport.recovery": f'"{recovery}"'})
    weigh = {}
    for on in ("sim", "lab"):
        tailcut.run(loaded, on=on, out=tmp_path / on, capture=["host:0"])
        (file,) = (tmp_path / on).glob("runs/*/capture.pcapng")
        weigh[on] = {length for (length,) in tshark(file, "tcp.flags.syn == 1", "ip.len")}
    assert weigh["lab"] == weigh["sim"]
    assert len(weigh["lab"]) == 1
