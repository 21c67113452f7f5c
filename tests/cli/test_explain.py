"""``tailcut explain``: what it prints, and what it refuses."""

import json
from pathlib import Path

import polars as pl
import pytest

import tailcut as package
from support import experiments
from tailcut import _core

from .conftest import Tailcut


@pytest.fixture
def results(tailcut: Tailcut, tiny: Path) -> Path:
    """Two seeds of TCP and RepFlow."""
    assert tailcut("run", tiny, "-o", "results", "-q").exit_code == 0
    return Path("results")


def test_explain_shows_the_slowest_flow_under_every_scheme(tailcut: Tailcut, results: Path) -> None:
    found = tailcut("explain", results)
    assert found.exit_code == 0, found.stderr
    flows = package.open_results(results).flows.filter(pl.col("scheme") == "TCP", pl.col("seed") == 1)
    slowest = flows.sort("fct_ns", descending=True)["id"][0]
    text = found.stdout
    assert text.startswith(f"Flow {slowest}, h")
    assert "50.0 kB; seed 1" in text.splitlines()[0]
    assert text.index("\nTCP: ") < text.index("\nRepFlow: ")
    assert text.count("the last byte has arrived") == 2
    assert "SYN sent" in text
    assert "#2" in text, "the second connection of RepFlow"


def test_stories_end_at_the_time_in_the_flow_table(tailcut: Tailcut, results: Path) -> None:
    found = json.loads(tailcut("explain", results, "--slowest", 3, "--scheme", "RepFlow", "--seed", 2, "--json").stdout)
    flows = package.open_results(results).flows
    assert len(found) == 3
    for flow in found:
        assert (flow["scheme"], flow["seed"], flow["point"], flow["without"]) == ("RepFlow", 2, {}, [])
        assert [told["scheme"] for told in flow["schemes"]] == ["RepFlow", "TCP"]
        for told in flow["schemes"]:
            of_scheme = (pl.col("scheme") == told["scheme"], pl.col("seed") == 2, pl.col("id") == flow["flow"])
            row = flows.filter(*of_scheme).row(0, named=True)
            assert told["fct_ps"] // 1000 == row["fct_ns"]
            ends = [line["at_ps"] for line in told["lines"] if line["what"].startswith("the last byte has arrived")]
            assert ends == [told["fct_ps"]]
            arrived = [one["end"]["at_ps"] for one in told["packets"] if one["end"] and one["end"]["how"] == "received"]
            assert told["start_ps"] + told["fct_ps"] in arrived
            sent = sum(one["kind"] == "data" for one in told["packets"])
            assert sent == row["data_packets"], "no packet of data is sent after a flow is over"


def test_all_shows_every_event_of_a_named_flow(tailcut: Tailcut, results: Path) -> None:
    found = tailcut("explain", results, "--flow", 0, "--flow", 1, "--all")
    assert found.exit_code == 0
    assert [line for line in found.stdout.splitlines() if line.startswith("Flow ")][1].startswith("Flow 1, ")
    assert "bytes 1 to 1,460 sent" in found.stdout
    folded = tailcut("explain", results, "--flow", 0)
    assert len(folded.stdout) < len(found.stdout) / 2


def test_explain_takes_a_point_of_the_sweep_and_defaults_to_the_last(tailcut: Tailcut, tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path, '[sweep]\n"traffic.load" = [0.2, 0.4]\n')
    assert tailcut("run", path, "-o", "swept", "--seeds", 1, "-q").exit_code == 0
    assert "; load 0.4, seed 1" in tailcut("explain", "swept").stdout
    assert "; load 0.2, seed 1" in tailcut("explain", "swept", "--at", "load=0.2").stdout
    assert "; load 0.2, seed 1" in tailcut("explain", "swept", "--at", "traffic.load=0.2").stdout
    for wrong, hint in (("load=0.3", "0.2, 0.4"), ("size=1", "swept: load")):
        refused = tailcut("explain", "swept", "--at", wrong)
        assert (refused.exit_code, "error[TC-X002]" in refused.stderr, hint in refused.stderr) == (2, True, True)


def test_a_point_may_be_given_as_the_experiment_writes_it(tailcut: Tailcut, tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path, '[sweep]\n"transport.timestamps" = [true, false]\n')
    assert tailcut("run", path, "-o", "swept", "--seeds", 1, "-q").exit_code == 0
    assert "; timestamps true, seed 1" in tailcut("explain", "swept", "--at", "timestamps=true").stdout
    refused = tailcut("explain", "swept", "--at", "timestamps=True")
    assert "finished runs have: true, false" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        (["--flow", 123456], "TC-X003", "its flows are 0 to"),
        (["--scheme", "Quick"], "TC-X002", "TCP, RepFlow"),
        (["--seed", 9], "TC-X002", "1, 2"),
        (["--repeat", 99], "TC-X002", "--on lab"),
    ],
)
def test_unknown_schemes_seeds_points_and_flows_are_refused(
    tailcut: Tailcut, results: Path, options: list[object], code: str, hint: str
) -> None:
    refused = tailcut("explain", results, *options)
    assert refused.exit_code == 2
    assert f"error[{code}]" in refused.stderr
    assert hint in " ".join(refused.stderr.split())


def test_options_that_make_no_sense_are_refused(tailcut: Tailcut, results: Path) -> None:
    assert tailcut("explain", results, "--flow", 1, "--slowest", 2).exit_code == 2
    assert tailcut("explain", results, "--at", "load").exit_code == 2
    assert tailcut("explain", results, "--on", "model").exit_code == 2
    assert tailcut("report", results, "--explain-seed", 1).exit_code == 2
    missing = tailcut("explain", "nowhere")
    assert (missing.exit_code, "error[TC-S002]" in missing.stderr) == (2, True)


def test_a_model_has_no_packets(tailcut: Tailcut, tiny: Path) -> None:
    assert tailcut("run", tiny, "--on", "model", "-o", "modelled", "-q").exit_code == 0
    refused = tailcut("explain", "modelled")
    assert (refused.exit_code, "error[TC-X001]" in refused.stderr) == (2, True)
    assert "the queueing model has no packets" in " ".join(refused.stderr.split())


def test_a_repeated_run_with_another_outcome_is_an_error(
    tailcut: Tailcut, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _core.explain

    def later(*arguments: object) -> str:
        told = json.loads(made(*arguments))  # type: ignore[arg-type]
        for flow in told["flows"]:
            flow["fct_ps"] += 1000
        return json.dumps(told)

    monkeypatch.setattr(_core, "explain", later)
    refused = tailcut("explain", results)
    assert (refused.exit_code, "error[TC-X004]" in refused.stderr) == (2, True)
    assert "another fct" in " ".join(refused.stderr.split())


def test_a_run_of_another_version_is_an_error(tailcut: Tailcut, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*_: object) -> str:
        raise ValueError("it was planned by another version")

    monkeypatch.setattr(_core, "explain", other)
    refused = tailcut("explain", results)
    assert (refused.exit_code, "cannot be repeated" in " ".join(refused.stderr.split())) == (2, True)
