"""The part of a trace that an experiment takes, when it begins, and how fast its time goes."""

import io
from pathlib import Path
from typing import Any

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
def test_a_window_may_be_given_by_dates_or_relative_to_the_first_flow(
    more: str, expected: list[tuple[int, float]], tmp_path: Path
) -> None:
    assert taken(tmp_path, DAYS, more) == expected


def test_rows_of_parquet_files_are_taken_too(tmp_path: Path) -> None:
    file = io.BytesIO()
    pl.DataFrame({"src": [0, 1], "dst": [1, 0], "bytes": [5, 6], "start_s": [1.5, 2.5]}).write_parquet(file)
    assert taken(tmp_path, file.getvalue(), 'window = ["2s", "3s"]', name="f.parquet") == [(6, 0.5)]


def test_scaled_times_are_rounded_down_to_nanoseconds(tmp_path: Path) -> None:
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
def test_impossible_settings_of_a_trace_are_refused_with_their_place(
    more: str, key: str, line: int, message: str, tmp_path: Path
) -> None:
    error = refusal(experiment(tmp_path, SECONDS, more, rest=""))
    assert (error.key, error.line, error.message) == (f"traffic.{key}", line, message)
    assert error.code == f"TC-E100/trace-{'horizon' if key == 'file' else key}"
    assert error.hint


def test_an_error_about_times_of_day_names_the_days_of_the_trace(tmp_path: Path) -> None:
    error = refusal(experiment(tmp_path, DAYS, 'window = ["2025-01-01", "2025-01-02"]'))
    assert error.message.endswith("the trace goes from 2024-05-01T12:00:00Z to 2024-05-01T12:00:05Z")


def test_a_scale_may_be_swept(tmp_path: Path) -> None:
    plan = tailcut.load(experiment(tmp_path, SECONDS, rest='[sweep]\n"traffic.scale" = [0.5, 2]\n')).plan
    assert plan["sweep"] == [{"key": "traffic.scale", "values": [0.5, 2]}]
    assert [run["point"] for run in plan["runs"]] == [{"traffic.scale": 0.5}, {"traffic.scale": 2}]
    assert [flows(plan, run)[-1].start_ns for run in (0, 1)] == [2_500_000_000, 10_000_000_000]


SWEPT = """
[schemes.TCP]
[schemes.Small]
transport = { initial_window = "2packets" }
[sweep]
"traffic.scale" = [0.5, 2]
"topology.rate" = ["1Gbps", "10Gbps"]
"traffic.window" = [["0s", "1.5s"], ["0s", "2.5s"], ["0s", "2.6s"]]
"""


def test_several_keys_of_a_trace_can_be_swept(tmp_path: Path) -> None:
    plan = tailcut.load(experiment(tmp_path, SECONDS, rest=SWEPT), seeds=1).plan
    windows = ['["0s", "1.5s"]', '["0s", "2.5s"]', '["0s", "2.6s"]']
    assert [(axis["key"], axis["values"]) for axis in plan["sweep"]] == [
        ("traffic.scale", [0.5, 2]), ("topology.rate", ["1Gbps", "10Gbps"]), ("traffic.window", windows),
    ]  # fmt: skip
    assert [(*run["point"].values(), run["scheme"]) for run in plan["runs"]] == [
        (scale, rate, window, scheme)
        for scale in (0.5, 2) for rate in ("1Gbps", "10Gbps") for window in windows for scheme in ("TCP", "Small")
    ]  # fmt: skip
    first, last = plan["runs"][0], plan["runs"][-1]
    assert list(first["point"]) == ["traffic.scale", "topology.rate", "traffic.window"]
    assert [flow.start_ns for flow in flows(plan, plan["runs"].index(last))] == [0, 2 * 10**9, 4 * 10**9]
    assert [flow.start_ns for flow in flows(plan, 0)] == [0, 5 * 10**8]


def test_windows_that_take_the_same_flows_are_one_run_at_two_points(tmp_path: Path) -> None:
    rest = '[sweep]\n"traffic.window" = [["0s", "1.5s"], ["0s", "1.7s"]]\n'
    runs = tailcut.load(experiment(tmp_path, SECONDS, rest=rest)).plan["runs"]
    assert [run["point"]["traffic.window"] for run in runs] == ['["0s", "1.5s"]', '["0s", "1.7s"]']
    assert len({run["id"] for run in runs}) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"traffic.window": ["0s", "4s"], "traffic.scale": [3, 4]},
        {"traffic.scale": [3, 4], "topology.hosts": 4, "traffic.window": ["0s", "4s"]},
        {
            "traffic.columns": ["src", "dst", "bytes", "start_s"],
            "traffic.window": ["0s", "4s"],
            "traffic.scale": [3, 4],
        },
    ],
)
def test_a_swept_key_may_be_given_beside_others(given: dict[str, Any], tmp_path: Path) -> None:
    content = SECONDS.partition("\n")[2] if "traffic.columns" in given else SECONDS
    plan = tailcut.load(experiment(tmp_path, content, rest='[sweep]\n"traffic.scale" = [0.5, 2]\n'), set=given).plan
    assert plan["sweep"] == [{"key": "traffic.scale", "values": [3, 4]}]
    assert [flows(plan, run)[-1].start_ns for run in (0, 1)] == [9 * 10**9, 12 * 10**9]


def test_files_and_scales_are_swept_together(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("src,dst,bytes,start_s\n0,1,7,1\n")
    rest = '[sweep]\n"traffic.scale" = [1, 3]\n"traffic.file" = ["flows.csv", "other.csv"]\n'
    plan = tailcut.load(experiment(tmp_path, SECONDS, rest=rest)).plan
    found = [(*run["point"].values(), flows(plan, at)[-1].start_ns) for at, run in enumerate(plan["runs"])]
    assert found == [
        (1, "flows.csv", 5 * 10**9), (1, "other.csv", 10**9), (3, "flows.csv", 15 * 10**9), (3, "other.csv", 3 * 10**9),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "rest", "expected"),
    [
        ('window = ["7s", "9s"]\nlaod = 1', "", [("traffic.window", 8), ("traffic.laod", 9)]),
        ("scale = 0", '[queue]\nlimit = "many"\n', [("traffic.scale", 8), ("queue.limit", 10)]),
        ("", '[sweep]\n"traffic.scale" = [1, -1, 0]\n"topology.rate" = ["1Gb"]\n',
         [("traffic.scale", 10), ("traffic.scale", 10), ("topology.rate", 11)]),
    ],
)  # fmt: skip
def test_an_error_of_a_trace_does_not_hide_other_errors(
    more: str, rest: str, expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    error = refusal(experiment(tmp_path, SECONDS, more, rest=rest))
    assert [(one["key"], one["line"]) for one in error.errors] == expected
    assert error.rendered == "\n\n".join(one["rendered"] for one in error.errors)


def test_a_missing_file_is_reported_once_whatever_is_swept(tmp_path: Path) -> None:
    path = experiment(
        tmp_path, SECONDS, rest='[sweep.traffic]\nscale = [1, 2]\nwindow = [["0s", "1s"], ["1s", "2s"]]\n'
    )
    (tmp_path / "flows.csv").unlink()
    (only,) = refusal(path).errors
    assert (only["code"], only["key"], only["line"]) == ("TC-E100/trace-file", "traffic.file", 7)
    assert only["message"] == "flows.csv: cannot be read: No such file or directory"


def test_every_unreadable_part_of_a_mix_is_reported(tmp_path: Path) -> None:
    path = experiment(tmp_path, SECONDS, rest="")
    part = '[[traffic.parts]]\nkind = "trace"\nfile = "flows.csv"\nscale = '
    path.write_text(
        f'title = "t"\n[topology]\nkind = "star"\nhosts = 3\n[traffic]\nkind = "mix"\n{part}0\n{part}2\n{part}-1\n'
    )
    assert [one["key"] for one in refusal(path).errors] == ["traffic.parts[0].scale", "traffic.parts[2].scale"]


def test_settings_may_be_given_on_the_command_line(tmp_path: Path) -> None:
    path = experiment(tmp_path, SECONDS, "scale = 3", rest="")
    plan = tailcut.load(path, set={"traffic.scale": "0.1", "traffic.window": '["4s", "6s"]'}).plan
    assert [flow.start_ns for flow in flows(plan)] == [0, 100_000_000]
    error = refusal(path, {"traffic.scale": "-1"})
    assert (error.file, error.key, error.column) == ("--set", "traffic.scale", 15)


def test_two_windows_of_one_trace_in_a_mix_are_distinguished(tmp_path: Path) -> None:
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
def test_a_window_takes_exactly_the_flows_that_start_in_it(starts: list[int], first: int, last: int) -> None:
    bounds = [first * 10**8, (first + last) * 10**8]
    inside = [index for index, start in enumerate(starts) if bounds[0] <= start < bounds[1]]
    if inside:
        kept, origin, _ = Times(starts, of_day=False).settled({"window": [f"{bound}ns" for bound in bounds]})
        assert (kept, origin) == (inside, bounds[0])
