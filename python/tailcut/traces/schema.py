"""The keys of traces that are read in Python, in the schema of experiment files and in the list of components."""

import json
from typing import Any

from tailcut import _core
from tailcut.traces.settings import PARAMETERS

_MOMENT = {"type": "string"}
_FILE = (
    "Path of a file with one flow per row: `.parquet`, or text with columns apart by commas, tabs or spaces."
    " Columns: `src`, `dst` (hosts, by number or name), `bytes`, `start_ns` (or `start_us`, `start_ms`, `start_s`, or"
    " `start` with a unit or a date in each value), and optionally `id`. Others are ignored."
)
_TAKES: dict[str, dict[str, Any]] = {
    "hosts": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]},
    "window": {"type": "array", "items": _MOMENT, "minItems": 2, "maxItems": 2},
    "origin": _MOMENT,
    "scale": {"type": "number", "exclusiveMinimum": 0},
}


def schema() -> dict[str, Any]:
    """The JSON Schema of experiment files."""
    found: dict[str, Any] = json.loads(_core.schema())
    for branch in found["$defs"]["TrafficSpec"]["oneOf"]:
        if branch["properties"]["kind"].get("const") == "trace":
            for one in PARAMETERS:
                branch["properties"][one["name"]] = {"description": one["doc"], **_TAKES[one["name"]]}
    for end in ("src", "dst"):
        host = found["$defs"]["TraceFlow"]["properties"][end]
        said = host.pop("description")
        found["$defs"]["TraceFlow"]["properties"][end] = {"description": said, "anyOf": [host, {"type": "string"}]}
    return found


def described() -> list[dict[str, Any]]:
    """Every component that an experiment can name, as `tailcut._core.describe` has them."""
    found: list[dict[str, Any]] = json.loads(_core.describe())
    for one in found:
        if (one["group"], one["name"]) == ("traffic", "trace"):
            one["parameters"][0]["doc"] = _FILE
            one["parameters"] += PARAMETERS
    return found
