"""Claims' numbers as text, the same in the terminal, on the page and in the documentation."""

from collections.abc import Iterable, Mapping

from tailcut.claims.document import Claim, Paper
from tailcut.claims.scorecard import Point, Row, Scorecard
from tailcut.claims.verdict import Number, Target, Verdict
from tailcut.plan import short_keys, written

STALE = "of an older version"
STATISTICS: Mapping[str, str] = {
    "mean": "mean",
    "p50": "median",
    "p99": "99th percentile",
    "p99_9": "99.9th percentile",
    "sd": "standard deviation",
    "max": "largest",
    "share_at_most": "share at most a limit",
    "share_above": "share above a limit",
    "share": "share",
}
METRICS: Mapping[str, str] = {
    "fct": "completion times",
    "slowest": "end of the last flow",
    "slowdown": "slowdowns",
    "job_time": "completion times of jobs",
    "throughput": "throughput",
    "share_of_ideal": "share of the fair rate",
    "series": "samples",
    "duplicate_acks": "duplicate ACKs",
    "timeouts": "flows with a timeout",
    "retransmitted": "packets sent again",
    "data_packets": "data packets sent",
    "queueing": "time in queues",
    "part_share": "share of the time",
    "handshake_share": "share of the time in the handshake",
    "drops": "dropped packets",
}
MINUS = "−"
UNITS: Mapping[str, str] = {"fct": " ms", "slowest": " ms", "queueing": " ms", "job_time": " ms", "throughput": " Mbps"}
IN_PERCENT = ("change", "contrast", "excess")


def totals(of: Mapping[Verdict, int], what: str = "claims") -> str:
    """How many claims, or known answers, have which verdict: ``Of 106 claims, 40 are reproduced, …``."""
    words = {
        Verdict.REPRODUCED: "are reproduced",
        Verdict.DIRECTION: "have the direction",
        Verdict.NOT: "are not",
        Verdict.UNDECIDED: "are undecided",
        Verdict.CANNOT: "cannot be shown",
        Verdict.CONTRADICTION: "are contradicted by their own paper",
        Verdict.ABSENT: "have not been run",
    }
    known = ", ".join(f"{of[verdict]} {said}" for verdict, said in words.items() if of.get(verdict))
    return f"Of {sum(of.values())} {what}, {known}."


def all_totals(scorecard: Scorecard, papers: Iterable[Paper]) -> str:
    """A sentence for the claims of papers, and one for the known answers if there are any.

    The promises that today's questions are about have a page of their own.
    """
    papers = [*papers]
    said = [totals(scorecard.totals(paper for paper in papers if paper.published))]
    known = scorecard.totals(paper for paper in papers if paper.known)
    return " ".join([*said, totals(known, "known answers")] if known else said)


def source_of(paper: Paper) -> str:
    """Returns the heading of the column of targets: who says what the number is."""
    return "the paper" if paper.published else "known" if paper.known else "promised"


def subject(claim: Claim) -> str:
    """Returns what a claim's numbers are: ``99th percentile of completion times, short flows: change``."""
    measure, compare = claim.measure, claim.compare
    if measure is None or compare is None:
        return ""
    of = measure.population
    statistic = "" if measure.statistic == "share" else f"{STATISTICS[measure.statistic]} of "
    size = "" if of.size == "all" else f", {of.size} flows"
    slowest = f", slowest {of.slowest * 100:g} %" if of.slowest else ""
    kind = f", jobs of kind {of.kind}" if of.kind else ""
    name = f" ({measure.name})" if measure.name else ""
    made = "" if compare.kind == "value" else f": {compare.kind}"
    return f"{statistic}{METRICS[measure.metric]}{name}{size}{slowest}{kind}{made}"


def percent(claim: Claim) -> bool:
    """Whether a claim's numbers are shares or changes, which people read in percent."""
    measure, compare = claim.measure, claim.compare
    if measure is None or compare is None:
        return False
    if compare.kind == "ratio":
        return False
    shares = measure.statistic.startswith("share") or measure.metric in (
        "share_of_ideal",
        "part_share",
        "handshake_share",
    )
    return compare.kind in IN_PERCENT or (shares and measure.metric != "data_packets")


def amount(claim: Claim, value: float) -> str:
    """A number of a claim with its unit."""
    measure, compare = claim.measure, claim.compare
    if measure is None or compare is None:
        return ""
    if percent(claim):
        digits = 0 if abs(value) >= 0.1 or value == 0 else 1 if abs(value) >= 0.01 else 2
        sign = "+" if compare.kind in IN_PERCENT and value else ""
        return f"{value * 100:{sign}.{digits}f} %".replace("-", MINUS)
    if compare.kind == "ratio":
        return f"{float(f'{value:.3g}'):,.10g} times"
    if measure.metric == "series" and measure.name.endswith("_bps"):
        return f"{value / 1e6:.4g} Mbps"
    return f"{value:.4g}{UNITS.get(measure.metric, '')}".replace("-", MINUS)


def number(claim: Claim, found: Number | None) -> str:
    """A number with its interval."""
    if found is None:
        return "–"
    text = amount(claim, found.value)
    if found.low is None or found.high is None or found.low == found.high:
        return text
    return f"{text} ({amount(claim, found.low)} to {amount(claim, found.high)})"


def size(claim: Claim, found: Number) -> str:
    """Returns how large a change is with its interval, without signs; the smaller end comes first."""
    low, high = (None if end is None else abs(end) for end in (found.low, found.high))
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    return number(claim, Number(abs(found.value), low, high)).replace("+", "")


def has_size(found: Number) -> bool:
    """Returns whether a change and its interval lie on one side of zero, so that words can say its direction."""
    ends = [found.value, *(end for end in (found.low, found.high) if end is not None)]
    return all(end >= 0 for end in ends) or all(end <= 0 for end in ends)


def target(claim: Claim) -> str:
    """Returns the paper's numbers of all points."""
    texts = [_target(claim, one) for one in claim.target]
    return ", ".join(dict.fromkeys(texts))


def _target(claim: Claim, one: Target) -> str:
    if one.alike:
        return f"alike, within {amount(claim, one.high or 0.0).lstrip('+')}"
    if one.sign:
        return "less" if one.low is None else "more"
    if one.low is None or one.high is None:
        end = one.high if one.low is None else one.low
        return f"at {'most' if one.low is None else 'least'} {amount(claim, end or 0.0)}"
    if one.low == one.high:
        return amount(claim, one.low)
    return f"{amount(claim, one.low)} to {amount(claim, one.high)}"


def numbers(claim: Claim, row: Row) -> str:
    """Our numbers at all points, in the order of the sweep."""
    if len(row.points) == 1:
        return number(claim, row.points[0].number)
    return ", ".join("–" if one.number is None else amount(claim, one.number.value) for one in row.points)


def place(point: Point) -> str:
    """Returns a point of the sweep in words: ``load 0.4``."""
    names = short_keys(point.at)
    return ", ".join(f"{names[key]} {written(value)}" for key, value in point.at.items())
