"""Experiments that are not in files, and results that tell what they are."""

import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailcut
from support import experiments
from tailcut.document import as_toml

SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(
    st.characters(exclude_categories=["Cs"])
)  # fmt: skip
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.é "), inner))


@given(st.dictionaries(st.text("xyz. \"'\n"), VALUES, max_size=4))
def test_a_dictionary_is_written_as_the_toml_that_reads_as_it(document: dict[str, Any]) -> None:
    assert tomllib.loads(as_toml(document)) == document


@pytest.mark.parametrize("value", [None, float("nan"), object(), {"deep": [1, None]}])
def test_a_value_that_toml_cannot_express_is_refused_by_its_key(value: object) -> None:
    with pytest.raises(TypeError, match=r"^traffic\.load"):
        as_toml({"traffic": {"load": value}})


def test_a_text_a_dictionary_and_a_file_make_the_same_runs(tmp_path: Path) -> None:
    of_file = tailcut.load(experiments.tiny(tmp_path))
    of_text = tailcut.loads(experiments.TINY)
    of_dictionary = tailcut.loads(tomllib.loads(experiments.TINY))
    assert of_file.plan["runs"] == of_text.plan["runs"] == of_dictionary.plan["runs"]


def test_an_experiment_without_a_file_is_named_by_its_title_or_by_an_argument() -> None:
    assert tailcut.loads(experiments.TINY).name == "repflow-against-tcp-over-four-paths"
    experiment = tailcut.loads(experiments.TINY, name="fig.2", seeds=3, set={"traffic.load": "0.4"})
    assert (experiment.path, experiment.name, experiment.directory) == (None, "fig.2", Path("results/fig.2"))
    assert {run["config"]["traffic"]["load"] for run in experiment.plan["runs"]} == {0.4}
    assert len(experiment.plan["seeds"]) == 3


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("traffic.load", 0.5, "0.5"),
        ("traffic.load", np.float64(0.5), "0.5"),
        ('sweep."traffic.load"', [0.2, 0.5], "[0.2, 0.5]"),
        ('sweep."traffic.load"', np.array([0.2, 0.5]), "[0.2, 0.5]"),
        ("topology.k", np.int64(6), "6"),
        ("topology.rate", "10Gbps", '"10Gbps"'),
        ("measure.segments", True, "true"),
        ("traffic.sizes", {"kind": "uniform", "min": "1KB", "max": "2KB"}, '{ kind="uniform", min="1KB", max="2KB" }'),
        ("schemes.TCP.replicate", {"kind": "repsyn"}, '{ kind = "repsyn" }'),
        ("traffic.sizes", Path("one.cdf"), '"one.cdf"'),
        ("seeds", (3, 5), "[3, 5]"),
    ],
)
def test_overrides_are_python_values_or_the_text_that_the_command_line_takes(
    key: str, value: object, text: str, tmp_path: Path
) -> None:
    (tmp_path / "one.cdf").write_text("20000 0\n40000 1\n")
    plans = [
        tailcut.loads(experiments.TINY, directory=tmp_path, set={key: given}).plan["runs"] for given in (value, text)
    ]
    assert plans[0] == plans[1] != tailcut.loads(experiments.TINY).plan["runs"]


@pytest.mark.parametrize("value", [None, object(), [1, None], float("nan")])
def test_an_override_that_toml_cannot_express_is_refused_by_its_key(value: object) -> None:
    with pytest.raises(TypeError, match=r"^traffic\.load"):
        tailcut.loads(experiments.TINY, set={"traffic.load": value})


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc"])
def test_a_name_that_is_no_directory_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a directory"):
        tailcut.loads(experiments.TINY, name=name)


def test_a_mistake_in_a_text_has_its_place() -> None:
    with pytest.raises(tailcut.ExperimentError) as caught:
        tailcut.loads(f"laod = 3\n{experiments.TINY}", name="mine")
    assert (caught.value.file, caught.value.line, caught.value.key) == ("mine", 1, "laod")


def test_files_named_in_a_text_are_found_below_the_given_directory(tmp_path: Path) -> None:
    (tmp_path / "sizes.cdf").write_text("20000 0\n40000 1\n")
    experiment = tailcut.loads(experiments.TINY, directory=tmp_path, set={"traffic.sizes": '"./sizes.cdf"'})
    assert {Path(file["resolved"]) for run in experiment.plan["runs"] for file in run["files"]} == {
        tmp_path / "sizes.cdf"
    }


def test_experiments_without_files_have_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = tailcut.run(tailcut.loads(experiments.TINY, seeds=1))
    assert first.directory == Path("results/repflow-against-tcp-over-four-paths")
    tailcut.run(tailcut.loads(experiments.TINY, seeds=2))
    with pytest.raises(tailcut.StoreError, match="another experiment"):
        tailcut.run(tailcut.loads(experiments.TINY, name="other"), out=first.directory)
    with pytest.raises(tailcut.StoreError, match="another experiment"):
        tailcut.run(tailcut.load(experiments.tiny(tmp_path)), out=first.directory)


def test_a_result_shows_its_directory_and_its_number_of_runs(tmp_path: Path) -> None:
    result = tailcut.run(tailcut.loads(experiments.TINY), out=tmp_path / "results")
    assert repr(result) == f"<Result '{tmp_path}/results': 4 of 4 runs of 'RepFlow against TCP over four paths'>"


def test_flows_can_be_read_lazily(tmp_path: Path) -> None:
    result = tailcut.run(tailcut.loads(experiments.TINY), out=tmp_path / "results")
    lazy = result.scan_flows()
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(result.flows)
    assert lazy.filter(pl.col("seed") == 2).select("fct_ns").collect().height == result.flows.filter(seed=2).height


def test_flows_of_no_runs_can_be_read_lazily(tmp_path: Path) -> None:
    result = tailcut.run(tailcut.loads(experiments.TINY), on="model", out=tmp_path / "results")
    assert result.scan_flows().collect().equals(result.flows)


def test_a_file_in_a_folder_whose_name_is_no_text_is_refused_and_an_experiment_is_not(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    path = experiments.tiny(folder)
    (folder / "sizes.cdf").write_text("20000 0\n40000 1\n")
    assert len(tailcut.load(path).plan["runs"]) == 4
    with pytest.raises(tailcut.ExperimentError, match="not UTF-8: rename the directory"):
        tailcut.load(path, set={"traffic.sizes": "./sizes.cdf"})
