"""The extension gives what other builds give: `crates/tailcut-experiment/tests/builds.rs` has the same digest."""

import hashlib
import json
from pathlib import Path

from tailcut import _core

ROOT = Path(__file__).parents[2]
OVERRIDES = [
    ("topology.k", "4"),
    ("horizon.arrivals", "'20ms'"),
    ("queue.limit", "'20packets'"),
    ("seeds", "1"),
]


def test_every_build_gives_the_same_tables() -> None:
    plan = json.loads(_core.load(str(ROOT / "experiments" / "quickstart.toml"), OVERRIDES))
    digest = hashlib.sha256()
    for run in plan["runs"]:
        made = _core.run(json.dumps(run))
        for name, column in [*made["flows"].items(), *made["tiers"].items()]:
            digest.update(name.encode())
            digest.update(column["values"].tobytes())
            if column["valid"] is not None:
                digest.update(column["valid"].tobytes())
    assert digest.hexdigest() == (Path(__file__).parent / "quickstart.sha256").read_text().strip()


def test_the_extension_says_which_build_it_is() -> None:
    assert _core.PROFILE in {"dev", "release"}
    assert _core.COMPILER.startswith("rustc ")
