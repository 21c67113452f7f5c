"""One training step under tensor and data parallelism: its messages and computations, and how many there are.

Sizes follow Narayanan et al. (arXiv 2104.04473) and Shoeybi et al. (arXiv 1909.08053), with two bytes per element:

- Each layer and micro-batch has two all-reduces forward and two backward in each tensor group, of b·s·h elements.
- The gradients of a rank are reduced in buckets of 40 M elements, or 1 M per rank of the data group if that is more
  (Megatron), by a ring in each data group. A bucket starts when the backward pass has made its gradients and the rank
  is done with the bucket before.

Ranks are hosts: tensor group g has the ranks g·t to g·t + t - 1, and a data group the ranks that are t apart.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tailcut.imports.job import COMPUTATION, JOIN_PROCESSOR, MESSAGE, Job
from tailcut.imports.source import MAX_FLOWS, MAX_HOSTS
from tailcut.training.model import Model, StepError

__all__ = ["Counts", "StepError", "TensorTraffic", "TrainingStep"]

ELEMENT_BYTES = 2
"""Bytes of an element of activations and gradients (bf16)."""
_BUCKET, _BUCKET_PER_RANK = 40_000_000, 1_000_000


class TensorTraffic(StrEnum):
    """How the all-reduces of a tensor group are carried."""

    DIRECT = "direct"
    """By messages: each rank reduces a part and sends the sum to all."""
    RING = "ring"
    """By messages around a ring."""
    COMPUTATION = "computation"
    """Inside servers, as computations of the time that a ring over their links takes."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The messages, bytes and computations of a step, by closed forms.

    Attributes:
        hosts: the number of ranks.
        tensor_messages: messages of all tensor groups: 2t(t - 1) for each all-reduce.
        tensor_bytes: their bytes: 2(t - 1)S for an all-reduce of S bytes.
        tensor_reduce_bytes: S of an all-reduce in a tensor group: 2bsh.
        tensor_reduces: all-reduces of a tensor group: 4 per layer and micro-batch.
        data_messages: messages of all data groups: 2d(d - 1) for each bucket.
        data_bytes: their bytes: 2(d - 1) times the gradients of a rank, in each data group.
        bucket_bytes: the bytes of each bucket of a rank.
        computations: computations of all ranks that take time.
        computation_ns: the time that a rank computes, without all-reduces.
    """

    hosts: int
    tensor_messages: int
    tensor_bytes: int
    tensor_reduce_bytes: int
    tensor_reduces: int
    data_messages: int
    data_bytes: int
    bucket_bytes: tuple[int, ...]
    computations: int
    computation_ns: int

    @property
    def messages(self) -> int:
        """The number of messages."""
        return self.tensor_messages + self.data_messages

    @property
    def total_bytes(self) -> int:
        """The bytes of all messages."""
        return self.tensor_bytes + self.data_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingStep:
    """A training step.

    Attributes:
        model: the model.
        tensor: t, the ranks that share each layer.
        data: d, the copies of the model.
        micro_batches: how many micro-batches a rank computes, one after the other.
        micro_batch: b, the sequences of a micro-batch.
        flops: floating-point operations per second of a rank (A100: 135 to 142 x 10^12, table 1).
        recompute: whether the backward pass computes each layer forward once more.
        traffic: how all-reduces of tensor groups are carried.
        server_bps: the rate of a rank inside its server, for `TensorTraffic.COMPUTATION` (A100: 2.4 Tbps).

    Raises:
        StepError: TC-N002: the model cannot be split so, or the step is too large.
    """

    model: Model
    tensor: int = 1
    data: int = 1
    micro_batches: int = 1
    micro_batch: int = 1
    flops: int = 140 * 10**12
    recompute: bool = False
    traffic: TensorTraffic = TensorTraffic.DIRECT
    server_bps: int = 2_400 * 10**9

    def __post_init__(self) -> None:
        for name in ("tensor", "data", "micro_batches", "micro_batch", "flops", "server_bps"):
            if getattr(self, name) < 1:
                raise StepError("TC-N002", f"{name} = {getattr(self, name)}", "write a number from 1 on")
        t, d = self.tensor, self.data
        hosts = t * d
        if hosts > MAX_HOSTS:
            what = f"tensor {t} x data {d} is {hosts:,} hosts"
            raise StepError("TC-N002", what, f"at most {MAX_HOSTS:,} are supported: split less")
        if self.model.hidden % t:
            what = f"hidden = {self.model.hidden} cannot be split among tensor = {t} ranks"
            raise StepError("TC-N002", what, "tensor must divide hidden")
        messages = sum(self._messages())
        if messages == 0:
            what = f"a step of tensor {t} x data {d} has no message"
            hint = "use data = 2 or more, or tensor = 2 or more with traffic direct or ring"
            raise StepError("TC-N002", what, hint)
        if messages > MAX_FLOWS:
            what = f"the step has {messages:,} messages, of at most {MAX_FLOWS:,}"
            hint = "use fewer ranks or micro-batches, a smaller model, or tensor traffic as computations"
            raise StepError("TC-N002", what, hint)
        counts = self.counts()
        if counts.computations > MAX_FLOWS:
            what = f"the step has {counts.computations:,} computations, of at most {MAX_FLOWS:,}"
            raise StepError("TC-N002", what, "use fewer ranks, layers or micro-batches")
        if d > 1 and counts.bucket_bytes[-1] < d:
            what = f"the last bucket has {counts.bucket_bytes[-1]} bytes for data = {d} ranks"
            raise StepError("TC-N002", what, "use a larger model, or fewer ranks")

    # --- sizes

    def counts(self) -> Counts:
        """Returns how many messages, bytes and computations the step has."""
        t, d, m, layers = self.tensor, self.data, self.micro_batches, self.model.layers
        reduces, carried = self._tensor_reduces()
        tensor_messages, data_messages = self._messages()
        buckets = self.bucket_bytes()
        per_rank = 2 * (2 * layers + 1) + (2 * layers if self.recompute else 0)
        attention, mlp, logits = self.durations_ns()
        times = 4 if self.recompute else 3
        computed = layers * times * (attention + mlp) + 3 * logits
        inside = reduces - carried
        return Counts(
            hosts=t * d,
            tensor_messages=tensor_messages,
            tensor_bytes=d * carried * 2 * (t - 1) * self.reduce_bytes,
            tensor_reduce_bytes=self.reduce_bytes,
            tensor_reduces=reduces,
            data_messages=data_messages,
            data_bytes=t * 2 * (d - 1) * sum(buckets),
            bucket_bytes=buckets,
            computations=t * d * (per_rank * m + inside),
            computation_ns=m * computed,
        )

    @property
    def reduce_bytes(self) -> int:
        """The bytes of an all-reduce of a tensor group: b·s·h elements."""
        return ELEMENT_BYTES * self.micro_batch * self.model.sequence * self.model.hidden

    def bucket_bytes(self) -> tuple[int, ...]:
        """Returns the bytes of each bucket of a rank's gradients, none without data parallelism."""
        if self.data == 1:
            return ()
        bucket = self._bucket_elements()
        whole, rest = divmod(self._gradients(), bucket)
        return (ELEMENT_BYTES * bucket,) * whole + ((ELEMENT_BYTES * rest,) if rest else ())

    def durations_ns(self) -> tuple[int, int, int]:
        """Returns how long a rank computes attention, feed-forward part and logits, forward, rounded to nanoseconds."""
        b, rate = self.micro_batch, self.flops * self.tensor
        model = self.model
        operations = (model.attention_operations(b), model.mlp_operations(b), model.logits_operations(b))
        attention, mlp, logits = ((2 * 10**9 * count + rate) // (2 * rate) for count in operations)
        return attention, mlp, logits

    def inside_ns(self) -> int:
        """Returns how long a ring of a tensor group takes inside a server: 2(t - 1)/t·S at its rate."""
        t = self.tensor
        return -(-2 * (t - 1) * self.reduce_bytes * 8 * 10**9 // (t * self.server_bps))

    def _tensor_reduces(self) -> tuple[int, int]:
        """Returns the number of all-reduces of a tensor group, and how many of them are messages."""
        reduces = 4 * self.model.layers * self.micro_batches if self.tensor > 1 else 0
        return reduces, 0 if self.traffic is TensorTraffic.COMPUTATION else reduces

    def _messages(self) -> tuple[int, int]:
        """Returns the number of messages of all tensor groups, and of all data groups."""
        t, d = self.tensor, self.data
        buckets = -(-self._gradients() // self._bucket_elements())
        return d * self._tensor_reduces()[1] * 2 * t * (t - 1), t * buckets * 2 * d * (d - 1)

    def _gradients(self) -> int:
        """Returns the number of gradients of a rank."""
        return self.model.parameters // self.tensor

    def _bucket_elements(self) -> int:
        return max(_BUCKET, _BUCKET_PER_RANK * self.data)

    # --- rows

    def job(self) -> Job:
        """Returns the rows of the step."""
        rows = _Rows()
        layers = range(self.model.layers)
        attention, mlp, logits = self.durations_ns()
        groups = [range(g * self.tensor, (g + 1) * self.tensor) for g in range(self.data)]
        made: list[list[int]] = []  # of each rank, the computations of the layers' gradients, the last layer first
        for group in groups:
            after: list[list[int]] = [[] for _ in group]
            backward: list[list[int]] = [[] for _ in group]
            for _ in range(self.micro_batches):
                backward = [[] for _ in group]
                for _ in layers:
                    for part in (attention, mlp):
                        after = self._reduced(rows, group, rows.compute(group, part, after))
                after = rows.compute(group, logits, after)
                after = rows.compute(group, 2 * logits, after)
                for _ in layers:
                    for part in (attention, mlp) if self.recompute else ():
                        after = rows.compute(group, part, after)
                    after = self._reduced(rows, group, rows.compute(group, 2 * mlp, after))
                    computed = rows.compute(group, 2 * attention, after)
                    for own, ready in zip(backward, computed, strict=True):
                        own.extend(ready)
                    after = self._reduced(rows, group, computed)
            last = rows.joined(group, after)
            made.extend([*own, end] for own, (end,) in zip(backward, last, strict=True))
        if self.data > 1:
            for first in range(self.tensor):
                self._data_group(rows, range(first, self.tensor * self.data, self.tensor), made)
        return rows.job()

    def _reduced(self, rows: "_Rows", group: range, ready: list[list[int]]) -> list[list[int]]:
        """Adds an all-reduce of a tensor group; returns the rows that each rank then waits for."""
        if len(group) == 1:
            return ready
        if self.traffic is TensorTraffic.COMPUTATION:
            join = rows.add(COMPUTATION, group[0], JOIN_PROCESSOR, 0, [row for one in ready for row in one])
            return rows.compute(group, self.inside_ns(), [[join] for _ in group])
        if self.traffic is TensorTraffic.RING:
            return rows.ring(group, self.reduce_bytes, ready)
        return rows.direct(group, self.reduce_bytes, ready)

    def _data_group(self, rows: "_Rows", group: range, made: list[list[int]]) -> None:
        """Adds the rings of a data group, a bucket after the other."""
        done: list[list[int]] = [[] for _ in group]
        for bucket, size in enumerate(self.bucket_bytes()):
            filled = self._filled_by(bucket)
            ready = [[made[rank][filled], *own] for rank, own in zip(group, done, strict=True)]
            done = rows.ring(group, size, rows.joined(group, ready), in_order=True)

    def _filled_by(self, bucket: int) -> int:
        """Returns how many layers must be behind it before the backward pass fills a bucket; the last is the end."""
        per_layer = self.model.layer_parameters // self.tensor
        end = (bucket + 1) * self._bucket_elements()
        return min(-(-end // per_layer) - 1, self.model.layers)


class _Rows:
    """Rows under construction."""

    def __init__(self) -> None:
        self._kinds = array("B")
        self._one = array("I")
        self._other = array("I")
        self._amounts = array("q")
        self._first = array("q", [0])
        self._waits = array("I")
        self._pools = array("I")

    def add(self, kind: int, one: int, other: int, amount: int, waits: Sequence[int], pool: int = 0) -> int:
        """Adds a row, which may be of a pool of messages that leave one after the other; returns its number."""
        self._kinds.append(kind)
        self._one.append(one)
        self._other.append(other)
        self._amounts.append(amount)
        self._waits.extend(waits)
        self._first.append(len(self._waits))
        self._pools.append(pool)
        return len(self._kinds) - 1

    def compute(self, group: range, duration_ns: int, after: list[list[int]]) -> list[list[int]]:
        """Adds a computation of each rank; returns the rows."""
        return [[self.add(COMPUTATION, rank, 0, duration_ns, own)] for rank, own in zip(group, after, strict=True)]

    def joined(self, group: range, after: list[list[int]]) -> list[list[int]]:
        """Adds a computation of 0 ns of each rank, so that many rows can wait for one."""
        return [[self.add(COMPUTATION, rank, JOIN_PROCESSOR, 0, own)] for rank, own in zip(group, after, strict=True)]

    def direct(self, group: range, size: int, ready: list[list[int]]) -> list[list[int]]:
        """Adds a direct all-reduce; returns the rows that each rank then waits for."""
        count = len(group)
        parts = _parts(size, count)
        for shares in (False, True):
            came: list[list[int]] = [[] for _ in group]
            for at in range(count):
                for to in ((at + step) % count for step in range(1, count)):
                    part = parts[at if shares else to]
                    came[to].append(self.add(MESSAGE, group[at], group[to], part, ready[at]))
            after = [[*own, *parts_of] for own, parts_of in zip(ready, came, strict=True)]
            ready = after if shares else self.joined(group, after)
        return ready

    def ring(self, group: range, size: int, ready: list[list[int]], *, in_order: bool = False) -> list[list[int]]:
        """Adds an all-reduce around a ring; returns the rows that each rank then waits for.

        Args:
            group: the ranks.
            size: the bytes that are reduced.
            ready: the rows that each rank waits for.
            in_order: a rank sends the messages of such rings one after the other.
        """
        count = len(group)
        parts = _parts(size, count)
        done: list[list[int]] = [[] for _ in group]
        before: list[int] = []
        for step in range(2 * (count - 1)):
            sent = []
            for at, rank in enumerate(group):
                waits = [before[at - 1]] if step else []
                if step < count - 1:
                    waits += ready[at]
                part = parts[(at - 1 - step) % count]
                pool = rank + 1 if in_order else 0
                sent.append(self.add(MESSAGE, rank, group[(at + 1) % count], part, waits, pool))
            if step >= count - 2:
                for at, own in enumerate(done):
                    own.append(sent[at - 1])
            before = sent
        return done

    def job(self) -> Job:
        """Returns the rows as a job."""
        count = len(self._kinds)
        pools = np.frombuffer(self._pools, dtype=np.uint32).astype(np.int64)
        return Job(
            ids=np.arange(count, dtype=np.int64),
            kinds=np.frombuffer(self._kinds, dtype=np.uint8),
            one=np.frombuffer(self._one, dtype=np.uint32).astype(np.int64),
            other=np.frombuffer(self._other, dtype=np.uint32).astype(np.int64),
            amounts=np.frombuffer(self._amounts, dtype=np.int64),
            first=np.frombuffer(self._first, dtype=np.int64),
            waits=np.frombuffer(self._waits, dtype=np.uint32).astype(np.int64),
            pool=pools if pools.any() else None,
            at_once=np.minimum(pools, 1) if pools.any() else None,
            until="sent" if pools.any() else None,
        )


def _parts(size: int, count: int) -> list[int]:
    """Returns the sizes of parts: the first ones have a byte more where parts are not equal."""
    least, rest = divmod(size, count)
    return [least + (at < rest) for at in range(count)]
