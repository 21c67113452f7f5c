"""The command that runs the lab is killed, or any process of it, at any moment: nothing is left behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.kernels import LIMIT_SECONDS, network, planned
from support.killing import Command
from support.lab import LAB
from support.skipping import missing
from tailcut.lab import process, repnet

pytestmark = pytest.mark.usefixtures("kernel")

FEW, MANY = 10, 20
"""Into so many parts each kind of run is divided, from before its set-up to after its end, with a moment in each:
thirty in all, about a minute of processor time, and sixty others in `make soak`."""
MOMENTS = [
    *((moment, FEW) for moment in range(FEW)),
    *(pytest.param(moment, MANY, marks=pytest.mark.soak) for moment in range(MANY)),
]
REPFLOW = '[schemes.RepFlow]\nreplicate = { kind = "repflow" }\n'
CAPTURE = ("--capture", "host:0")
SWITCHES = ("--lab-fabric", "kernel", "--set", "balance.kind=spray")


def by_sockets(text: str) -> str:
    return text


def by_repnet(text: str) -> str:
    """A Node process carries the flows of each host."""
    try:
        repnet.program()
    except repnet.MissingError as error:
        missing(f"the kernel lab: {error}", "make setup-lab")
    return text[: text.index("[schemes")] + REPFLOW


@pytest.fixture(
    scope="module",
    params=[(by_sockets, CAPTURE), (by_sockets, SWITCHES), (by_repnet, CAPTURE)],
    ids=["sockets", "switches of kernels", "repnet"],
)
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """The command that makes one short run, and how long it takes."""
    change, options = request.param
    experiment = tmp_path_factory.mktemp("experiment") / "lab.toml"
    experiment.write_text(change(LAB))
    made = Command(experiment, tmp_path_factory.mktemp("results"), options)
    made.measure()
    return made


@pytest.mark.parametrize(("moment", "of"), MOMENTS)
def test_a_lab_killed_at_any_moment_leaves_nothing_behind(command: Command, moment: int, of: int) -> None:
    assert command.killed(moment, of) == []


@pytest.mark.parametrize("fabric", ["engine", "kernel"])
def test_a_run_does_not_change_the_machines_own_network(experiment: Path, fabric: str) -> None:
    run: dict[str, Any] = planned(experiment, **{"horizon.arrivals": '"600ms"'})
    before, during = network(), []
    process.run(json.dumps(run), lambda _now, _over: during.append(network()), LIMIT_SECONDS, fabric=fabric)
    assert during
    assert all(one == before for one in [*during, network()])
