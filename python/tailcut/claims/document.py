"""Claims as the files ``claims.toml`` state them, checked against the vocabulary."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tailcut import _core
from tailcut.claims.questions import Answers, answers
from tailcut.claims.tables import HINT, ClaimTable
from tailcut.claims.verdict import Precision, Target
from tailcut.errors import ClaimsError
from tailcut.plan import Value

KNOWN = ("known", "lab", "uet")
"""The folders of experiments whose answers are known from elsewhere than the five papers."""
TODAY = "today"
"""The folder of experiments that ask which idea is worth it today: its claims are what the ideas promise."""
STATED = "stated"
"""The reading that every claim is shown under first: the experiment as the paper states it."""
AUTHORS = "authors"
"""The name under which the authors' own numbers answer, as backends do."""
BARE_KEYS = re.compile("[A-Za-z0-9_-]+")
"""What TOML takes as a key without quotes."""
CLAIM_CLOCKS = ("receiver", "sender", "connect")
STATISTICS = ("mean", "p50", "p99", "p99_9", "sd", "max", "share_at_most", "share_above", "share")
OF_SINGLE_FLOWS = ("fct", "slowdown")
"""The metrics of which the quickest of several flows has one."""
WITH_LIMIT = ("share_at_most", "share_above")
METRICS: Mapping[str, str] = MappingProxyType(
    {
        "fct": "completion times of flows, in ms",
        "slowest": "when the last flow of a run was acknowledged, in ms",
        "slowdown": "completion times of flows over the best possible",
        "job_time": "completion times of jobs, in ms",
        "throughput": "throughput of long flows while flows arrived, in Mbps",
        "share_of_ideal": "throughput of long flows over their max-min fair share",
        "series": "samples of a time series, in its own unit",
        "duplicate_acks": "segments by how many duplicate ACKs they drew: their share above a limit",
        "timeouts": "share of flows with a retransmission timeout",
        "retransmitted": "data packets sent again over those sent first",
        "data_packets": "data packets that were sent, copies and retransmissions included",
        "queueing": "time that flows spent in queues, in ms (measure.attribution)",
        "part_share": "share of flows' time that is in a part of it (measure.attribution)",
        "handshake_share": "share of flows' time until their first connection is established",
        "drops": "packets that found a queue full over packets that crossed the tier's links",
    }
)
"""Every metric with its description; ``metrics.py`` computes them."""
COMPARISONS: Mapping[str, str] = MappingProxyType(
    {
        "value": "the number of a scheme",
        "change": "the number of a scheme over that of another, less 1: below zero is less",
        "ratio": "the number of a scheme over that of another",
        "excess": "the number of a scheme over that of another, less 1, judged as a value: what something costs",
        "contrast": "the change at the first point less that at the last",
    }
)


@dataclass(frozen=True, slots=True)
class Population:
    """The flows, or jobs, that a claim speaks of.

    Attributes:
        size: ``all``, ``short``, ``long`` or the name of a size group.
        ids: identifiers of flows; empty for any.
        touching: hosts of which a flow must have one; empty for any.
        avoiding: hosts of which a flow may have none.
        pod_hosts: the hosts of a pod where only flows between pods count; 0 for all flows.
        largest: leaves out what is longer, in bytes; 0 for no bound.
        kind: the kind of jobs; empty for flows.
        finished_by_ms: leaves out what has not finished by then; 0 for what the experiment says of unfinished flows.
        slowest: of a part's share, the share of the flows that count, the slowest first; 0 for all.
        quickest_of: takes the quickest of so many flows next to each other in size, and leaves out the others.
    """

    size: str = "all"
    ids: tuple[int, ...] = ()
    touching: tuple[int, ...] = ()
    avoiding: tuple[int, ...] = ()
    pod_hosts: int = 0
    largest: int = 0
    kind: str = ""
    finished_by_ms: float = 0.0
    slowest: float = 0.0
    quickest_of: int = 1


@dataclass(frozen=True, slots=True)
class Measure:
    """A claim's number of one cell of runs.

    Attributes:
        metric: a key of ``METRICS``.
        statistic: one of ``STATISTICS``.
        limit: of ``WITH_LIMIT``, in the metric's unit.
        clock: when a flow's time ends, or ``connect`` to begin it when its first connection is established.
        population: whose it is.
        name: of the series, of the tier for drops, or the beginning of a part's column after ``part_``.
        after_ms: of a series, the samples after that time only.
    """

    metric: str
    statistic: str = "mean"
    limit: float = 0.0
    clock: str = "receiver"
    population: Population = field(default_factory=Population)
    name: str = ""
    after_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Compare:
    """How a claim's number is made from those of schemes.

    Attributes:
        kind: a key of ``COMPARISONS``.
        scheme: whose number it is.
        against: the scheme that it is compared with; ``scheme`` itself where the points differ.
        against_at: axes at which the other number is taken at another value.
        quickest_of: takes the scheme's number of the quickest of so many independent flows; 1 for all flows.
        against_quickest_of: likewise of the other number.
    """

    kind: str
    scheme: str
    against: str
    against_at: Mapping[str, Value]
    quickest_of: int = 1
    against_quickest_of: int = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """A named set of settings under which claims are shown.

    Attributes:
        name: as in the claims.
        says: what it assumes, and who says so.
        overrides: by dotted key, what replaces the experiment's values.
    """

    name: str
    says: str
    overrides: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Authors:
    """The authors' own numbers that answer a claim, a file for each point.

    Attributes:
        scheme: files of the scheme's numbers.
        against: files of those that they are compared with; empty for a value.
    """

    scheme: tuple[str, ...]
    against: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper, and how it is judged here.

    Attributes:
        id: the paper and a name, such as ``repflow/fig8-mean``.
        says: the paper's sentence, in our words.
        where: its section, figure or table.
        experiment: what is run, as below ``experiments/``; None where nothing can be.
        measure: the number; None without experiment.
        compare: between whom.
        at: by axis of the sweep, the values at which it must hold; axes that are left out hold at all of theirs.
        most: whether it is enough that it holds at more than half of the points.
        target: what the paper says the number is, by point where it says so.
        readings: under which readings it is shown, ``stated`` first.
        backends: which backends can answer.
        because: why the verdict is what it is, or why it cannot be shown, in a sentence.
        authors: the authors' own numbers; None where they released none.
        contradicts: the claim of the same paper that cannot be true beside this one.
        small: why the small variant does not show the direction of the full one; empty where it does.
    """

    id: str
    says: str
    where: str
    experiment: str | None
    measure: Measure | None
    compare: Compare | None
    at: Mapping[str, tuple[Value, ...]]
    most: bool
    target: tuple[Target, ...]
    readings: tuple[str, ...]
    backends: tuple[str, ...]
    because: str
    authors: Authors | None
    contradicts: str
    small: str = ""

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.id.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, or another source, with its claims.

    Attributes:
        name: short, as the folder of its experiments.
        title: as people call it.
        source: authors, title, where and when it appeared.
        readings: by name.
        claims: in the order of the paper.
        answers: the page that its claims answer questions on; None of papers.
    """

    name: str
    title: str
    source: str
    readings: Mapping[str, Reading]
    claims: tuple[Claim, ...]
    answers: Answers | None = None

    @property
    def published(self) -> bool:
        """Whether these are the claims of a paper."""
        return not self.known and self.name != TODAY

    @property
    def known(self) -> bool:
        """Whether these are answers known from theory and other programs, not a paper's claims."""
        return self.name in KNOWN


def load() -> dict[str, Paper]:
    """Every paper that comes with Tailcut, by its name, then the known answers, and today's questions last.

    Raises:
        ClaimsError: TC-K001: a file says what the vocabulary has no word for.
    """
    return {name: read(name, text) for name, text in sorted(_core.claims(), key=_place)}


def _place(of: tuple[str, str]) -> int:
    """Returns the place of a claims file among others: papers, known answers, today's questions."""
    return 2 if of[0] == TODAY else int(of[0] in KNOWN)


def read(name: str, text: str) -> Paper:
    """A paper from its ``claims.toml``.

    Args:
        name: the paper's short name.
        text: the file.

    Raises:
        ClaimsError: TC-K001: it says what the vocabulary has no word for; the message names the place.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimsError("TC-K001", f"claims of {name}: {error}", HINT) from None
    table = ClaimTable(document, name)
    readings = {
        key: Reading(key, inner.text("says"), MappingProxyType(_settings(inner.table("set").rest())))
        for key, inner in table.tables("readings")
    }
    readings.setdefault(STATED, Reading(STATED, "The experiment as the paper states it.", MappingProxyType({})))
    claims = tuple(_claim(name, one, readings) for one in table.list_of_tables("claims"))
    title, source = table.text("title"), table.text("source")
    page = answers(table) if table.has("questions") else None
    paper = Paper(name, title, source, MappingProxyType(readings), claims, page)
    table.done()
    ids = [claim.id for claim in claims]
    twice = {one for one in ids if ids.count(one) > 1}
    missing = {claim.contradicts for claim in claims if claim.contradicts} - {*ids}
    if twice or missing:
        raise ClaimsError(
            "TC-K001",
            f"claims of {name}: {', '.join(sorted(twice or missing))} is {'defined twice' if twice else 'missing'}",
            HINT,
        )
    return paper


def _settings(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as the dotted keys of ``--set``; a name of other characters is quoted, as TOML wants it."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        key = prefix + (name if BARE_KEYS.fullmatch(name) else json.dumps(name))
        flat |= _settings(value, f"{key}.") if isinstance(value, Mapping) else {key: value}
    return flat


def _claim(paper: str, table: ClaimTable, readings: Mapping[str, Reading]) -> Claim:
    name = table.text("id")
    says, where, because = table.text("says"), table.text("where"), table.text("because", "")
    contradicts, small = table.text("contradicts", ""), table.text("small", "")
    experiment = measure = compare = None
    at: dict[str, tuple[Value, ...]] = {}
    targets: tuple[Target, ...] = ()
    asked: tuple[str, ...] = (STATED,)
    backends: tuple[str, ...] = ()
    most = False
    if table.has("experiment"):
        folder = paper if paper in (*KNOWN, TODAY) else f"papers/{paper}"
        experiment = f"{folder}/{table.text('experiment')}"
        measure = _measure(table.table("measure"))
        compare = _compare(table.table("compare"))
        if max(compare.quickest_of, compare.against_quickest_of) > 1 and measure.metric not in OF_SINGLE_FLOWS:
            raise table.fail(f"quickest_of needs one of the metrics {', '.join(OF_SINGLE_FLOWS)}")
        at = {key: tuple(values) for key, values in table.table("at").rest().items()}
        most = table.word("points", ("all", "most"), "all") == "most"
        targets = _targets(table.table("paper"), compare.kind)
        asked = table.texts("readings", (STATED,))
        backends = table.texts("backends", ("sim",))
        unknown = [one for one in asked if one not in readings]
        if unknown or asked[0] != STATED:
            raise table.fail(f"readings must begin with {STATED!r} and be defined here, unlike {', '.join(asked)}")
    elif not because:
        raise table.fail("a claim without experiment needs because: why it cannot be shown")
    authors = None
    if table.has("authors"):
        inner = table.table("authors")
        authors = Authors(inner.texts("scheme", ()), inner.texts("against", ()))
        inner.done()
        backends = (*backends, AUTHORS)
    table.done()
    return Claim(
        f"{paper}/{name}", says, where, experiment, measure, compare, MappingProxyType(at), most, targets, asked,
        backends, because, authors, contradicts and f"{paper}/{contradicts}", small,
    )  # fmt: skip


def _measure(table: ClaimTable) -> Measure:
    metric = table.word("metric", METRICS)
    flows = table.table("flows")
    population = Population(
        flows.text("size", "all"),
        flows.whole("ids"),
        flows.whole("touching"),
        flows.whole("avoiding"),
        int(flows.number("pod_hosts", 0)),
        int(flows.number("largest", 0)),
        flows.text("kind", ""),
        flows.number("finished_by_ms", 0),
        flows.number("slowest", 0),
    )
    flows.done()
    statistic = table.word("statistic", STATISTICS, "mean")
    found = Measure(
        metric,
        statistic,
        table.number("limit") if statistic in WITH_LIMIT else 0.0,
        table.word("clock", CLAIM_CLOCKS, "receiver"),
        population,
        table.text("name", ""),
        table.number("after_ms", 0),
    )
    table.done()
    return found


def _compare(table: ClaimTable) -> Compare:
    kind, scheme = table.word("kind", COMPARISONS), table.text("scheme")
    against = table.text("against", scheme)
    at = table.table("against_at").rest()
    of, against_of = table.count("quickest_of"), table.count("against_quickest_of")
    table.done()
    if kind == "value" and (at or against != scheme or against_of > 1):
        raise table.fail("a value takes neither against nor against_at nor against_quickest_of")
    if kind != "value" and against == scheme and not at and of == against_of:
        raise table.fail("needs against or against_at: what it is compared with")
    return Compare(kind, scheme, against, MappingProxyType(at), of, against_of)


def _targets(table: ClaimTable, kind: str) -> tuple[Target, ...]:
    relative = kind in ("change", "contrast")
    precision = Precision(table.word("read", [one.value for one in Precision], Precision.PRINTED.value))
    if table.has("values"):
        found = tuple(Target(float(one), float(one), precision, relative) for one in table.take("values", list))
    elif table.has("range"):
        low, high = table.take("range", list)
        found = (Target(float(low), float(high), precision, relative),)
    elif table.has("alike"):
        within = table.number("alike")
        found = (Target(-within, within, precision, relative, alike=True),)
    elif table.has("sign"):
        less = table.word("sign", ("less", "more")) == "less"
        found = (Target(None if less else 0.0, 0.0 if less else None, precision, relative, sign=True),)
    else:
        low = table.number("at_least") if table.has("at_least") else None
        high = table.number("at_most") if table.has("at_most") else None
        if low is None and high is None:
            raise table.fail("needs one of value, values, range, alike, sign, at_least and at_most")
        found = (Target(low, high, precision, relative),)
    table.done()
    return found
