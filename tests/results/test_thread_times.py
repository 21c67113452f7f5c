"""Where the threads of runs spent their time."""

from pathlib import Path

import pytest

from support import made_up
from tailcut.report import page
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import Theme
from tailcut.result import Result
from tailcut.results import Store
from tailcut.results.thread_times import by_activity, sentence, shares, waiting_of_each

TWO = {"work": [6.0, 8.0], "waiting": [3.0, 1.0], "exchange": [1.0, 1.0]}
THREE = {"work": [1.0, 1.0, 1.0], "waiting": [0.0, 3.0, 3.0], "exchange": [0.0, 0.0, 0.0]}


def test_times_are_kept_by_what_threads_did() -> None:
    assert by_activity([[6.0, 3.0, 1.0], [8.0, 1.0, 1.0]]) == TWO


def test_shares_are_those_of_all_threads_together() -> None:
    assert shares([TWO]) == (70, 20, 10)
    assert shares([TWO, THREE]) == pytest.approx((100 * 17 / 29, 100 * 10 / 29, 100 * 2 / 29))


def test_each_thread_waits_for_a_part_of_its_own_time() -> None:
    assert waiting_of_each(TWO) == [30, 10]
    assert waiting_of_each(THREE) == [0, 75, 75]


def test_one_sentence_says_it() -> None:
    assert sentence([TWO]) == (
        "2 threads: 70 % of their time at work, 20 % waiting for each other, 10 % exchanging packets."
    )
    assert sentence([TWO, THREE]) == (
        "2 to 3 threads in each of 2 runs: 59 % of their time at work, 34 % waiting for each other,"
        " 7 % exchanging packets."
    )


def test_the_page_shows_runs_on_several_threads(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP", "RepFlow"], sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    first, second = plan["runs"]
    made_up.put(store, first, made_up.flows([100, 200]))
    study = Study.of(Result(store))
    assert page.threads(study) == []
    assert "Where the threads" not in page.render(study, Data.of(study), Theme(study.schemes))
    made_up.put(store, second, made_up.flows([100, 200]), threads=2, thread_seconds=TWO)
    result = Result(store)
    assert result.thread_seconds == [TWO]
    study = Study.of(result)
    row = {"threads": 2, "work": "70.0", "waiting": "20.0", "range": "10.0 to 30.0", "exchange": "10.0"}
    assert page.threads(study) == [{"scheme": second["scheme"], "where": "", "seed": 1, **row}]
    assert "Where the threads of a run spent their time" in page.render(study, Data.of(study), Theme(study.schemes))
