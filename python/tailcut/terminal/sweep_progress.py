"""Progress, speed and remaining time of a sweep: numbers only, no output."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class RunProgress:
    """Progress of one run under way.

    Attributes:
        label: the run as a person refers to it.
        expected_hops: packet-hops the plan expects of it.
        horizon_ps: the latest end of its simulated time.
        began: when it started, in seconds of the clock.
        now_ps: its simulated time.
        hops: packet-hops so far.
    """

    label: str
    expected_hops: int
    horizon_ps: int
    began: float
    now_ps: int = 0
    hops: int = 0

    @property
    def fraction(self) -> float:
        """Share of the expected work that is done; below 1 while it runs, whatever was expected."""
        return min(0.99, self.hops / max(1, self.expected_hops))

    def rate(self, now: float) -> float:
        """Packet-hops per second of wall time."""
        return self.hops / max(1e-9, now - self.began)

    def seconds_left(self, now: float) -> float | None:
        """Wall time to the end at this run's own rate; None until there is a rate, and once it overruns the plan."""
        if self.hops == 0 or self.hops >= self.expected_hops:
            return None
        return (self.expected_hops - self.hops) / self.rate(now)


@dataclass
class SweepProgress:
    """Progress of a sweep under way, by the given clock (seconds, monotonic)."""

    clock: Callable[[], float]
    total: int = 0
    done: int = 0
    expected_hops: int = 0
    running: dict[str, RunProgress] = field(default_factory=dict)
    _began: float = 0.0
    _settled_expected: int = 0
    _settled_hops: int = 0

    def begin(self, runs: int, done: int, expected_hops: int) -> None:
        """Starts the clock."""
        self.total, self.done, self.expected_hops = runs, done, expected_hops
        self._began = self.clock()

    def started(self, run_id: str, label: str, horizon_ps: int, expected_hops: int) -> RunProgress:
        """Notes that a run has started."""
        self.running[run_id] = RunProgress(label, expected_hops, horizon_ps, self.clock())
        return self.running[run_id]

    def advanced(self, run_id: str, now_ps: int, hops: int) -> RunProgress:
        """Notes that a run has reached ``now_ps`` after ``hops``."""
        run = self.running[run_id]
        run.now_ps, run.hops = now_ps, hops
        return run

    def ended(self, run_id: str, *, finished: bool) -> RunProgress:
        """Notes the end of a run; its expected work counts as settled whether or not it finished."""
        run = self.running.pop(run_id)
        self._settled_expected += run.expected_hops
        self._settled_hops += run.hops
        self.done += finished
        return run

    @property
    def elapsed(self) -> float:
        """Seconds since ``begin``."""
        return self.clock() - self._began

    @property
    def fraction(self) -> float:
        """Share of the sweep's expected work that is done."""
        if self.expected_hops == 0:
            return 1.0 if not self.running else 0.0
        return min(1.0, self._covered() / self.expected_hops)

    @property
    def rate(self) -> float:
        """Packet-hops per second of all workers together."""
        return (self._settled_hops + sum(run.hops for run in self.running.values())) / max(1e-9, self.elapsed)

    @property
    def seconds_left(self) -> float | None:
        """Wall time to the end of the sweep at the pace so far; None until there is one."""
        covered = self._covered()
        if covered == 0:
            return None
        return self.elapsed * (self.expected_hops - covered) / covered

    def _covered(self) -> float:
        return self._settled_expected + sum(run.fraction * run.expected_hops for run in self.running.values())
