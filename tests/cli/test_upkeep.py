"""``tailcut prune`` and ``tailcut merge``."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailcut import cli

from .conftest import Tailcut


def runs(directory: str) -> int:
    return len(list(Path(directory).glob("runs/*")))


@pytest.fixture
def pruned(tailcut: Tailcut, tiny: Path) -> Tailcut:
    """Four runs, of which the experiment as it is edited now needs two."""
    assert tailcut("run", tiny, "-q").exit_code == 0
    tiny.write_text(tiny.read_text().replace("seeds = 2", "seeds = 1"))
    assert tailcut("run", tiny, "-q").exit_code == 0
    return tailcut


def test_prune_asks_first_and_takes_no_for_an_answer(pruned: Tailcut) -> None:
    asked = CliRunner().invoke(cli.app, ["prune", "results/tiny"], input="n\n")
    assert asked.exit_code == 1
    assert "Remove 2 runs (" in asked.stderr
    assert "and keep 2?" in asked.stderr
    assert runs("results/tiny") == 4


def test_prune_without_an_answer_removes_nothing(pruned: Tailcut) -> None:
    assert pruned("prune", "results/tiny").exit_code == 1
    assert runs("results/tiny") == 4


def test_prune_removes_what_is_confirmed(pruned: Tailcut) -> None:
    done = CliRunner().invoke(cli.app, ["prune", "results/tiny"], input="y\n")
    assert (done.exit_code, "2 runs removed" in done.stderr) == (0, True)
    assert runs("results/tiny") == 2
    assert "missing" not in pruned("summary", "results/tiny").stderr


def test_prune_with_yes_does_not_ask(pruned: Tailcut) -> None:
    assert pruned("prune", "results/tiny", "--yes").exit_code == 0
    assert runs("results/tiny") == 2
    again = pruned("prune", "results/tiny")
    assert (again.exit_code, "results/tiny: all 2 runs are part of a plan" in again.stderr) == (0, True)


def test_prune_keeps_what_another_plan_needs_unless_only_the_last_counts(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny, "-q", "--seeds", 1)
    tailcut("run", tiny, "-q", "--seeds", 1, "--set", "traffic.load=0.2")
    assert "results/tiny: all 4 runs are part of a plan" in tailcut("prune", "results/tiny", "--dry-run").stderr
    assert "results/tiny: 2 runs" in tailcut("prune", "results/tiny", "--dry-run", "--last").stderr


def test_a_dry_run_names_the_runs_and_removes_none(pruned: Tailcut) -> None:
    told = pruned("prune", "results/tiny", "--dry-run")
    assert told.exit_code == 0
    assert len(told.stdout.split()) == 2
    assert all(Path(path).is_dir() for path in told.stdout.split())
    assert runs("results/tiny") == 4


def test_two_directories_become_one_and_nothing_is_made_again(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny, "-q", "--seeds", 1, "--out", "a")
    tailcut("run", tiny, "-q", "--out", "b")
    merged = tailcut("merge", "a", "b")
    assert merged.exit_code == 0
    assert "2 runs copied, 2 were there already; 2 are not in the plan of a" in merged.stderr
    assert "all 4 runs are finished already" in tailcut("run", tiny, "--out", "a").stderr


def test_merging_what_is_no_directory_of_results_is_one_clear_error(tailcut: Tailcut, tiny: Path) -> None:
    tailcut("run", tiny, "-q", "--out", "a")
    refused = tailcut("merge", "a", "nowhere")
    assert (refused.exit_code, "TC-S002" in refused.stderr) == (2, True)
