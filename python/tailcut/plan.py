"""The plan: what `tailcut._core.load` makes of an experiment file, with every default explicit.

The types describe the JSON; at run time a plan is plain dictionaries and lists.
"""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NotRequired, TypeAlias, TypedDict

Value: TypeAlias = float | int | str | bool
Config: TypeAlias = dict[str, Any]


class Axis(TypedDict):
    """An axis of the sweep."""

    key: str
    values: list[Value]


class Facts(TypedDict):
    """Estimates and facts of a run, known before it runs."""

    hosts: int
    switches: int
    links: int
    flows: int
    flows_with_choice: NotRequired[int]  # plans of older versions do not say
    offered_bytes: int
    carriable_bytes: int
    expected_packets: int
    expected_packet_hops: int
    estimated_seconds: float
    estimated_memory_bytes: int
    # Plans of older versions say none of these.
    demand: NotRequired[int]
    draws: NotRequired[bool]
    notes: NotRequired[list[str]]
    routing: NotRequired[list[str]]


class FileUse(TypedDict):
    """A file that a run depends on: its path as written, the resolved path, and the hash of its content."""

    path: str
    resolved: str
    sha256: str


class PlannedRun(TypedDict):
    """A run: a scheme at a point of the sweep with a seed.

    ``id`` is a SHA-256 over what decides the result (configuration, seed, results version), so that runs of two schemes
    with the same configuration share it.
    """

    id: str
    scheme: str
    point: dict[str, Value]
    seed: int
    config: Config
    files: list[FileUse]
    facts: Facts


class Plan(TypedDict):
    """An experiment, resolved."""

    format: int
    version: str
    title: str
    question: str
    source_file: str
    baseline: str
    schemes: list[str]
    sweep: list[Axis]
    seeds: list[int]
    measure: dict[str, Any]
    model: dict[str, Any]
    lab: dict[str, Any]
    report: dict[str, Any]
    parts: NotRequired[list[dict[str, Any]]]  # of several directories taken together: what each is of
    small: NotRequired[bool]  # whether the file's table [small] was applied
    medium: NotRequired[bool]  # whether its table [medium] was
    overrides: NotRequired[dict[str, str]]  # what replaces the file's values: dotted key, and TOML or bare text
    runs: list[PlannedRun]


VARIANTS = ("small", "medium")
"""The variants of an experiment: tables of its file, options, and keys of a plan."""


def name(plan: Plan, stem: str | None = None) -> str:
    """Returns the experiment's short name: its file without directory and suffix, and its variant (``fig3-small``)."""
    of_plan: Mapping[str, Any] = plan
    return "-".join([stem or Path(plan["source_file"]).stem, *(one for one in VARIANTS if of_plan.get(one))])


def options(plan: Mapping[str, Any]) -> list[str]:
    """Return the changes as the command line takes them: ``--small``, ``--set traffic.load=0.3``, ``--seeds 3``."""
    return [f"--{one}" for one in VARIANTS if plan.get(one)] + [
        f"--seeds {value}" if key == "seeds" and value.isdigit() else f"--set {shlex.quote(f'{key}={value}')}"
        for key, value in (plan.get("overrides") or {}).items()
    ]


def title(plan: Plan) -> str:
    """The title, followed by the values that replace the file's: the file's title may speak of those.

    A title that was itself replaced is left as it is.
    """
    replaced = plan.get("overrides", {})
    with_ = [f"{key} = {value}" for key, value in replaced.items() if key not in ("seeds", "question")]
    return plan["title"] if not with_ or "title" in replaced else f"{plan['title']} (with {', '.join(with_)})"


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


SUMMARY_FORMAT = 2
"""Version of the summary's columns: raised when one is renamed or changes its meaning, so older rows are ignored."""


def question_id(plan: Plan) -> str:
    """Returns a hash of the question without seeds: of everything that decides an answer computed without runs.

    Files count by what is in them: the same path may have other contents tomorrow.
    """
    asked = {
        canonical([run["scheme"], run["point"], run["config"], [file["sha256"] for file in run["files"]]])
        for run in plan["runs"]
    }
    asked.add(canonical([plan["baseline"], plan["model"], plan["version"], SUMMARY_FORMAT]))
    return hashlib.sha256("\n".join(sorted(asked)).encode()).hexdigest()


def label(run: PlannedRun) -> str:
    """A run as a person refers to it: ``TCP, load 0.2, seed 1``."""
    names = short_keys(run["point"])
    point = [f"{names[key]} {written(value)}" for key, value in run["point"].items()]
    return ", ".join([run["scheme"], *point, f"seed {run['seed']}"])


def written(value: Value) -> str:
    """A value as an experiment and the columns of tables have it: ``true``, where Python says ``True``."""
    return value if isinstance(value, str) else json.dumps(value)


def short_key(key: str) -> str:
    """The last part of a dotted key, as a word: ``traffic.load`` is ``load``, and ``faults.active`` is ``failures``."""
    return "failures" if key == "faults.active" else key.rsplit(".", 1)[-1].replace("_", " ")


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Each key as a word (``short_key``); keys that would share one stay whole."""
    names = {key: short_key(key) for key in keys}
    often = Counter(names.values())
    return {key: name if often[name] == 1 else key for key, name in names.items()}


def unique_runs(plan: Plan) -> dict[str, PlannedRun]:
    """The runs to be made, by id, in plan order; schemes that are the same share one."""
    runs: dict[str, PlannedRun] = {}
    for run in plan["runs"]:
        runs.setdefault(run["id"], run)
    return runs


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
