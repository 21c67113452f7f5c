"""Probes of what the lab needs, and the messages if it is missing; only marked tests need a kernel."""

import sys

import pytest
from typer.testing import CliRunner

from tailcut import cli
from tailcut.lab import doctor, process, repnet

EVERYTHING = [name for name in doctor.NEEDS if name != "supervisor"]


def _name(word: str) -> str:
    written = {"repnet_bench": "repnet-bench", "bpf_programs": "BPF programs", "bpf_struct_ops": "BPF struct_ops"}
    return written.get(word, word.replace("_", " "))


def probe(monkeypatch: pytest.MonkeyPatch, **missing: str) -> None:
    """A kernel that offers everything but what is named, with the reason."""
    names = {_name(name): why for name, why in missing.items()}

    def offers(*, timers: bool) -> list[dict[str, object]]:
        of_kernel = [one for one in EVERYTHING if one != "repnet-bench" and (timers or one != "timers")]
        return [{"name": one, "offered": one not in names, "found": names.get(one, "there")} for one in of_kernel]

    monkeypatch.setattr(process, "probe", offers)

    def program() -> list[str]:
        if "repnet-bench" in names:
            raise repnet.MissingError(names["repnet-bench"])
        return ["node", "main.js"]

    monkeypatch.setattr(repnet, "program", program)


@pytest.fixture(autouse=True)
def _on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


def test_a_machine_that_offers_everything_has_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    probe(monkeypatch)
    assert doctor.obstacle(doctor.findings()) is None
    shown = CliRunner().invoke(cli.app, ["lab"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in EVERYTHING)


@pytest.mark.parametrize("name", ["namespaces", "iproute2", "veth", "packet_ring", "hosts_with_reno"])
def test_a_missing_part_that_every_run_needs_is_an_obstacle_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    probe(monkeypatch, **{name: "it is forbidden"})
    obstacle = doctor.obstacle(doctor.findings())
    assert obstacle is not None
    assert f"{name.replace('_', ' ')}: it is forbidden" in obstacle
    refused = CliRunner().invoke(cli.app, ["lab"])
    assert refused.exit_code == 2
    assert "TC-L001" in refused.stderr


@pytest.mark.parametrize(
    "name",
    [
        "netem",
        "red",
        "fq",
        "tbf",
        "nft_numgen",
        "hash_seeds",
        "bpf_programs",
        "bpf_struct_ops",
        "hosts_with_cubic",
        "hosts_with_bbr",
        "hosts_with_dctcp",
        "subflows",
        "cpu_pressure",
        "repnet_bench",
        "timers",
    ],
)
def test_a_missing_part_that_some_runs_need_is_reported_but_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    probe(monkeypatch, **{name: "it is not there"})
    found = doctor.findings(timers=True)
    assert doctor.obstacle(found) is None
    assert [one.name for one in found if not one.offered] == [_name(name)]


def test_a_process_that_cannot_even_begin_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*, timers: bool) -> None:
        raise process.LabError("the lab's process ended before it had probed anything")

    monkeypatch.setattr(process, "probe", fails)
    assert "ended before it had probed" in str(doctor.obstacle(doctor.findings()))


def test_a_system_other_than_linux_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "darwin" in str(doctor.obstacle(doctor.findings()))


@pytest.mark.usefixtures("kernel")
def test_every_reported_capability_is_probed() -> None:
    assert {one.name for one in doctor.findings(timers=True)} == set(EVERYTHING)


@pytest.mark.usefixtures("kernel")
def test_timers_are_measured_only_on_request() -> None:
    assert {one.name for one in doctor.findings()} == {*EVERYTHING} - {"timers"}


@pytest.mark.usefixtures("kernel")
def test_each_queue_discipline_is_set_or_reported_as_missing() -> None:
    found = {one.name: one for one in doctor.findings()}
    for kind in ("netem", "red", "fq"):
        assert found[kind].found == "set" if found[kind].offered else "tc" in found[kind].found
