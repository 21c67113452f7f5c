"""The critical path of a job in the terminal, under every scheme."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from tailcut.explain.job import ExplainedJob
from tailcut.units import size, time_text

SHOWN_LINKS = 4


def job_story(explained: ExplainedJob) -> RenderableType:
    """Returns the critical path of a job under each scheme."""
    kind = next(iter(explained.paths.values()))["kind"]
    parts = [Text(f"Job {explained.job}, {kind}; {explained.selection.label}", "bold")]
    for scheme, path in explained.paths.items():
        took = path["completion_ps"]
        parts.append(Text(f"\n{scheme}: {'not finished' if took is None else time_text(took)}", "bold"))
        parts.extend(Text(line) for line in _lines(path))
    return Group(*parts)


def _lines(path: Mapping[str, Any]) -> Iterator[str]:
    if path["completion_ps"] is None:
        yield path["unfinished"] or "the run ended before the job did"
        return
    for part in path["parts"]:
        took = time_text(part["to_ps"] - part["from_ps"])
        yield f"{(part['from_ps'] - path['start_ps']) / 1e9:9.6f} ms  {_work(part)}: {took}{_compared(part)}"
    yield f"{path['completion_ps'] / 1e9:9.6f} ms  the job is over"
    yield _summary(path)
    yield from _links(path)


def _links(path: Mapping[str, Any]) -> Iterator[str]:
    """Says which links carried most of the job, and for which part of it they were busy with it."""
    links = path["links"]
    shown = links[:SHOWN_LINKS]
    more = f", of {len(links):,}" if len(links) > len(shown) else ""
    yield f"Busiest links{more}:"
    for link in shown:
        share = link["busy_ps"] / path["completion_ps"]
        carried = f"{size(link['wire_bytes'])} in {link['packets']:,} packets"
        yield f"  {link['from']} > {link['to']}: {carried}, busy {time_text(link['busy_ps'])}, {share:.0%} of the time"


def _work(part: Mapping[str, Any]) -> str:
    if part["what"] == "message":
        name = part.get("row", part["id"])
        return f"message {name}, {part['src']} to {part['dst']}, {size(part['bytes'])}, until {part['until']}"
    if part["what"] == "computation":
        name = f" {part['row']}" if "row" in part else ""
        return f"computation{name} at {part['host']}, processor {part['processor']}"
    return "other jobs, before this host begins"


def _compared(part: Mapping[str, Any]) -> str:
    if part["what"] != "message" or part["until"] != "received":
        return ""
    return f", {(part['to_ps'] - part['from_ps']) / part['ideal_ps']:.2f} times the best"


def _summary(path: Mapping[str, Any]) -> str:
    """Says which part was last, and what the time before went to."""
    sums = dict.fromkeys(("message", "computation", "other-jobs"), 0)
    for part in path["parts"]:
        sums[part["what"]] += part["to_ps"] - part["from_ps"]
    messages = [part for part in path["parts"] if part["what"] == "message"]
    late = [max(0, part["to_ps"] - part["from_ps"] - part["ideal_ps"]) for part in messages]
    words = [f"{len(messages)} messages after each other took {time_text(sums['message'])}"]
    if sum(late) > 0:
        # The ideal time ends with the last byte's arrival, which is later than its departure.
        bound = "at least " if any(part["until"] == "sent" for part in messages) else ""
        words.append(f"{bound}{time_text(sum(late))} of it beyond the best possible")
    if sums["computation"]:
        words.append(f"computations {time_text(sums['computation'])}")
    if sums["other-jobs"]:
        words.append(f"other jobs {time_text(sums['other-jobs'])}")
    last = path["parts"][-1] if path["parts"] else None
    name = "nothing" if last is None else _work(last).split(", until")[0]
    return f"Last was {name}: {', '.join(words)}."
