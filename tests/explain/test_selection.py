"""Selection of the runs to explain."""

import pytest

import tailcut
from support import experiments
from tailcut.explain import ExplainError, select_runs
from tailcut.result import Result


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Two loads."""
    directory = tmp_path_factory.mktemp("swept")
    path = experiments.tiny(directory, '[sweep]\n"traffic.load" = [0.2, 1.0]\n')
    return tailcut.run(tailcut.load(path), out=directory / "results")


@pytest.mark.parametrize("spelled", ["1", "1.0", "1e0"])
def test_a_number_is_the_same_however_it_is_spelled(swept: Result, spelled: str) -> None:
    assert select_runs(swept, at={"load": spelled}).point == {"traffic.load": 1.0}


@pytest.mark.parametrize("spelled", ["0.9", "nan", "true", ""])
def test_an_unknown_value_is_refused_with_the_known_ones(swept: Result, spelled: str) -> None:
    with pytest.raises(ExplainError) as refused:
        select_runs(swept, at={"load": spelled})
    assert (refused.value.code, refused.value.hint) == ("TC-X002", "finished runs have: 0.2, 1.0")
