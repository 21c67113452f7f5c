"""The default directory of results; no directory ends up with the results of two experiments."""

import json
from pathlib import Path

import pytest

import tailcut
from support import experiments, made_up
from tailcut import StoreError
from tailcut.plan import Plan
from tailcut.results import Store
from tailcut.results.location import default_directory

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "directory"),
    [
        ("mine.toml", "results/mine"),
        ("./mine.toml", "results/mine"),
        ("experiments/quickstart.toml", "results/quickstart"),
        ("experiments/papers/rps/fig7b.toml", "results/papers/rps/fig7b"),
        ("thesis/chapter.2/fig1.toml", "results/thesis/chapter.2/fig1"),
        ("thesis/experiments/fig1.toml", "results/thesis/experiments/fig1"),
        ("experiments.toml", "results/experiments"),
        ("without-suffix", "results/without-suffix"),
        ("../elsewhere/mine.toml", "results/mine"),
        ("/absent/elsewhere/mine.toml", "results/mine"),
    ],
)
def test_results_follow_the_path_of_the_file(here: Path, file: str, directory: str) -> None:
    assert default_directory(Path(file)) == Path(directory)


def test_every_spelling_of_a_path_gives_the_same_directory(here: Path) -> None:
    (here / "real").mkdir()
    (here / "linked").symlink_to(here / "real")
    for name in ("real/mine.toml", "./real/../real/mine.toml", here / "real/mine.toml"):
        assert default_directory(Path(name)) == Path("results/real/mine")


def test_a_working_directory_that_is_reached_through_a_link_is_the_same(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "real").mkdir()
    (here / "linked").symlink_to(here / "real")
    monkeypatch.chdir(here / "linked")
    assert default_directory(here / "linked/mine.toml") == Path("results/mine")


def test_no_two_experiments_that_come_with_tailcut_share_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shipped = [path.relative_to(ROOT) for path in experiments.shipped()]
    places = [default_directory(file) for file in shipped]
    assert len(set(places)) == len(shipped) > 40
    assert [(one, other) for one in places for other in places if one in other.parents] == []


# --- whose a directory is -------------------------------------------------------------------------


def planned(title: str = "RepFlow against TCP", **changes: object) -> Plan:
    plan = made_up.plan(sweep=[], seeds=[1])
    return plan | {"title": title} | changes  # type: ignore[return-value]


def file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def refusal(directory: Path, plan: Plan, asking: Path | None) -> StoreError:
    before = (directory / "plan.json").read_bytes()
    with pytest.raises(StoreError, match="another experiment") as caught:
        Store.create(directory, plan, asking)
    assert (directory / "plan.json").read_bytes() == before
    return caught.value


def test_a_directory_of_another_experiment_is_refused_with_the_remedy(here: Path) -> None:
    held = planned(source_file="experiments/papers/rps/fig7b.toml")
    Store.create(here / "results", held, file(here / "a/fig7b.toml"))
    error = refusal(here / "results", planned(), file(here / "b/fig7b.toml"))
    assert error.code == "TC-S005"
    assert "experiments/papers/rps/fig7b.toml" in str(error)
    assert "--out" in str(error.hint)


def test_an_experiment_that_was_edited_goes_on_in_its_directory(here: Path) -> None:
    mine = file(here / "mine.toml")
    Store.create(here / "results", planned(), mine)
    assert Store.create(here / "results", planned("Another title"), mine).plan()["title"] == "Another title"


def test_another_spelling_of_a_path_is_the_same_experiment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = file(here / "folder/mine.toml")
    Store.create(here / "results", planned(), mine)
    Store.create(Path("results"), planned("2"), Path("folder/../folder/mine.toml"))
    monkeypatch.chdir(here / "folder")
    Store.create(Path("../results"), planned("3"), Path("mine.toml"))


def test_file_and_results_may_move_together(here: Path) -> None:
    Store.create(here / "study/results/mine", planned(), file(here / "study/mine.toml"))
    (here / "study").rename(here / "thesis")
    file(here / "study/mine.toml")  # a new one where the old one was
    Store.create(here / "thesis/results/mine", planned("Another title"), here / "thesis/mine.toml")


def test_a_renamed_experiment_goes_on_in_its_directory_and_a_copy_does_not(here: Path) -> None:
    mine = file(here / "mine.toml")
    Store.create(here / "results", planned(), mine)
    refusal(here / "results", planned(), file(here / "copy.toml"))
    renamed = mine.rename(here / "renamed.toml")
    refusal(here / "results", planned("Another title"), renamed)
    Store.create(here / "results", planned(), renamed)


@pytest.mark.parametrize("written", ["fig7b.toml", "./fig7b.toml", "rps/fig7b.toml", "../papers/rps/fig7b.toml"])
def test_a_directory_of_an_older_version_is_matched_by_the_path_as_typed(here: Path, written: str) -> None:
    (here / "results").mkdir()
    (here / "results/plan.json").write_text(json.dumps(planned(source_file=written)))
    refusal(here / "results", planned(), file(here / "papers/repflow/fig8.toml"))
    Store.create(here / "results", planned(), file(here / "papers/rps/fig7b.toml"))


def test_a_directory_with_a_damaged_plan_can_be_reused(here: Path) -> None:
    Store.create(here / "results", planned(), file(here / "mine.toml"))
    (here / "results/plan.json").write_text("{")
    Store.create(here / "results", planned(), file(here / "other.toml"))


def test_the_stored_plan_reads_back_the_same(here: Path) -> None:
    assert Store.create(here / "results", planned(), file(here / "mine.toml")).plan() == planned()


def test_two_files_of_one_name_do_not_share_results(here: Path) -> None:
    for folder in ("one", "two"):
        (here / folder).mkdir()
        experiments.tiny(here / folder)
    first, second = (tailcut.run(tailcut.load(f"{folder}/tiny.toml", seeds=1)) for folder in ("one", "two"))
    assert (first.directory, second.directory) == (Path("results/one/tiny"), Path("results/two/tiny"))
