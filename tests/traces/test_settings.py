"""The part of a trace that an experiment takes, when it begins, and how fast its time goes."""

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import tailcut
from support.traces import experiment, flows, read, refusal
from tailcut.traces.settings import Times

SECONDS = "src,dst,bytes,start_s\n" + "".join(f"0,1,{second + 1},{second}\n" for second in range(6))
DAYS = "src,dst,bytes,start\n" + "".join(f"0,1,{s + 1},2024-05-01T12:00:0{s}Z\n" for s in range(6))


def taken(directory: Path, content: str | bytes, more: str, name: str = "flows.csv") -> list[tuple[int, float]]:
    """Sizes and starts in seconds of the flows that are taken."""
    rest = '[horizon]\narrivals = "1000s"\n'
    return [(flow.bytes, flow.start_ns / 1e9) for flow in read(directory, content, more, name=name, rest=rest)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('window = ["2s", "4s"]', [(3, 0), (4, 1)]),
        ('window = ["1500ms", "2.000000001s"]', [(3, 0.5)]),
        ('window = ["2s", "4s"]\norigin = "0s"', [(3, 2), (4, 3)]),
        ('window = ["1.5s", "3.5s"]\norigin = "first"', [(3, 0), (4, 1)]),
        ('window = ["4s", "9s"]\nscale = 0.5', [(5, 0), (6, 0.5)]),
        ('window = ["4s", "9s"]\nscale = 100', [(5, 0), (6, 100)]),
        ('window = ["4s", "9s"]\norigin = "3s"\nscale = 0.1', [(5, 0.1), (6, 0.2)]),
    ],
)
def test_a_window_is_taken_from_the_origin_on_and_scaled(
    more: str, expected: list[tuple[int, float]], tmp_path: Path
) -> None:
    assert taken(tmp_path, SECONDS, more) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('window = ["2024-05-01T12:00:02Z", "2024-05-01 14:00:04+02:00"]', [(3, 0), (4, 1)]),
        ("window = [2024-05-01T12:00:02Z, 2024-05-01T12:00:04Z]", [(3, 0), (4, 1)]),
        ('window = ["2s", "4s"]', [(3, 0), (4, 1)]),
        ('window = ["2s", "4s"]\norigin = 2024-05-01T12:00:00Z', [(3, 2), (4, 3)]),
        ('origin = "2024-05-01T11:59:59.5Z"\nwindow = ["0s", "1s"]', [(1, 0.5)]),
    ],
)
def test_a_window_of_times_of_day_may_be_told_by_dates_or_from_the_first_flow(
    more: str, expected: list[tuple[int, float]], tmp_path: Path
) -> None:
    assert taken(tmp_path, DAYS, more) == expected


def test_rows_of_parquet_files_are_taken_too(tmp_path: Path) -> None:
    file = io.BytesIO()
    pl.DataFrame({"src": [0, 1], "dst": [1, 0], "bytes": [5, 6], "start_s": [1.5, 2.5]}).write_parquet(file)
    assert taken(tmp_path, file.getvalue(), 'window = ["2s", "3s"]', name="f.parquet") == [(6, 0.5)]


def test_what_is_no_whole_nanosecond_after_scaling_is_rounded_down(tmp_path: Path) -> None:
    found = read(tmp_path, "src,dst,bytes,start_ns\n0,1,5,0\n0,1,5,10\n0,1,5,11\n", "scale = 0.1")
    assert [flow.start_ns for flow in found] == [0, 1, 1]


def test_flows_in_the_experiment_are_taken_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "inline.toml"
    path.write_text(
        'title = "t"\n[topology]\nkind = "star"\nhosts = 3\n[traffic]\nkind = "trace"\n'
        'window = ["1us", "9us"]\nscale = 2\n'
        'flows = [{ src = 0, dst = 1, bytes = "1B" }, { src = "h1", dst = 2, bytes = "2B", start = "3us" }]\n'
    )
    (flow,) = flows(tailcut.load(path).plan)
    assert flow[1:] == (1, 2, 2, 4_000)


@pytest.mark.parametrize(
    ("more", "key", "line", "message"),
    [
        ('window = ["7s", "9s"]', "window", 8, "window: no flow starts in it; the trace goes from 0s to 5s"),
        ('window = ["4s", "2s"]', "window", 8, "window: ends before it begins"),
        ('window = ["4s"]', "window", 8, "window: two times are needed, from and until"),
        ("window = [4, 5]", "window", 8, "window: 4 is not a time"),
        ('window = ["4", "5s"]', "window", 8, "window: '4' has no unit"),
        ('window = ["2024-05-01", "2024-05-02"]', "window", 8, "window: 2024-05-01 is a date, and the trace has none"),
        ('origin = "2s"', "origin", 8, "flows.csv: line 2: starts 2s before origin"),
        ("scale = 0", "scale", 8, "scale = 0: a number above 0 is needed"),
        ("scale = nan", "scale", 8, "scale = nan: a number above 0 is needed"),
        ("scale = true", "scale", 8, "scale = True: a number above 0 is needed"),
        ("scale = 1e6", "file", 7, "flows.csv: line 3: starts 1000000s after the beginning: a run has at most a day"),
    ],
)
def test_settings_that_cannot_be_are_refused_where_they_stand(
    more: str, key: str, line: int, message: str, tmp_path: Path
) -> None:
    error = refusal(experiment(tmp_path, SECONDS, more, rest=""))
    assert (error.key, error.line, error.message) == (f"traffic.{key}", line, message)
    assert error.code == f"TC-E100/trace-{'horizon' if key == 'file' else key}"
    assert error.hint


def test_a_trace_of_times_of_day_tells_which_days_it_has(tmp_path: Path) -> None:
    error = refusal(experiment(tmp_path, DAYS, 'window = ["2025-01-01", "2025-01-02"]'))
    assert error.message.endswith("the trace goes from 2024-05-01T12:00:00Z to 2024-05-01T12:00:05Z")


def test_a_scale_may_be_swept(tmp_path: Path) -> None:
    plan = tailcut.load(experiment(tmp_path, SECONDS, rest='[sweep]\n"traffic.scale" = [0.5, 2]\n')).plan
    assert plan["sweep"] == [{"key": "traffic.scale", "values": [0.5, 2]}]
    assert [run["point"] for run in plan["runs"]] == [{"traffic.scale": 0.5}, {"traffic.scale": 2}]
    assert [flows(plan, run)[-1].start_ns for run in (0, 1)] == [2_500_000_000, 10_000_000_000]


def test_settings_may_be_given_on_the_command_line(tmp_path: Path) -> None:
    path = experiment(tmp_path, SECONDS, "scale = 3", rest="")
    plan = tailcut.load(path, set={"traffic.scale": "0.1", "traffic.window": '["4s", "6s"]'}).plan
    assert [flow.start_ns for flow in flows(plan)] == [0, 100_000_000]
    error = refusal(path, {"traffic.scale": "-1"})
    assert (error.file, error.key, error.column) == ("--set", "traffic.scale", 15)


def test_two_windows_of_one_trace_are_told_apart_in_a_mix(tmp_path: Path) -> None:
    path = experiment(tmp_path, SECONDS, rest="")
    part = '[[traffic.parts]]\nkind = "trace"\nfile = "flows.csv"\nwindow = '
    path.write_text(
        'title = "t"\n[topology]\nkind = "star"\nhosts = 3\n[traffic]\nkind = "mix"\n'
        f'{part}["0s", "1s"]\n{part}["5s", "6s"]\n'
    )
    plan = tailcut.load(path).plan
    assert sorted(flow.bytes for flow in flows(plan)) == [1, 6]
    assert {use["path"] for use in plan["runs"][0]["files"]} == {
        'flows.csv (window ["0s", "1s"])',
        'flows.csv (window ["5s", "6s"])',
    }


@hypothesis_settings(max_examples=60)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.integers(1, 9), st.integers(1, 9))
def test_a_window_takes_what_starts_in_it_and_nothing_else(starts: list[int], first: int, last: int) -> None:
    bounds = [first * 10**8, (first + last) * 10**8]
    inside = [index for index, start in enumerate(starts) if bounds[0] <= start < bounds[1]]
    if inside:
        kept, origin, _ = Times(starts, of_day=False).settled({"window": [f"{bound}ns" for bound in bounds]})
        assert (kept, origin) == (inside, bounds[0])
