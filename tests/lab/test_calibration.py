"""Whether this machine can carry a plan: what the plan asks, against what a short run gives."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tailcut
from support.skipping import missing
from tailcut import cli
from tailcut.backends import lab
from tailcut.lab import calibration, doctor, repnet
from tailcut.lab.calibration import BY_REPNET, BY_SOCKETS, Calibration, Load
from tailcut.lab.process import LabError

PERMUTATION = 'kind = "permutation"\nsizes = "4MB"'
POISSON = 'kind = "poisson"\nsizes = "20KB"\nload = 0.2'
FRAMES_OF_FOUR_LINKS = 4 * 20e6 / 8 / 1538 * 2
"""Data packets of 1,460 bytes, in frames of 1,538, and an acknowledgement of each, from four hosts at 20 Mbps."""


def busiest(experiment: Path, traffic: str, **overrides: str) -> float:
    experiment.write_text(experiment.read_text().replace(POISSON, traffic))
    plan = tailcut.load(experiment, set=overrides).plan
    return float(max(one["busiest"] for one in lab.checked(plan, "engine")))


def checked(experiment: Path, monkeypatch: pytest.MonkeyPatch, frames: float, *options: str) -> str:
    """Returns the output of `tailcut check` after a calibration run with this many frames per second."""
    monkeypatch.setattr(doctor, "findings", list)
    monkeypatch.setattr(calibration, "calibrate", lambda _fabric, _program: Calibration(BY_SOCKETS, frames, 2 * frames))
    shown = CliRunner().invoke(cli.app, ["check", str(experiment), "--on", "lab", *options])
    assert shown.exit_code == 0
    return shown.stdout


def test_hosts_that_send_all_the_time_fill_their_links(experiment: Path) -> None:
    assert busiest(experiment, PERMUTATION) == pytest.approx(FRAMES_OF_FOUR_LINKS, rel=0.01)


def test_what_a_plan_asks_grows_with_its_rate(experiment: Path) -> None:
    faster = busiest(experiment, PERMUTATION, **{"topology.rate": '"80Mbps"'})
    assert faster == pytest.approx(4 * FRAMES_OF_FOUR_LINKS, rel=0.01)


def test_nobody_receives_more_than_a_link_carries(experiment: Path) -> None:
    incast = 'kind = "incast"\nfan_in = 3\nreceiver = 0\nrounds = 1\nsizes = "1MB"'
    assert busiest(experiment, incast) == pytest.approx(FRAMES_OF_FOUR_LINKS / 4, rel=0.01)


def test_copies_are_counted(experiment: Path) -> None:
    alone = busiest(experiment, POISSON)
    copied = busiest(experiment, POISSON, **{"replicate.kind": '"repflow"'})
    opened = busiest(experiment, POISSON, **{"replicate.kind": '"repsyn"'})
    assert alone < opened < copied


def test_half_of_what_was_carried_is_carried_in_time() -> None:
    load = Load(busiest=10_000, rate_bps=20_000_000, carried=Calibration(BY_SOCKETS, 40_000, 90_000))
    assert load.times == 2
    assert load.largest_rate == "40Mbps"
    assert load.answer()["answer"] == "done"


def test_the_fabric_alone_can_be_what_is_too_slow() -> None:
    load = Load(busiest=10_000, rate_bps=None, carried=Calibration(BY_SOCKETS, 40_000, 10_000))
    assert load.times == 0.5
    assert load.largest_rate is None
    assert load.answer()["answer"] == "near"
    assert "0.5 times the plan's rates" in load.answer()["text"]


def test_the_command_says_what_would_be_carried(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment.write_text(experiment.read_text().replace(POISSON, PERMUTATION))
    enough = " ".join(checked(experiment, monkeypatch, 1e6).split())
    assert "this machine yes" in enough
    little = " ".join(checked(experiment, monkeypatch, FRAMES_OF_FOUR_LINKS).split())
    assert "this machine nearly" in little
    assert 'topology.rate = "10Mbps"' in little


def test_check_writes_the_calibration_as_json_with_the_plan(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(checked(experiment, monkeypatch, 1e5, "--json"))
    assert told.pop("on")["load"] == {
        "busiest_frames_per_second": busiest(experiment, POISSON),
        "carrier": BY_SOCKETS,
        "carried_frames_per_second": 1e5,
        "fabric_frames_per_second": 2e5,
        "times_the_rates": pytest.approx(5e4 / busiest(experiment, POISSON)),
        "largest_rate": f"{float(f'{20 * 5e4 / busiest(experiment, POISSON):.2g}'):g}Mbps",
    }
    assert told == tailcut.load(experiment).plan


def test_a_failed_calibration_run_is_reported_and_refuses_nothing(
    experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_fabric: str, _program: object) -> Calibration:
        raise LabError("it took longer than the limit of 20 s")

    monkeypatch.setattr(doctor, "findings", list)
    monkeypatch.setattr(calibration, "calibrate", fails)
    shown = CliRunner().invoke(cli.app, ["check", str(experiment), "--on", "lab"])
    assert shown.exit_code == 0
    assert "could not be measured: it took longer" in " ".join(shown.stdout.split())


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("fabric", "alone"), [("engine", True), ("kernel", False)])
def test_this_machine_carries_some_frames(fabric: str, alone: bool) -> None:
    carried = calibration.calibrate(fabric, None, limit_seconds=None)
    assert carried.carrier == BY_SOCKETS
    assert carried.frames > 0
    assert (carried.fabric_frames is not None and carried.fabric_frames > 0) == alone


@pytest.mark.usefixtures("kernel")
def test_this_machine_carries_some_frames_with_repnet() -> None:
    try:
        program = repnet.program()
    except repnet.MissingError as error:
        missing(f"the kernel lab: {error}", "make setup-lab")
    carried = calibration.calibrate("engine", program, limit_seconds=None)
    assert carried.carrier == BY_REPNET
    assert carried.frames > 0
