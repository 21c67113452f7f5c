"""Kills a process of the command that runs the lab at a random moment, and checks what is left."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support import waiting
from support.kernels import MARK, has_ended, network, processes, state_of, wait_until_none
from tailcut.errors import StoreError
from tailcut.results import State, Store

BEGINS = b"packet-hops to simulate"
"""The command's output before it starts the lab."""
LAPSE = 1.15
"""The range of moments in multiples of a run's length: the last of them come after its end."""
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - nothing is written there
VICTIMS = ("command", "asking", "outside", "supervisor", "host", "fabric", "node", "tool")
"""The processes of a run, from the outside in."""


@dataclass
class Lab:
    """The processes of a run, as far as they exist.

    Attributes:
        asking: the process that has entered the lab's namespaces; its child is PID 1 there.
        supervisor: that child.
        outside: the other child, which stays outside the namespaces and sets priorities.
        fabric: the process in the supervisor's network, where hosts are, too, until they have their own.
        hosts: the processes in networks of their own.
        nodes: the processes of `repnet-bench`.
        tools: the processes that set interfaces, queues and marks.
    """

    asking: int = 0
    supervisor: int = 0
    outside: int = 0
    fabric: int = 0
    hosts: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    tools: list[int] = field(default_factory=list)

    def of(self, victim: str) -> list[int]:
        """Returns the processes of a kind."""
        alone = {"asking": self.asking, "supervisor": self.supervisor, "fabric": self.fabric, "outside": self.outside}
        many = {"host": self.hosts, "node": self.nodes, "tool": self.tools}
        return [pid for pid in [alone.get(victim, 0), *many.get(victim, [])] if pid]


def found(token: str, caller: int) -> Lab:
    """Returns the processes of the run that ``caller`` has started; those that end meanwhile are left out."""
    parent, program, networks = {}, {}, {}
    for pid in processes(token):
        try:
            about = Path(f"/proc/{pid}")
            parent[pid] = int((about / "stat").read_text().rpartition(")")[2].split()[1])
            program[pid] = (about / "exe").readlink().name
            networks[pid] = (about / "ns/net").readlink()
        except OSError:
            parent.pop(pid, None)
    own = Path(sys.executable).resolve().name
    lab = Lab()
    lab.asking = next((pid for pid, of in parent.items() if of == caller and program[pid] == own), 0)
    here = Path("/proc/self/ns/net").readlink()  # the main thread's, in which tests run
    for pid in [pid for pid, of in parent.items() if of == lab.asking != 0]:
        if networks[pid] == here:
            lab.outside = pid
        else:
            lab.supervisor = pid
    for pid in sorted(parent.keys() - {caller, lab.asking, lab.supervisor, lab.outside}):
        if parent[pid] == lab.supervisor and program[pid] == own:
            if networks[pid] == networks.get(lab.supervisor):
                lab.fabric = pid
            else:
                lab.hosts.append(pid)
        else:
            (lab.nodes if program[pid].startswith("node") else lab.tools).append(pid)
    return lab


@dataclass
class Command:
    """`tailcut run FILE --on lab` with its store, in directories of its own.

    Attributes:
        experiment: the file.
        options: further options of the command.
        directory: the directory to write to.
        length: seconds from the beginning of the set-up to the end of the command, when nothing is killed.
    """

    experiment: Path
    directory: Path
    options: Sequence[str] = ()
    length: float = 0.0

    def measure(self) -> None:
        """Measures the length twice, the second time with warm caches."""
        lengths: list[float] = []
        while len(lengths) < 2:
            with self._running(f"whole-{len(lengths)}") as process:
                began = time.monotonic()
                self._wait_for(process, f"whole-{len(lengths)}")
                lengths.append(time.monotonic() - began)
                assert process.stderr is not None
                assert process.wait() == 0, process.stderr.read().decode()
        self.length = min(lengths)

    def store(self, name: str) -> Path:
        return self.directory / name / "results"

    @contextmanager
    def _running(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        place = self.directory / name
        for own in ("home", "tmp"):
            (place / own).mkdir(parents=True)
        # A run that is not faithful counts as done, too.
        options = ["--with-unfaithful", *self.options]
        arguments = ["run", str(self.experiment), "--on", "lab", "--out", str(self.store(name)), *options]
        own_places = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            [sys.executable, "-c", "from tailcut.cli import main; main()", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **own_places, MARK: str(place)},
            cwd=self.experiment.parent,
            # Its files have a group that no others have, wherever they are.
            group=self.group,
        ) as process:
            try:
                assert process.stderr is not None
                said = b""
                while BEGINS not in said:
                    line = process.stderr.readline()
                    assert line, f"the command ended before it had begun: {said.decode()}"
                    said = line
                yield process
            finally:
                process.kill()

    @property
    def group(self) -> int | None:
        return 1_000_000 + os.getpid() if os.geteuid() == 0 else None

    def killed(self, moment: int, of: int) -> list[str]:
        """Kills a process at one moment of ``of``, which divide the length; returns everything that is wrong then."""
        drawn = random.Random(f"{os.environ['TAILCUT_TEST_SEED']} {self.options} {moment} of {of}")  # noqa: S311 - moments
        name = f"moment-{moment}-of-{of}"
        before = self.around()
        with self._running(name) as command:
            after = (moment + drawn.random()) / of * LAPSE * self.length
            # The moment comes, or the end of the run.
            has_ended(command.pid, after)
            kind, victim = self._victim(VICTIMS[moment % len(VICTIMS)], name, command.pid, drawn)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                kind += ", which had ended"
            # If the victim is not the command itself, the command notices and ends with an error.
            self._wait_for(command, name)
        wait_until_none(str(self.directory / name))
        now = self.around()
        wrong = [
            f"{what} is not as before: {before[what]} / {now[what]}" for what in before if now[what] != before[what]
        ]
        wrong += self._left_in_store(name, whole=command.returncode == 0)
        wrong += [f"{path} is left" for own in ("home", "tmp") for path in (self.directory / name / own).iterdir()]
        return [f"{kind}, killed after {after:.3f} s of {self.length:.3f} s: {one}" for one in wrong]

    def _wait_for(self, command: subprocess.Popen[bytes], name: str) -> None:
        """Waits for the command to end."""
        token = str(self.directory / name)
        waiting.until(lambda: has_ended(command.pid), lambda: [state_of(pid) for pid in sorted(processes(token))])

    def _victim(self, wanted: str, name: str, command: int, drawn: random.Random) -> tuple[str, int]:
        """Returns a process of the wanted kind, or of the next kind around it that exists."""
        lab = found(str(self.directory / name), command)
        for kind in reversed(VICTIMS[1 : VICTIMS.index(wanted) + 1]):
            if there := lab.of(kind):
                return kind, drawn.choice(there)
        return "command", command

    def around(self) -> Mapping[str, object]:
        """Returns the state of the machine that a run must not change."""
        mine = [str(path) for place in SHARED if place.is_dir() for path in place.iterdir() if self._is_mine(path)]
        return {**network(), "files": mine, "experiment": sorted(self.experiment.parent.iterdir())}

    def _is_mine(self, path: Path) -> bool:
        try:
            return path.lstat().st_gid == self.group
        except OSError:
            return False

    def _left_in_store(self, name: str, *, whole: bool) -> list[str]:
        """Checks that each run is complete or absent, and that the next command removes drafts."""
        if not self.store(name).exists():
            return []
        try:
            store = Store.open(self.store(name))
            store.plan()
        except StoreError as error:
            # It had not begun: the plan is written first.
            return [str(error)] if list(self.store(name).glob("[!.]*")) else []
        wrong = [f"{run} is {store.verify(run)}" for run in store.runs() if store.verify(run) is not State.COMPLETE]
        if whole and not store.runs():
            wrong.append("the command ended well, and there is no run")
        store.clear_leftovers()
        return wrong + [f"{path} is left" for path in (self.store(name) / "runs").glob(".*")]
