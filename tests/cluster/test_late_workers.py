"""Workers that come while a sweep is under way, by what they say of their memory; no scheduler is asked."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import pytest

from support import made_up
from tailcut import ClusterError

if TYPE_CHECKING:
    from tailcut.cluster import DaskFarm


class Client:
    """Stands for Dask's: workers with this installation, and how much memory each declares."""

    status = "running"

    def __init__(self, **declared: float) -> None:
        self.declared = declared

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.declared, 1)

    def wait_for_workers(self, number: int, timeout: float) -> None:
        assert len(self.declared) >= number
        assert timeout > 0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        from tailcut.cluster import MEMORY

        assert n_workers == -1
        resources = {name: {MEMORY: bytes_} if bytes_ else {} for name, bytes_ in self.declared.items()}
        return {"workers": {name: {"resources": one, "memory_limit": 0} for name, one in resources.items()}}

    def run(self, call: Callable[..., Any], *given: Any, workers: Sequence[str], on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        return {worker: call(*given) for worker in workers}


def farm(client: Client) -> "DaskFarm":
    from tailcut.cluster import DaskFarm

    found = DaskFarm(cast("Any", client))
    found.check(made_up.plan()["runs"])
    return found


def test_a_worker_that_declares_no_memory_while_others_do_gets_no_runs_and_is_named() -> None:
    client = Client(first=4e9)
    found = farm(client)
    client.declared["mute"] = 0
    assert found.workers() == {"first": 1}
    (why,) = found.take_refusals()
    assert "the worker mute does not declare the memory of its runs" in why
    assert "it gets no runs" in why


def test_a_late_worker_that_declares_its_memory_gets_runs() -> None:
    client = Client(first=4e9)
    found = farm(client)
    client.declared["second"] = 8e9
    assert found.workers() == {"first": 1, "second": 1}
    assert found.take_refusals() == []


def test_if_no_worker_declares_its_memory_a_late_one_gets_runs() -> None:
    client = Client(first=0)
    found = farm(client)
    client.declared["second"] = 0
    assert found.workers() == {"first": 1, "second": 1}


def test_runs_larger_than_every_declared_memory_are_refused_before_the_sweep() -> None:
    with pytest.raises(ClusterError) as refused:
        farm(Client(first=1.0))
    assert refused.value.code == "TC-C006"
