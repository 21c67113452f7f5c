"""Runs on a Dask cluster: ``tailcut run FILE --cluster …``. Needs the extra ``tailcut[cluster]``.

The scheduler knows a job by its run's identifier. A worker that dies takes nothing with it but its own jobs, which are
made elsewhere; a run that kills the process it is made in does not kill the worker (see `tailcut.backends.remote`).
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailcut.backends import remote
from tailcut.backends.farm import Attempt, Done, require_same
from tailcut.backends.pool import WORKER_BYTES
from tailcut.backends.remote import Answer, Job
from tailcut.errors import ClusterError
from tailcut.plan import PlannedRun, label
from tailcut.results import machine
from tailcut.units import size

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10.0
RECONNECT_SECONDS = 60.0
WORKERS_SECONDS = 60.0
MEMORY = "MEMORY"
"""The resource by which workers say how many bytes runs may take: ``dask worker --resources MEMORY=16e9``."""


@contextmanager
def connect(where: str) -> "Iterator[Client]":
    """A client of a cluster.

    Args:
        where: ``tcp://HOST:PORT`` or ``tls://HOST:PORT`` of a scheduler, the path of a scheduler file (``.json``), or
            ``local`` or ``local:N`` for a cluster of N workers on this machine, which ends with the block.

    Raises:
        ClusterError: Dask is not installed, or the scheduler cannot be reached.
    """
    try:
        import distributed
    except ImportError:
        raise ClusterError(
            "TC-C001", "running on a cluster needs Dask, which is not installed", "pip install 'tailcut[cluster]'"
        ) from None
    if where == "local" or where.startswith("local:"):
        with _local(where) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        if "://" in where:
            client = distributed.Client(where, timeout=CONNECT_SECONDS)
        elif Path(where).is_file():
            client = distributed.Client(scheduler_file=where, timeout=CONNECT_SECONDS)
        else:
            raise ClusterError(
                "TC-C004",
                f"{where!r} is neither the address of a scheduler nor an existing scheduler file",
                "use --cluster tcp://HOST:PORT, --cluster FILE.json (dask scheduler --scheduler-file FILE.json) or"
                " --cluster local",
            )
    except TypeError as error:  # how Dask says it
        raise ClusterError(
            "TC-C004",
            f"{where} cannot be reached without certificates: {error}",
            "name them in Dask's settings, distributed.comm.tls, for this command as for the scheduler",
        ) from None
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            "TC-C004",
            f"there is no scheduler at {where}: {error}",
            "start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from None
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close()


@contextmanager
def _local(where: str) -> Iterator[Any]:
    import distributed

    count = where.partition(":")[2]
    if count and not (count.isascii() and count.isdecimal() and int(count) > 0):
        raise ClusterError("TC-C004", f"{where!r} names no number of workers", "use --cluster local:4")
    workers = int(count) if count else machine.cores()
    memory = machine.available_memory()
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,  # the runs are in child processes; these only hand them over, and need no guarded `__main__`
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",  # each worker serves some pages, too, by default to everybody
        silence_logs=logging.CRITICAL,
        memory_limit=0,
        resources={MEMORY: memory / workers} if memory else None,
    ) as cluster:
        yield cluster


class DaskFarm:
    """Carries out jobs on the workers of a Dask cluster."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        # With the workers that may carry it out, and the bytes that it is expected to need.
        self._under_way: dict[Any, tuple[Future[Any], frozenset[str], int]] = {}
        self._topic: str | None = None
        self._attempts = 0
        self._by_memory = False
        self._memory: dict[str, float] = {}  # how many bytes the runs of a worker may take, by its address
        self._stuck_since: float | None = None
        self._fit: set[str] = set()  # addresses of workers that can be given jobs
        self._judged: set[str] = set()
        self._refused: list[str] = []

    @property
    def dashboard(self) -> str | None:
        """The address of Dask's page of its workers, if there is one."""
        link: str | None = self._client.dashboard_link
        return link

    def check(self, runs: Sequence[PlannedRun]) -> None:
        """See that there are workers, of this version, large enough for every run."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            raise ClusterError(
                "TC-C005",
                f"the scheduler has had no worker for {WORKERS_SECONDS:g} s",
                "start workers with `dask worker ADDRESS`",
            ) from None
        self._wait_for_scheduler()
        for error in self._judge([*self._client.nthreads()]):
            raise error
        self._check_memory(runs)

    def _judge(self, addresses: list[str]) -> list[ClusterError]:
        """Decides which workers get jobs; returns why others do not."""
        if not addresses:
            return []
        errors = []
        versions = self._client.run(version, "tailcut", workers=addresses, on_error="return")
        made = self._client.run(remote.made_by, workers=addresses, on_error="return")
        for address in addresses:
            found, theirs = versions.get(address), made.get(address)
            if found is None or self.is_worker_loss(found) or self.is_worker_loss(theirs):
                continue  # it has gone again
            try:
                _require_package(address, found, theirs)
                require_same(f"the worker {address}", tuple(theirs))
                if self._by_memory:
                    self._memory[address] = self._declared(address)
                self._fit.add(address)
            except ClusterError as error:
                errors.append(error)
            self._judged.add(address)
        return errors

    def _declared(self, address: str) -> float:
        """Returns the bytes that a worker declares for its runs; a job that needs some goes to no other worker.

        Raises:
            ClusterError: TC-C008: it declares none.
        """
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        found: float | None = workers.get(address, {}).get("resources", {}).get(MEMORY)
        if not found:
            raise ClusterError(
                "TC-C008",
                f"the worker {address} does not declare the memory of its runs, while others do",
                f"start it with --resources {MEMORY}=BYTES",
            )
        return found

    def _check_memory(self, runs: Sequence[PlannedRun]) -> None:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        declared = [worker["resources"].get(MEMORY) for worker in workers.values()]
        self._by_memory = all(declared)
        if self._by_memory:
            self._memory = dict(zip(workers, declared, strict=True))
        limits = declared if self._by_memory else [worker["memory_limit"] or None for worker in workers.values()]
        if not all(limits):
            return  # a worker that states no limit may be large enough
        largest = max(limits)
        too_big = [run for run in runs if _bytes(run) > largest]
        if too_big:
            worst = max(too_big, key=_bytes)
            raise ClusterError(
                "TC-C006",
                f"{len(too_big)} of {len(runs)} runs are too big for any worker: {label(worst)} is expected to take"
                f" {size(_bytes(worst))}, the largest worker has {size(int(largest))}",
                "add a worker with more memory, or make the experiment smaller",
            )

    def workers(self) -> Mapping[str, int]:
        """Returns the number of threads of each present worker that gets jobs, by address."""
        self._wait_for_scheduler()
        try:
            there: dict[str, int] = self._client.nthreads()
            errors = self._judge([address for address in there if address not in self._judged])
            self._refused += [f"{error}; it gets no runs" for error in errors]
        except (OSError, TimeoutError, CancelledError):
            there = {}  # the scheduler has just gone; whether it comes back is seen the next time
        self._judged &= there.keys()
        self._fit &= there.keys()
        self._withdraw()
        self._look_whether_stuck()
        return {_short(address): there[address] for address in sorted(self._fit)}

    def take_refusals(self) -> list[str]:
        """Returns, and clears, the reasons why newly joined workers get no jobs."""
        refused, self._refused = self._refused, []
        return refused

    def _look_whether_stuck(self) -> None:
        """Notes when no worker is left that can do any of the jobs under way.

        Raises:
            ClusterError: TC-C005: none has joined for a minute.
        """
        needed = [bytes_ for _, _, bytes_ in list(self._under_way.values())]
        if not needed or any(self._can_take(address, min(needed)) for address in self._fit):
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = time.monotonic()
            self._refused.append(
                f"no worker is left that can make the runs: waiting up to {WORKERS_SECONDS:g} s for one"
            )
        elif time.monotonic() - self._stuck_since > WORKERS_SECONDS:
            raise ClusterError(
                "TC-C005",
                f"the scheduler has had no worker that can make the runs for {WORKERS_SECONDS:g} s",
                "start workers with `dask worker ADDRESS`, and repeat the command; finished runs are kept",
            )

    def _can_take(self, address: str, bytes_: int) -> bool:
        return not self._by_memory or self._memory.get(address, 0) >= bytes_

    def exclude_worker(self, attempt: Attempt) -> bool:
        """Sends no further jobs to the worker of an attempt, as long as it is the same process."""
        self._fit.discard(str(attempt.where))
        return bool(self._fit)

    def _withdraw(self) -> None:
        """Take back the jobs of workers that have all gone, if there are others.

        Dask gives a job that no worker may carry out to none that comes later, not even with `allow_other_workers`.
        """
        lost = [future for future, allowed, _ in list(self._under_way.values()) if allowed and not allowed & self._fit]
        if lost and self._fit:
            with contextlib.suppress(OSError, TimeoutError):  # the scheduler has just gone, and every job with it
                self._client.cancel(lost, force=True)

    def submit(self, job: Job, done: Done) -> None:
        """Hand over one job."""
        self._wait_for_scheduler()
        self._attempts += 1
        needed = _bytes(job.run)
        allowed = frozenset(address for address in self._fit if self._can_take(address, needed))
        future = self._client.submit(
            carry_out,
            job,
            key=f"tailcut-{job.run['id']}-{self._attempts}",
            pure=False,
            resources={MEMORY: needed} if self._by_memory else None,
            workers=sorted(allowed) or None,
        )
        self._under_way[future.key] = future, allowed, needed

        def ended(future: "Future[Any]") -> None:
            attempt = Attempt(job)
            try:
                attempt.answer, attempt.where = future.result()
            except BaseException as error:  # noqa: BLE001 - the head decides what it means
                attempt.error = error
            self._under_way.pop(future.key, None)
            done(attempt)

        future.add_done_callback(ended)

    def is_worker_loss(self, error: object) -> bool:
        """Whether an error means that a worker, or the connection to it, was lost."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        return isinstance(error, (KilledWorker, CommClosedError, CancelledError, OSError, TimeoutError))

    tells = True
    can_call_workers = True

    def listen(self, topic: str, heard: Callable[[str, dict[str, Any]], None]) -> None:
        """Subscribes to the messages of workers under a topic."""
        self._topic = topic

        def handle(event: tuple[float, dict[str, Any]]) -> None:
            _, message = event
            heard(message["run"], message["told"])

        self._client.subscribe_topic(topic, handle)

    def kept(self, attempt: Attempt) -> dict[str, int]:
        """The files that a worker keeps."""
        listing: dict[str, int] = self._on(attempt, remote.listing, _kept(attempt))
        return listing

    def read_chunk(self, attempt: Attempt, name: str, offset: int, size: int) -> bytes:
        """Some bytes of one of them."""
        content: bytes = self._on(attempt, remote.piece, _kept(attempt), name, offset, size)
        return content

    def forget(self, attempt: Attempt) -> None:
        """Forgets results that have been taken."""
        with contextlib.suppress(Exception):  # a worker that is gone keeps nothing
            self._on(attempt, remote.forget, _kept(attempt))

    def write_chunk(self, attempt: Attempt, digest: str, token: str, offset: int, content: bytes) -> None:
        """Put some bytes of a file where the worker needs it."""
        self._on(attempt, remote.supply, _kept(attempt), digest, token, offset, content)

    def cancel(self) -> None:
        """Carry out nothing more."""
        with contextlib.suppress(Exception):  # without a scheduler nothing is carried out
            if self._topic is not None:
                self._client.unsubscribe_topic(self._topic)
            self._client.cancel([future for future, _, _ in self._under_way.values()], force=True)

    def _on(self, attempt: Attempt, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on the worker that carried out a job."""
        self._wait_for_scheduler()
        where = str(attempt.where)
        return self._client.run(function, *arguments, workers=[where])[where]

    def _wait_for_scheduler(self) -> None:
        """Wait while the client is looking for a scheduler that has gone.

        Raises:
            ClusterError: it has not come back.
        """
        until = time.monotonic() + RECONNECT_SECONDS
        while self._client.status != "running":
            if self._client.status == "closed" or time.monotonic() > until:
                raise _gone()
            time.sleep(0.1)


def carry_out(job: Job) -> tuple[Answer, str]:
    """Carry out a job on a worker; the answer, and which worker it was."""
    from distributed import get_worker

    worker = get_worker()

    def tell(message: dict[str, Any]) -> None:
        worker.log_event(job.topic, {"run": job.run["id"], "told": message})

    tell({"worker": _short(worker.address)})
    return remote.carry_out(job, tell, worker.local_directory), worker.address


def _gone() -> ClusterError:
    return ClusterError(
        "TC-C007",
        "the scheduler is gone",
        "finished runs are kept; start a scheduler and workers, and repeat the command",
    )


def _require_package(address: str, *found: object) -> None:
    for one in found:
        if isinstance(one, BaseException):
            raise ClusterError(
                "TC-C002",
                f"the worker {address} has no Tailcut: {one}",
                "install the same version of Tailcut on every worker",
            )


def _short(address: str) -> str:
    return address.rpartition("://")[2]


def _bytes(run: PlannedRun) -> int:
    return WORKER_BYTES + run["facts"]["estimated_memory_bytes"]


def _kept(attempt: Attempt) -> str:
    assert attempt.answer is not None  # noqa: S101 - asked only where something is kept
    assert attempt.answer.kept is not None  # noqa: S101
    return attempt.answer.kept
