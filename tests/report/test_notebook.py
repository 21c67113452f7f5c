"""A result shows itself in a notebook."""

from pathlib import Path

from support import made_up
from tailcut.result import Result
from tailcut.results import Store


def shown(directory: Path, runs: int) -> str:
    plan = made_up.plan(sweep=[], seeds=[1, 2])
    plan["title"] = "Tails & <mice>"
    store = Store.create(directory, plan, directory / "made-up.toml")
    for run in plan["runs"][:runs]:
        made_up.put(store, run, made_up.flows([100.0 if run["scheme"] == "TCP" else 50.0, 200.0]))
    return Result(store, plan)._repr_html_()


def test_a_notebook_shows_headline_summary_and_a_figure(tmp_path: Path) -> None:
    html = shown(tmp_path, runs=4)
    assert html.startswith("<p>RepFlow ")
    assert "Short flows" in html
    assert html.count("<svg") == 1
    assert "Tails &amp; &lt;mice&gt;" in html


def test_a_notebook_reports_missing_runs(tmp_path: Path) -> None:
    assert "<p>1 of 4 runs are missing.</p>" in shown(tmp_path, runs=3)


def test_results_without_runs_say_how_to_make_them(tmp_path: Path) -> None:
    assert "none of them has finished: <code>tailcut run" in shown(tmp_path, runs=0)
