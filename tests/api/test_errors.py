"""Whatever goes wrong is one family of errors."""

import pickle
from pathlib import Path

import pytest

import tailcut
from support import experiments
from tailcut import _core, errors

FAMILY = [getattr(errors, name) for name in errors.__all__]


def wrong_experiment() -> tailcut.ExperimentError:
    with pytest.raises(tailcut.ExperimentError) as caught:
        tailcut.loads(f"laod = 3\n{experiments.TINY}", name="mine")
    return caught.value


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_every_error_is_exported_and_of_the_base_class(kind: type[Exception]) -> None:
    assert issubclass(kind, tailcut.TailcutError)
    assert getattr(tailcut, kind.__name__) is kind


def test_a_wrong_experiment_has_a_code_and_a_hint_and_is_a_value_error() -> None:
    error = wrong_experiment()
    assert isinstance(error, ValueError)
    assert (error.code, error.exit_code) == ("TC-E010", 2)
    assert "expected one of" in error.rendered
    assert str(error) == error.rendered


@pytest.mark.parametrize("call", [tailcut.load, tailcut.run])
def test_a_missing_file_is_an_experiment_error(call: object, tmp_path: Path) -> None:
    assert callable(call)
    with pytest.raises(tailcut.TailcutError) as caught:
        call(tmp_path / "none.toml")
    assert caught.value.code == "TC-E001"


def test_errors_pass_between_processes() -> None:
    for error in (
        wrong_experiment(),
        tailcut.StoreError("TC-S001", "not a directory", "name another"),
        tailcut.RunError("TC-R001", "1 of 2 runs failed", tracebacks={"TCP, seed 1": "line 3"}),
    ):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - written in the line itself
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_the_cores_error_is_found_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(_core.ExperimentError)) is _core.ExperimentError  # noqa: S301 - as above


def test_an_experiment_may_be_given_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    experiments.tiny(tmp_path)
    result = tailcut.run("tiny.toml", on="model")
    assert result.directory == Path("results/tiny")
