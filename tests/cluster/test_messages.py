"""Failures on a cluster: each gives one clear message, and the other runs are made."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from support.clusters import blind, local, tables
from tailcut.api import Silent
from tailcut.backends import farm
from tailcut.cluster import connect
from tailcut.errors import ClusterError, RunError

Cluster = Any  # of conftest.py

MORE_LOADS = """
[sweep]
"traffic.load" = [0.1, 0.2, 0.3, 0.4]
"""
OTHER_VERSION = "import tailcut; tailcut.__version__ = '9.9'"
NO_PACKAGE = """
import sys
from importlib import metadata

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tailcut":
            raise ModuleNotFoundError("No module named 'tailcut'", name="tailcut")

sys.meta_path.insert(0, Nothing())
found = metadata.version

def version(name):
    if name == "tailcut":
        raise metadata.PackageNotFoundError(name)
    return found(name)

metadata.version = version
"""


@dataclass
class Notes(Silent):
    """Writes down what it is told, and does something once the first run is there."""

    first: Any = None
    said: list[str] = field(default_factory=list)

    def finished(self, run_id: str) -> None:
        if self.first is not None:
            self.first()
            self.first = None

    def note(self, message: str) -> None:
        self.said.append(message)

    def about(self, words: str) -> list[str]:
        return [one for one in self.said if words in one]


def preload(directory: Path, code: str) -> tuple[str, str]:
    """Options of a worker that runs this first."""
    file = directory / "preload.py"
    file.write_text(code)
    return "--preload", str(file)


def run(cluster: Cluster, experiment: tailcut.Experiment, directory: Path, **options: Any) -> dict[str, str]:
    with connect(str(cluster.file)) as client:
        tailcut.run(experiment, out=directory, executor=client, **options)
    return tables(directory)


@pytest.mark.parametrize(
    ("code", "said"),
    [(OTHER_VERSION, r"has Tailcut 9\.9 .* this command is of Tailcut 0\."), (NO_PACKAGE, "has no Tailcut")],
    ids=["another version", "no package"],
)
def test_a_worker_that_could_give_other_results_is_refused_before_any_run(
    cluster: Cluster, tmp_path: Path, code: str, said: str
) -> None:
    cluster.start_worker(*preload(tmp_path, code))
    with pytest.raises(ClusterError, match=said) as refused:
        run(cluster, tailcut.load(experiments.tiny(tmp_path)), tmp_path / "far")
    assert refused.value.code == "TC-C002"
    assert tables(tmp_path / "far") == {}


@pytest.mark.parametrize("code", [OTHER_VERSION, NO_PACKAGE], ids=["another version", "no package"])
def test_a_late_worker_that_could_give_other_results_gets_no_runs(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(farm, "WATCH_SECONDS", 0)  # otherwise the runs may end before the head looks
    experiment = tailcut.load(experiments.tiny(tmp_path, MORE_LOADS), seeds=1)
    cluster.start_worker()

    with connect(str(cluster.file)) as client:

        def another_comes() -> None:
            cluster.start_worker(*preload(tmp_path, code))
            client.wait_for_workers(2)

        notes = Notes(another_comes)
        tailcut.run(experiment, out=tmp_path / "far", executor=client, progress=notes)
    assert tables(tmp_path / "far") == local(experiment, tmp_path / "near")
    (said,) = notes.about("it gets no runs")
    assert "has Tailcut 9.9" in said or "has no Tailcut" in said


def test_a_run_that_fails_is_one_failed_run_and_the_others_are_made(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    experiment.plan["runs"][0]["seed"] = 99  # it is no longer the run that its identifier says
    cluster.start_worker()
    with pytest.raises(RunError, match="1 of 4 runs failed") as failed:
        run(cluster, experiment, tmp_path / "far")
    assert failed.value.code == "TC-R001"
    assert len({Path(name).parent for name in tables(tmp_path / "far")}) == 3


KILLS_ITSELF = """
import os, sys
if sys.argv[:1] == ["-m"]:  # a process that makes runs
    import signal
    import tailcut.backends.sim as sim
    make = sim.make

    def killed(run, *rest, **how):
        if run["seed"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        make(run, *rest, **how)

    sim.make = killed
"""


def test_a_run_that_kills_its_process_is_one_failed_run_and_its_worker_lives_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The kernel kills processes like this when memory is short."""
    (tmp_path / "sitecustomize.py").write_text(KILLS_ITSELF)
    cluster.start_worker(*preload(tmp_path, f"import os; os.environ['PYTHONPATH'] = {str(tmp_path)!r}"))
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with pytest.raises(RunError, match=r"2 of 4 runs failed:(\n.*seed 2: .*signal SIGKILL \(out of memory\?.*){2}"):
        run(cluster, experiment, tmp_path / "far")
    assert len({Path(name).parent for name in tables(tmp_path / "far")}) == 2
    assert cluster.workers[0].poll() is None


LIMIT_IS_OVER = """
import os, queue, threading
os.environ["PYTHONPATH"] = {directory!r}

class Said(queue.SimpleQueue):
    def __init__(self):
        threading.Thread(target=self.until_it_hangs, daemon=True).start()

    def until_it_hangs(self):
        open({hangs!r}).close()
        self.put(None)

    def get(self, block=True, timeout=None):
        assert 0 < timeout <= 3600
        found = super().get()
        if found is None:
            raise queue.Empty
        return found

import tailcut.backends.remote as remote
remote.queue = type("Moved", (), dict(SimpleQueue=Said, Empty=queue.Empty))
remote._HERE = remote._Here()
"""
"""Lets the limit of a run be over in this worker once the run opens a pipe and hangs."""


def test_a_run_that_hangs_ends_at_the_limit_and_the_others_are_made(cluster: Cluster, tmp_path: Path) -> None:
    hung = tmp_path / "hung"
    os.mkfifo(hung)
    hangs = KILLS_ITSELF.replace(
        "os.kill(os.getpid(), signal.SIGKILL)", f"open({str(hung)!r}, 'w').close(); signal.pause()"
    )
    hangs = hangs.replace('run["seed"] == 2', 'run["seed"] == 2 and run["scheme"] == "TCP"')
    (tmp_path / "sitecustomize.py").write_text(hangs)
    cluster.start_worker(*preload(tmp_path, LIMIT_IS_OVER.format(directory=str(tmp_path), hangs=str(hung))))
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with pytest.raises(RunError, match=r"1 of 4 runs failed:\n.*TCP, seed 2: it took longer than the limit of 3600 s"):
        run(cluster, experiment, tmp_path / "far", limit_seconds=3600)
    assert len({Path(name).parent for name in tables(tmp_path / "far")}) == 3


def test_a_worker_whose_disk_is_full_costs_no_run(cluster: Cluster, tmp_path: Path) -> None:
    """A worker that sees neither the store nor has a page of room in its scratch directory, beside one that has."""
    far = tmp_path / "far"
    hidden = blind(far)
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=4k none {small} && "
    cluster.start_worker("--local-directory", str(small), before=[*hidden[:-2], mount + hidden[-2], hidden[-1]])
    cluster.start_worker(before=hidden)
    experiment = tailcut.load(experiments.tiny(tmp_path, MORE_LOADS), seeds=1)
    with connect(str(cluster.file)) as client:
        client.wait_for_workers(2)
        notes = Notes()
        tailcut.run(experiment, out=far, executor=client, progress=notes)
    assert tables(far) == local(experiment, tmp_path / "near")
    (said,) = set(notes.about("its disk is full"))
    assert "its runs are made elsewhere" in said


FULL_HEAD = """
import sys
from pathlib import Path
import tailcut
from tailcut.cluster import connect
file, directory, scheduler = sys.argv[1:]
try:
    with connect(scheduler) as client:
        tailcut.run(tailcut.load(file), out=directory, executor=client)
except tailcut.RunError as error:
    kept = len(list(Path(directory).glob("runs/*/run.json")))
    hidden = list(Path(directory).glob("runs/.*"))
    print(error.code, kept > 0, len(hidden))
    sys.exit(str(error))
"""


def test_a_full_disk_on_the_head_ends_the_sweep_with_one_message_and_what_is_there_stays(
    cluster: Cluster, tmp_path: Path
) -> None:
    far = tmp_path / "far"
    hidden = blind(far)
    cluster.start_worker(before=hidden)
    path = experiments.tiny(tmp_path, MORE_LOADS)
    mount = [*hidden[:-2], hidden[-2].replace("-t tmpfs none", "-t tmpfs -o size=400k none"), hidden[-1]]
    head = subprocess.run(
        [*mount, sys.executable, "-c", FULL_HEAD, str(path), str(far), str(cluster.file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert head.stdout == "TC-R002 True 0\n", head.stderr
    assert head.stderr.count("there is no room for more runs") == 1


@pytest.mark.parametrize("where", ["tcp://127.0.0.1:9", "nowhere.json", "local:none"])
def test_an_unreachable_cluster_is_one_clear_error(where: str) -> None:
    with pytest.raises(ClusterError) as refused, connect(where):
        pass
    assert refused.value.code == "TC-C004"


WITHOUT_DASK = """
import sys
sys.modules["distributed"] = None  # as if the extra were not installed
from tailcut.cli import main
sys.argv = ["tailcut", "run", sys.argv[1], *sys.argv[2:]]
main()
"""


def test_without_the_extra_runs_are_made_here_and_a_cluster_is_refused_with_what_to_install(tmp_path: Path) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_DASK, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    experiments.tiny(tmp_path)
    assert command("tiny.toml", "-q").returncode == 0
    refused = command("tiny.toml", "--cluster", "local")
    assert refused.returncode == 1
    assert "TC-C001" in refused.stderr
    assert "pip install 'tailcut[cluster]'" in refused.stderr


def test_a_scheduler_without_workers_is_one_clear_error(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailcut.cluster.WORKERS_SECONDS", 0.2)
    with pytest.raises(ClusterError, match=r"no worker for 0\.2 s") as refused:
        run(cluster, tailcut.load(experiments.tiny(tmp_path)), tmp_path / "far")
    assert refused.value.code == "TC-C005"
