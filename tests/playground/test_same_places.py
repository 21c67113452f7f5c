"""The playground draws networks by its own layout: nodes stand on the levels on which the page of a run has them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments, playground
from support.skipping import missing
from tailcut import _core
from tailcut.report import fabric_samples

TOPOLOGIES = (
    {"kind": "fat-tree", "k": 4},
    {"kind": "leaf-spine", "racks": 3, "hosts_per_rack": 4, "spines": 2},
    {"kind": "star"},
    {"kind": "dumbbell"},
    {"kind": "parallel-paths"},
    {"kind": "chain"},
)
SCRIPT = """
const { places } = await import(process.argv[1]);
const graph = JSON.parse(await new Response(process.stdin).text());
console.log(JSON.stringify(places(graph)));
"""


def graph(topology: dict[str, object], directory: Path) -> dict[str, Any]:
    """A topology as the simulator describes it."""
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in topology.items())
    text = experiments.TINY.replace('kind = "fat-tree"\nk = 4', lines)
    plan = tailcut.loads(text, directory=directory).plan
    found: dict[str, Any] = json.loads(_core.demand(json.dumps(plan["runs"][0]), None))["graph"]
    return found


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology["kind"])
def test_both_layouts_have_every_node_on_the_same_level(topology: dict[str, object], tmp_path: Path) -> None:
    if reason := playground.no_scripts():
        missing(reason, "make playground")
    network = graph(topology, tmp_path)
    script = playground.NODE.parent / "dist/layout.js"
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", SCRIPT, script.as_uri()],
        input=json.dumps(network),
        text=True,
        capture_output=True,
        check=True,
    )
    drawn = json.loads(done.stdout)
    stand = fabric_samples.places(network["hosts"], [(link["a"], link["b"]) for link in network["links"]])
    levels = 1 + max(stand.level)
    assert [round(levels * (1 - place["y"]) - 0.5, 6) for place in drawn] == stand.level
    # From left to right they are in the same order, pod by pod as well.
    for level in range(levels):
        members = [node for node, depth in enumerate(stand.level) if depth == level]
        ours = sorted(members, key=lambda node: (stand.pod[node], stand.order[node]))
        assert sorted(members, key=lambda node: drawn[node]["x"]) == ours
