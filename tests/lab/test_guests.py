"""Programs of one's own over the lab's fabric."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.kernels import LIMIT_SECONDS, MARK, planned, wait_until_none
from tailcut import _core
from tailcut.lab import process

pytestmark = pytest.mark.usefixtures("kernel")

THREE_PATHS = Path(__file__).parents[2] / "packages/repnet-bench/bench/fabric/three-paths.toml"
SERVER = """
import socket
listener = socket.create_server(("10.77.0.2", 5432))
while True:
    stream, _ = listener.accept()
    stream.sendall(stream.recv(9) * 10_000)
    stream.close()
"""
CLIENT = """
import os, socket, sys, time
while True:
    try:
        stream = socket.create_connection(("10.77.0.2", 5432))
        break
    except OSError:
        time.sleep(0.01)
stream.sendall(b"tailcut 1")
got = b""
while part := stream.recv(65536):
    got += part
with open(sys.argv[1] + ".new", "wb") as file:
    file.write(got)
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


class EnoughError(Exception):
    """The guests are done."""


def test_guests_talk_across_the_fabric_and_end_with_it(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    run = planned(experiment, **{"horizon.arrivals": '"600s"'})
    into = tmp_path / "got"
    guests: list[dict[str, Any]] = [
        {"host": 1, "command": [sys.executable, "-c", SERVER]},
        {"host": 3, "command": [sys.executable, "-c", CLIENT, str(into)]},
    ]

    def look(_now_ns: int, _over: int) -> None:
        if into.exists():
            raise EnoughError

    with pytest.raises(EnoughError):
        process.run(json.dumps(run), look, LIMIT_SECONDS, guests=guests)
    assert into.read_bytes() == b"tailcut 1" * 10_000
    wait_until_none(str(tmp_path))


def test_a_guest_that_fails_fails_the_run(experiment: Path) -> None:
    run = json.dumps(planned(experiment))
    with pytest.raises(process.LabError, match="a guest is to run on host 4, which does not exist"):
        process.run(run, lambda _now, _over: None, LIMIT_SECONDS, guests=[{"host": 4, "command": ["true"]}])
    with pytest.raises(process.LabError, match="/nowhere: No such file"):
        process.run(run, lambda _now, _over: None, LIMIT_SECONDS, guests=[{"host": 0, "command": ["/nowhere"]}])
    with pytest.raises(process.LabError, match="the guest false has failed: exit status: 1"):
        process.run(run, lambda _now, _over: None, LIMIT_SECONDS, guests=[{"host": 0, "command": ["false"]}])


def test_the_guests_module_reads_one_json_line_and_prints_one(experiment: Path) -> None:
    asked: dict[str, Any] = {"experiment": str(experiment), "set": {"horizon.arrivals": '"100ms"'}, "guests": []}
    command = [sys.executable, "-m", "tailcut.lab.guests"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, check=True, encoding="utf-8")
    assert set(json.loads(done.stdout)) == {"unfaithful", "facts"}
    asked["guests"] = [{"host": 9, "command": ["true"]}]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, check=False, encoding="utf-8")
    refused = {"failed": "a guest is to run on host 9, which does not exist"}
    assert (done.returncode, json.loads(done.stdout)) == (1, refused)


def test_the_long_flows_of_three_paths_share_one() -> None:
    demand = json.loads(_core.demand(json.dumps(planned(THREE_PATHS))))
    first, second = (flow["forward"] for flow in demand["flows"])
    assert set(first) & set(second)
