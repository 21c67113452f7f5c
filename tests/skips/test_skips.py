"""Skips are told by kind: as pytest reasons, as lines of JSON, and as what `make test` prints last."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support import idle, skipping
from support.skipping import Skip

ROOT = Path(__file__).parents[2]
LINES: list[dict[str, object]] = [
    {"kind": "busy", "suite": "python", "why": "unfaithful", "how": None, "tests": ["lab::a"], "tried": 3},
    {"kind": "missing", "suite": "repnet", "why": "no tshark", "how": "apt-get", "tests": ["x"], "tried": 0},
    {"kind": "node", "suite": "repnet", "why": "Node 20 has no such option", "how": None, "tests": ["y"], "tried": 0},
    {"kind": "missing", "suite": "repnet", "why": "no tshark", "how": "apt-get", "tests": ["z"], "tried": 0},
]


def shown(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / ".ci/skipped", file], capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize(
    "skip",
    [
        Skip("missing", "there is no chromium", "apt-get install chromium"),
        Skip("missing", "this kernel\nhas no [such] thing"),
        Skip("busy", "unfaithful: late", None, 3),
    ],
)
def test_a_reason_reads_as_the_skip_that_wrote_it(skip: Skip) -> None:
    assert Skip.of(skip.reason) == skip


def test_a_reason_in_other_words_is_no_skip() -> None:
    assert Skip.of("not today") is None


def test_tests_that_lack_the_same_part_share_a_line() -> None:
    lack = Skip("missing", "no tshark", "apt-get install tshark").reason
    (line,) = skipping.lines([("one", lack), ("two", lack)])
    assert json.loads(line) == {
        "kind": "missing",
        "suite": "python",
        "why": "no tshark",
        "how": "apt-get install tshark",
        "tests": ["one", "two"],
        "tried": 0,
    }


def test_kinds_are_shown_with_counts_and_what_was_not_judged_last(tmp_path: Path) -> None:
    file = tmp_path / "skipped.jsonl"
    # Each suite may run twice.
    file.write_text("".join(json.dumps(line) + "\n" for line in [*LINES, *LINES]))
    assert shown(file).stdout.splitlines() == [
        "missing optional part: 2 tests",
        "  repnet, 2: no tshark (to have it: apt-get)",
        "not this Node: 1 test",
        "  repnet, 1: Node 20 has no such option",
        "not judged: machine too busy: 1 test",
        "  python, 1: unfaithful",
        "    lab::a, tried 3 times",
    ]


def test_an_empty_list_says_that_no_test_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "none").touch()
    assert shown(tmp_path / "none").stdout == "no test was skipped\n"


@pytest.mark.parametrize(
    "line", ["Python: no tshark: x", '{"kind": "tired"}', json.dumps(LINES[0] | {"kind": "tired"})]
)
def test_a_line_that_is_no_skip_fails_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "wrong").write_text(f"{line}\n")
    done = shown(tmp_path / "wrong")
    assert done.returncode == 1
    assert "line 1 is no skip" in done.stderr


# --- tests that need an idle machine --------------------------------------------------------------


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The waits for an idle machine, each of which is over at once."""
    made: list[bool] = []
    monkeypatch.setattr(idle, "wait", lambda: made.append(True))
    return made


def test_a_test_that_finds_the_machine_busy_is_tried_again_in_a_directory_of_its_own(
    tmp_path: Path, waits: list[bool]
) -> None:
    places = []

    @skipping.judged_when_idle
    def test(tmp_path: Path) -> None:
        places.append(tmp_path.name)
        if len(places) < 3:
            skipping.busy("unfaithful")

    test(tmp_path=tmp_path)
    assert places == ["try-1", "try-2", "try-3"]
    assert len(waits) == 2


def test_a_test_that_finds_the_machine_busy_three_times_is_skipped_as_not_judged(waits: list[bool]) -> None:
    @skipping.judged_when_idle
    def test() -> None:
        skipping.busy("unfaithful: late")

    with pytest.raises(pytest.skip.Exception) as skipped:
        test()
    assert Skip.of(str(skipped.value)) == Skip("busy", "unfaithful: late", None, 3)
    assert len(waits) == 2


def test_a_test_that_fails_is_not_tried_again(waits: list[bool]) -> None:
    @skipping.judged_when_idle
    def test() -> None:
        raise AssertionError

    with pytest.raises(AssertionError):
        test()
    assert waits == []


@pytest.mark.parametrize(("load", "outcome"), [(3.5, pytest.skip.Exception), (2.5, AssertionError)])
def test_a_wrong_time_fails_a_test_but_where_processes_wait_for_processors(
    waits: list[bool], monkeypatch: pytest.MonkeyPatch, load: float, outcome: type[BaseException]
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    @skipping.judged_when_idle
    def test() -> None:
        with skipping.on_an_idle_machine():
            raise AssertionError("late")

    with pytest.raises(outcome, match="late"):
        test()
    assert len(waits) == (2 if load == 3.5 else 0)


def test_the_share_of_the_processors_that_is_used_counts_everything_but_idling() -> None:
    before = "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 1 2"
    after = "cpu  120 10 110 1050 4 3 2 1 0 0\ncpu0 1 2"
    assert idle.share(before, after) == pytest.approx(46 / 100)


def test_only_the_module_of_skips_skips() -> None:
    bare = ("pytest.skip(", "importorskip(", "mark.skip")
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name not in {"skipping.py", "test_skips.py"}]
    assert [path.name for path in files if any(word in path.read_text("utf-8") for word in bare)] == []
