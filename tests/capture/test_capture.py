"""Captures from the command's point of view: which files there are, and what tshark finds in them."""

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest

import tailcut
from tailcut.errors import BackendError
from tailcut.result import Result

# Twelve senders overrun one port: losses, fast retransmits and timeouts.
INCAST = """
title = "incast"

[topology]
kind = "star"
hosts = 13

[queue]
kind = "drop-tail"
limit = "20packets"

[traffic]
kind = "incast"
fan_in = 12
sizes = "200KB"
receiver = 12
rounds = 1

[horizon]
arrivals = "1ms"
"""


@pytest.fixture
def experiment(tmp_path: Path) -> tailcut.Experiment:
    file = tmp_path / "incast.toml"
    file.write_text(INCAST)
    return tailcut.load(file)


def place(experiment: tailcut.Experiment) -> Path:
    assert experiment.path is not None
    return experiment.path.parent / "out"


def captured(experiment: tailcut.Experiment, *points: str) -> tuple[Result, Path]:
    directory = place(experiment)
    result = tailcut.run(experiment, out=directory, capture=points)
    (file,) = directory.glob("runs/*/capture.pcapng")
    return result, file


def tshark(file: Path, *arguments: str) -> list[list[str]]:
    done = subprocess.run(
        ["tshark", "-n", "-r", file, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_a_capture_lies_beside_the_tables_of_its_run(experiment: tailcut.Experiment) -> None:
    result, file = captured(experiment, "host:0")
    assert (file.parent / "flows.parquet").exists()
    about = result.runs.row(0, named=True)
    assert len(tshark(file)) > 0
    assert about["id"] == file.parent.name


def test_tshark_finds_nothing_wrong_with_any_frame(experiment: tailcut.Experiment) -> None:
    _, file = captured(experiment, "host:0")
    wrong = "_ws.malformed or ip.checksum.status == Bad or tcp.checksum.status == Bad"
    assert tshark(file, "-Y", wrong) == []


def test_a_senders_retransmissions_are_those_of_the_flow_table(experiment: tailcut.Experiment) -> None:
    result, _ = captured(experiment, "host:0")
    lossy = result.flows.filter(pl.col("retransmissions") > 0).row(0, named=True)
    _, file = captured(experiment, f"host:{lossy['src']}")
    again = "tcp.analysis.retransmission or tcp.analysis.fast_retransmission or tcp.analysis.out_of_order"
    data_sent = f"ip.src == 10.0.0.{lossy['src'] + 1} and tcp.len > 0"
    assert len(tshark(file, "-Y", f"({again}) and {data_sent}")) == lossy["retransmissions"]


def test_an_existing_capture_is_not_made_again(experiment: tailcut.Experiment) -> None:
    _, file = captured(experiment, "host:0")
    made = file.stat().st_mtime_ns
    captured(experiment, "host:0")
    assert file.stat().st_mtime_ns == made


def test_a_capture_at_another_point_reruns_with_the_same_flows(experiment: tailcut.Experiment) -> None:
    before, _ = captured(experiment, "host:0")
    flows = before.flows
    after, file = captured(experiment, "link:h0>s0")
    assert after.flows.equals(flows)
    assert tshark(file, "-T", "fields", "-e", "frame.interface_name")[0] == ["h0>s0"]


def test_a_point_that_does_not_exist_is_named_and_no_run_is_stored(experiment: tailcut.Experiment) -> None:
    with pytest.raises(BackendError, match='no host "99"; write "host:0" to "host:12"'):
        captured(experiment, "host:99")
    assert not (place(experiment)).exists()


def test_bounds_keep_a_file_small_and_say_what_was_left_out(experiment: tailcut.Experiment) -> None:
    bounded = tailcut.Capture(["host:0"], max_packets=5, snapshot="64B")
    result = tailcut.run(experiment, out=place(experiment), capture=bounded)
    (file,) = result.directory.glob("runs/*/capture.pcapng")
    kept = tshark(file, "-T", "fields", "-e", "frame.cap_len")
    assert len(kept) == 5
    assert all(int(length) <= 64 for (length,) in kept)
    about = json.loads((file.parent / "run.json").read_text())
    assert about["captured"]["packets"] == 5
    assert about["captured"]["left_out"] > 0


def test_other_capture_bounds_rerun_the_simulation(experiment: tailcut.Experiment) -> None:
    _, file = captured(experiment, "host:0")
    whole = file.stat().st_size
    tailcut.run(experiment, out=place(experiment), capture=tailcut.Capture(["host:0"], max_bytes="10KB"))
    assert file.stat().st_size < whole
