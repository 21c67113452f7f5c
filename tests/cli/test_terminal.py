"""Output for people: tables, progress and numbers, of made-up results."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion

from support import made_up
from tailcut import cli, units
from tailcut.plan import Plan, Value
from tailcut.result import Result
from tailcut.results import Store
from tailcut.terminal.diagnostics import coloured
from tailcut.terminal.progress import Bars, Lines
from tailcut.terminal.sweep_progress import SweepProgress
from tailcut.terminal.table import full_table, summary_table

from .conftest import Tailcut


def shown(what: RenderableType, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(what, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def result(directory: Path, plan: Plan) -> Result:
    """RepFlow halves short flows; load makes everything slower; the second seed is 10 % slower."""
    store = Store.create(directory / "results", plan)
    for run in plan["runs"]:
        factor = (1 + float(run["point"].get("traffic.load", 0))) * (1 + 0.1 * run["seed"])
        short = 500.0 * factor * (0.5 if run["scheme"] == "RepFlow" else 1.0)
        times = [short * (1 + i / 100) for i in range(100)] + [40_000 * factor, None]
        made_up.put(store, run, made_up.flows(times, sizes=[20_000] * 100 + [5_000_000] * 2))
    return Result(store)


def test_the_summary_fits_eighty_columns_and_shows_changes(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    found = result(tmp_path, made_up.plan())
    assert shown(summary_table(found.plan, found.summary(), found.totals())) == snapshot


def test_the_summary_without_a_sweep_and_with_one_seed_has_no_empty_columns(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    found = result(tmp_path, made_up.plan(sweep=[], seeds=[1], unfinished="exclude"))
    assert shown(summary_table(found.plan, found.summary(), found.totals())) == snapshot


@pytest.mark.parametrize("values", [[True, False], [0.4, "all", 2]], ids=["booleans", "mixed"])
def test_points_come_in_the_order_of_the_plan_whatever_their_values_are(values: list[Value], tmp_path: Path) -> None:
    found = result(tmp_path, made_up.plan(sweep=[{"key": "transport.it", "values": values}]))
    lines = shown(summary_table(found.plan, found.summary(), found.totals())).splitlines()
    first = [line.split()[0] for line in lines if " µs" in line]  # of short flows
    spelt = [value if isinstance(value, str) else json.dumps(value) for value in values]
    assert first == [word for value in spelt for word in (value, "RepFlow")]


def test_unfinished_flows_are_counted_in_their_class(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    sizes = [20_000] * 10 + [5_000_000] * 5
    made_up.put(store, plan["runs"][0], made_up.flows([100] * 7 + [None] * 3 + [9_000] * 4 + [None], sizes))
    found = Result(store)
    lines = shown(summary_table(plan, found.summary(), found.totals()), width=100).splitlines()
    short, long = (line for line in lines if line.startswith(" TCP"))
    assert "3 of 10" in short
    assert "1 of 5" in long


def test_jobs_have_a_table_of_their_own(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    plan = made_up.plan(sweep=[])
    store = Store.create(tmp_path / "results", plan)
    for run in plan["runs"]:
        factor = run["seed"] * (0.5 if run["scheme"] == "RepFlow" else 1.0)
        jobs = made_up.jobs("query", [round(factor * us) for us in (900, 1_000, 1_400)])
        made_up.put(store, run, made_up.flows([100, 200]), jobs=jobs)
    found = Result(store)
    assert shown(summary_table(plan, found.summary(), found.totals())) == snapshot


def test_empty_cells_refer_to_their_reasons(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    plan = made_up.plan(sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100, 200]))
    found = Result(store)
    assert shown(summary_table(plan, found.summary(), found.totals())) == snapshot


def test_the_full_table_has_a_line_per_class_and_statistic(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    found = result(tmp_path, made_up.plan(sweep=[]))
    assert shown(full_table(found.plan, found.summary()), width=130) == snapshot


@pytest.mark.parametrize("more", [[], ["--full"]], ids=["short", "full"])
def test_no_number_is_cut_off_on_a_narrow_terminal(
    more: list[str], tailcut: Tailcut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = result(tmp_path, made_up.plan())

    def rows(width: int) -> list[str]:
        monkeypatch.setattr(cli.out, "width", width)
        lines = tailcut("summary", found.directory, *more).stdout.splitlines()
        return [line.rstrip() for line in lines if "µs" in line or "ms" in line]

    assert rows(30) == rows(200)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def left(pace: SweepProgress) -> float | None:
    return pace.seconds_left


def test_time_left_follows_the_pace_of_the_work_done() -> None:
    clock = Clock()
    pace = SweepProgress(clock)
    pace.begin(2, 0, 3000)
    pace.started("long", "long", 10**12, 2000)
    assert left(pace) is None
    clock.now += 4
    pace.advanced("long", 10**11, 1000)
    assert pace.fraction == 1 / 3
    assert pace.rate == 250.0
    assert left(pace) == 8.0
    assert pace.running["long"].seconds_left(clock.now) == 4.0
    clock.now += 4
    pace.ended("long", finished=True)
    assert pace.fraction == 2 / 3
    assert left(pace) == 4.0
    assert pace.done == 1


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=20), st.integers(0, 10**6))
def test_a_run_never_looks_finished_while_it_runs_and_never_goes_back(hops: list[int], expected: int) -> None:
    pace = SweepProgress(Clock())
    pace.begin(1, 0, expected)
    run = pace.started("run", "run", 10**12, expected)
    fractions = []
    for value in sorted(hops):
        pace.advanced("run", 0, value)
        fractions.append(run.fraction)
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] < 1


def test_without_a_terminal_progress_is_plain_lines(snapshot: SnapshotAssertion) -> None:
    clock = Clock()
    console = Console(width=40, force_terminal=False)
    with console.capture() as capture, Lines(console, clock) as lines:
        lines.begin(3, 1, 30_000_000)
        lines.started("a", "TCP, load 0.4, seed 1", 10**12, 20_000_000)
        lines.started("b", "RepFlow, load 0.4, seed 1", 10**12, 10_000_000)
        clock.now += 4
        lines.advanced("a", 5 * 10**9, 4_000_000)  # too soon to be worth a line
        clock.now += 8
        lines.advanced("a", 12 * 10**9, 12_000_000)
        lines.finished("a")
        lines.note("something to know")
        lines.failed("b", "out of memory")
    assert capture.get() == snapshot


def test_on_a_terminal_progress_is_bars_with_time_speed_and_time_left() -> None:
    clock = Clock()
    console = Console(width=140, force_terminal=True, color_system=None, legacy_windows=False)
    with console.capture() as capture, Bars(console, clock) as bars:
        bars.begin(2, 0, 40_000_000)
        bars.started("a", "TCP, load 0.4, seed 1", 10**12, 20_000_000)
        clock.now += 1
        bars.advanced("a", 12_300_000_000, 10_000_000)
    screen = capture.get()
    assert "TCP, load 0.4, seed 1" in screen
    assert "12.3 ms simulated" in screen
    assert "10.0 M packet-hops/s" in screen
    assert "1.0 s left" in screen
    assert "0 of 2 runs" in screen


def test_colour_changes_no_character_of_an_error() -> None:
    rendered = "error[TC-E010]: no\n --> a.toml:6:1\n  |\n6 | laod = 0.5\n  | ^^^^ expected\n  = hint: load"
    text = coloured(rendered)
    assert text.plain == rendered
    assert {span.style for span in text.spans} >= {"bold red", "bold blue", "bold cyan"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00 µs"),
        (871.4, "871 µs"),
        (999.6, "1.00 ms"),
        (12_345, "12.3 ms"),
        (2_500_000, "2.50 s"),
        (-40, "−40.0 µs"),
    ],
)
def test_times_have_three_digits_and_the_unit_that_suits(value: float, text: str) -> None:
    assert units.microseconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "under 0.1 s"), (1.25, "1.2 s"), (59.7, "1 min 00 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")],
)
def test_durations_read_naturally(value: float, text: str) -> None:
    assert units.duration(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.4, 0, "0"), (29.6, 0, "30"), (99.6, 0, "99.6"), (99.998, 0, "99.9"), (99.998, 1, "99.9"), (250, 0, "250")],
)
def test_a_share_is_shown_as_100_percent_only_if_it_is_all(value: float, digits: int, text: str) -> None:
    assert units.percent(value, digits) == text


@pytest.mark.parametrize(
    ("text", "picoseconds"),
    [("0ps", 0), ("2667ns", 2_667_000), ("1.5us", 1_500_000), ("100ms", 10**11), ("3s", 3 * 10**12)],
)
def test_times_of_a_plan_are_read_exactly(text: str, picoseconds: int) -> None:
    assert units.time_ps(text) == picoseconds


@pytest.mark.parametrize("text", ["5", "5 parsecs", "", "ms"])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        units.time_ps(text)
