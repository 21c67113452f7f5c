import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

import tailcut as package
from support import experiments
from tailcut import _core, backends, shipped
from tailcut.terminal import components

from .conftest import Tailcut

ROOT = Path(__file__).parents[2]


def test_version_is_the_packages(tailcut: Tailcut) -> None:
    result = tailcut("--version")
    assert (result.exit_code, result.stdout) == (0, f"tailcut {package.__version__}\n")


def test_check_shows_the_runs_their_size_and_every_default(
    tailcut: Tailcut, tiny: Path, snapshot: SnapshotAssertion
) -> None:
    result = tailcut("check", tiny, "--jobs", 2)
    assert result.exit_code == 0
    assert result.stdout == snapshot


def test_brackets_in_names_and_values_are_shown_as_they_are(tailcut: Tailcut, tmp_path: Path) -> None:
    """Flows that are swept are spelled in brackets, as are names and titles if their author likes."""
    path = tmp_path / "brackets.toml"
    path.write_text("""
title = "One flow or two [bold]"
[topology]
kind = "dumbbell"
[traffic]
kind = "trace"
[schemes."TCP [red]"]
[sweep]
"traffic.flows" = [
    [{ src = 0, dst = 2, bytes = "10KB" }],
    [{ src = 0, dst = 2, bytes = "10KB" }, { src = 1, dst = 3, bytes = "20KB" }],
]
""")
    first = "[src=0 dst=2 bytes=10KB]"
    checked = tailcut("check", path).stdout
    assert "One flow or two [bold]" in checked
    assert "1 scheme (TCP [red])" in checked
    assert "1 seed (1)" in checked
    assert f"2 values of traffic.flows ({first}, [src=0 dst=2 bytes=10KB," in " ".join(checked.split())
    summary = tailcut("run", path, "-o", "brackets").stdout
    assert first in summary
    assert "TCP [red]" in summary
    assert tailcut("report", "brackets").exit_code == 0
    assert first in Path("brackets/report.html").read_text("utf-8")


def test_check_as_json_is_the_plan(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("check", tiny, "--json")
    assert json.loads(result.stdout) == package.load(tiny).plan


def test_overrides_and_seeds_change_the_plan(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut(
        "check", tiny, "--json", "--set", "traffic.load=0.7", "--set", "queue.limit=25packets", "--seeds", 3
    )
    plan = json.loads(result.stdout)
    assert plan["seeds"] == [1, 2, 3]
    assert {run["config"]["traffic"]["load"] for run in plan["runs"]} == {0.7}
    assert {run["config"]["scheme"]["queue"]["limit"] for run in plan["runs"]} == {"25packets"}


def test_an_override_without_a_value_is_refused(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("check", tiny, "--set", "traffic.load")
    assert result.exit_code == 2
    assert "KEY=VALUE" in result.stderr


def test_a_wrong_key_is_shown_with_its_place_and_a_hint(
    tailcut: Tailcut, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = experiments.tiny(tmp_path, "[host]\nframing_overhed = '38B'\n").relative_to(tmp_path)
    for command in ("check", "run"):
        result = tailcut(command, path)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr == snapshot


def test_a_missing_experiment_file_is_bad_input(tailcut: Tailcut) -> None:
    result = tailcut("run", "absent.toml")
    assert result.exit_code == 2
    assert "absent.toml" in result.stderr


def test_run_ends_in_the_table_and_says_where_the_results_are(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny)
    assert result.exit_code == 0
    assert "Short flows" in result.stdout
    assert result.stdout == tailcut("summary", "results/tiny").stdout
    assert "results/tiny" in result.stderr
    assert Path("results/tiny/summary.parquet").exists()


def test_results_may_be_in_a_directory_whose_name_could_be_a_pattern(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, "--out", "odd[1]*?")
    assert result.exit_code == 0
    assert result.stdout == tailcut("run", tiny).stdout


@pytest.mark.usefixtures("worker_processes")
def test_modules_of_the_users_directory_are_not_taken_for_pythons_own(tailcut: Tailcut, tiny: Path) -> None:
    for name in ("json", "random", "signal"):
        Path(f"{name}.py").write_text("raise RuntimeError('not that one')\n")
    assert tailcut("run", tiny).exit_code == 0


def test_without_a_terminal_run_prints_progress_line_by_line(tailcut: Tailcut, tiny: Path) -> None:
    lines = tailcut("run", tiny, "--jobs", 1).stderr.splitlines()
    assert lines[0].startswith("4 runs; about ")
    assert [line.split()[0] for line in lines[1:5]] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]


def test_a_second_run_makes_no_run_again(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    made = {path: path.stat().st_mtime_ns for path in Path("results/tiny/runs").glob("*/run.json")}
    result = tailcut("run", tiny)
    assert result.stderr.startswith("all 4 runs are finished already\n")
    assert {path: path.stat().st_mtime_ns for path in Path("results/tiny/runs").glob("*/run.json")} == made


def test_more_seeds_add_to_what_is_there(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    assert tailcut("run", tiny, "--seeds", 3).stderr.startswith("6 runs, 4 finished already;")


def test_a_damaged_run_is_made_again_with_a_message(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    victim = next(Path("results/tiny/runs").glob("*/flows.parquet"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1])
    result = tailcut("run", tiny)
    assert f"{victim.parent} is damaged; the run is made again" in result.stderr
    assert victim.read_bytes() == whole


def test_results_of_an_unfinished_sweep_say_so(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    next(Path("results/tiny/runs").glob("*/run.json")).unlink()
    result = tailcut("summary", "results/tiny")
    assert result.exit_code == 0
    assert "1 of 4 runs is missing, 1 of them damaged: run tiny.toml again with the same options" in result.stderr


def test_verify_finds_damage_that_other_commands_do_not_look_for(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    assert tailcut("verify", "results/tiny").stdout == "4 runs verified, none damaged\n"
    victim = next(Path("results/tiny/runs").glob("*/flows.parquet"))
    content, was = victim.read_bytes(), victim.stat()
    victim.write_bytes(content[:-1] + b"?")
    os.utime(victim, ns=(was.st_atime_ns, was.st_mtime_ns))
    result = tailcut("verify", "results/tiny")
    assert result.exit_code == 1
    assert "error[TC-S006]: 1 of 4 runs are damaged:" in result.stderr
    assert str(victim.parent) in result.stderr
    assert "is damaged; the run is made again" in tailcut("run", tiny).stderr
    assert victim.read_bytes() == content


def test_a_report_leaves_damaged_runs_out_and_says_so(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    victim = next(Path("results/tiny/runs").glob("*/flows.parquet"))
    victim.write_bytes(victim.read_bytes()[:-1])
    result = tailcut("report", "results/tiny")
    assert result.exit_code == 0
    assert "1 of 4 runs is missing, 1 of them damaged" in result.stderr
    page = Path("results/tiny/report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "1 of 4 runs is missing" in page


def test_capture_bounds_without_a_capture_are_refused(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, "--capture-bytes", "1MB")
    assert result.exit_code == 2
    assert "--capture host:0" in result.stderr


def test_a_capture_is_bounded_by_packets_bytes_and_snapshot(tailcut: Tailcut, tiny: Path) -> None:
    bounds = ("--capture-packets", 7, "--capture-bytes", "1MB", "--capture-snapshot", "64B")
    result = tailcut("run", tiny, "--capture", "host:0", *bounds)
    assert result.exit_code == 0
    assert "7 packets in results/tiny/runs/" in result.stderr


def test_a_bound_without_a_unit_is_refused(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, "--capture", "host:0", "--capture-bytes", "5")
    assert result.exit_code == 2
    assert '--capture: "5" has no unit; write for example "5MB"\n' in result.stderr


def test_the_summary_as_csv_can_be_read_back(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    rows = list(csv.DictReader(io.StringIO(tailcut("summary", "results/tiny", "--csv").stdout)))
    expected = package.open_results("results/tiny").summary()
    assert [float(row["value_us"] or "nan") for row in rows] == pytest.approx(
        [float("nan") if value is None else value for value in expected["value_us"]], nan_ok=True
    )


def test_the_summary_as_json_is_a_list_of_its_rows(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    rows = json.loads(tailcut("summary", "results/tiny", "--json").stdout)
    assert rows == package.open_results("results/tiny").summary().to_dicts()


def test_a_quiet_run_prints_nothing(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert package.open_results("results/tiny").missing_runs == []


def test_a_quiet_run_still_prints_errors(tailcut: Tailcut) -> None:
    result = tailcut("run", "absent.toml", "--quiet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "absent.toml" in result.stderr


@pytest.mark.parametrize("asked", [True, False])
def test_traceback_prints_where_failed_runs_failed(
    tailcut: Tailcut, tiny: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    def fail(*_: object, fail_fast: bool, **__: object) -> None:
        assert fail_fast
        where = {"TCP, seed 1": "Traceback (most recent call last):\n  [here]\n"}
        raise package.RunError("TC-R001", "1 of 4 runs failed", None, where)

    monkeypatch.setattr(package, "run", fail)
    result = tailcut("run", tiny, "--fail-fast", *(["--traceback"] if asked else []))
    assert result.exit_code == 1
    assert "error[TC-R001]: 1 of 4 runs failed" in result.stderr
    assert ("TCP, seed 1:\nTraceback (most recent call last):\n  [here]" in result.stderr) == asked


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("tailcut")
    for words, completed in (("tailcut su", {"summary"}), ("tailcut run --ca", {"--capture", "--capture-bytes"})):
        shell = {"_TAILCUT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = subprocess.run([program], env={**os.environ, **shell}, capture_output=True, text=True, check=True)
        assert completed <= set(done.stdout.split())


def test_list_has_one_line_of_at_most_100_columns_for_every_component(tailcut: Tailcut) -> None:
    lines = tailcut("list").stdout.splitlines()
    known = components.known()
    assert len(lines) == len(known) + len({one["group"] for one in known})
    assert [line for line in lines if len(line) > 100] == []
    for one in known:
        (line,) = [line for line in lines if line.startswith(f"  {one['name']} ") and line.endswith(one["summary"])]
        assert "…" not in line


def test_list_has_a_line_for_every_backend_that_runs_an_experiment(tailcut: Tailcut) -> None:
    shown = tailcut("list", "backend").stdout
    told = {one["name"]: one["summary"] for one in backends.described()}
    assert list(told) == [backends.backend(name).name for name in told] == ["sim", "model", "lab"]
    for name, summary in told.items():
        assert f"backend: {name}\n{summary}" in shown
        assert name in tailcut("run", "--help").stdout
    assert "sim (default)" in tailcut("list").stdout


def test_list_of_a_component_shows_its_parameters(tailcut: Tailcut) -> None:
    shown = tailcut("list", "repflow").stdout
    assert "threshold" in shown
    assert '"100KB"' in shown


def test_list_of_an_unknown_name_suggests_the_nearest_and_the_sections(tailcut: Tailcut) -> None:
    result = tailcut("list", "repfow")
    assert result.exit_code == 2
    assert "did you mean 'repflow'?" in result.stderr
    assert "replicate" in result.stderr


def test_list_names_the_kinds_that_a_parameter_accepts(tailcut: Tailcut) -> None:
    assert "transport.congestion" in tailcut("list").stdout
    shown = tailcut("list", "congestion").stdout
    for name in ("newreno", "cubic", "dctcp"):
        assert f"transport.congestion: {name}" in shown


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (
            "balance.detect",
            ["random-skip", "random-skip-switch", "exact-port", "exact-switch", "polled-counters", "host-marked"],
        ),
        ("balance.reroute", ["egress", "five-tuple"]),
        ("queue.form", ["one-queue", "two-queues"]),
        ("transport.dupack_threshold", ["topology", "tcp"]),
        ("transport.recovery", ["newreno", "sack-prr"]),
        ("transport.reordering.variant", ["careful", "aggressive"]),
    ],
)
def test_list_names_the_words_that_a_parameter_takes(tailcut: Tailcut, group: str, words: list[str]) -> None:
    shown = tailcut("list", group).stdout
    assert [line.removeprefix(f"{group}: ") for line in shown.splitlines() if line.startswith(group)] == words


def test_the_schema_accepts_the_starter_and_refuses_a_wrong_key(tailcut: Tailcut) -> None:
    schema = json.loads(tailcut("schema").stdout)
    tailcut("new", "mine.toml")
    starter = tomllib.loads(Path("mine.toml").read_text())
    jsonschema.validate(starter, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(starter | {"laod": 0.5}, schema)


def test_a_new_experiment_runs_unchanged(tailcut: Tailcut) -> None:
    assert tailcut("new", "mine.toml").exit_code == 0
    assert tailcut("check", "mine.toml").exit_code == 0


def test_every_experiment_that_comes_along_can_be_started_from(tailcut: Tailcut) -> None:
    names = [line.split()[0] for line in tailcut("new", "--list").stdout.splitlines()]
    assert {"starter", "quickstart", "papers/repflow/fig8", "web-search.cdf"} <= set(names)
    assert names == list(shipped.texts())
    for name, text in shipped.texts().items():
        Path("copy").write_text(text, "utf-8")
        if name.endswith(".cdf"):
            _core.workload("./copy")
        else:
            _core.load("copy", [("seeds", "1")])


def test_a_copy_is_named_after_its_original(tailcut: Tailcut) -> None:
    for name in ("papers/repflow/fig8", "hadoop.cdf"):
        tailcut("new", "--from", name)
    assert {path.name for path in Path().iterdir()} >= {"fig8.toml", "hadoop.cdf"}
    assert tomllib.loads(Path("fig8.toml").read_text()) == tomllib.loads(
        (ROOT / "experiments" / "papers" / "repflow" / "fig8.toml").read_text()
    )


def test_new_from_an_experiment_with_further_files_refers_to_a_checkout(tailcut: Tailcut) -> None:
    result = tailcut("new", "--from", "papers/tinyflow/fig1")

    assert result.exit_code == 2
    assert "needs a further file" in result.stderr


def test_a_misspelt_name_after_from_suggests_the_likely_one(tailcut: Tailcut) -> None:
    result = tailcut("new", "--from", "quikstart")
    assert (result.exit_code, list(Path().glob("*.toml"))) == (2, [])
    assert "did you mean quickstart?" in result.stderr


def test_new_overwrites_nothing(tailcut: Tailcut) -> None:
    Path("mine.toml").write_text("precious")
    assert tailcut("new", "mine.toml").exit_code == 2
    assert Path("mine.toml").read_text() == "precious"


def test_a_missing_directory_is_named_with_a_remedy(tailcut: Tailcut) -> None:
    result = tailcut("new", "absent/mine.toml")
    assert result.exit_code == 1
    assert "error[TC-F001]: absent/mine.toml: No such file or directory" in result.stderr
    assert "hint: check that the directory exists" in result.stderr


def test_run_refuses_a_directory_with_other_files(tailcut: Tailcut, tiny: Path) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("precious")
    result = tailcut("run", tiny, "--out", "thesis")
    assert result.exit_code == 2
    assert "TC-S001" in result.stderr


def test_an_unknown_backend_is_bad_input(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, "--on", "hardware")
    assert result.exit_code == 2
    assert "sim, model" in result.stderr


def test_a_report_of_a_directory_without_results_is_bad_input(tailcut: Tailcut) -> None:
    result = tailcut("report", ".")
    assert result.exit_code == 2
    assert "TC-S002" in result.stderr


def test_a_report_is_one_page(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny)
    result = tailcut("report", "results/tiny")
    assert result.stdout == "results/tiny/report.html\n"
    assert Path("results/tiny/report.html").read_text().startswith("<!doctype html>")
