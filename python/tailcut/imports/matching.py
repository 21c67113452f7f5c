"""Matching of sends with receives, as MPI does it: by ranks and tag, in the order of the file."""

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SEND, RECV = 1, 2
ANY_PEER, ANY_TAG = 2**32 - 1, 2**64 - 1
Operations = npt.NDArray[np.int64]


@dataclass(slots=True)
class Matched:
    """Sends and receives that belong together.

    Attributes:
        sends: the send of each receive, by operation.
        unmatched: the first operation without a counterpart.
        shared: messages with the ranks and the tag of an earlier one.
        any_source: receives from any source.
    """

    sends: Operations
    unmatched: int | None = None
    shared: int = 0
    any_source: int = 0


def match(
    kinds: npt.NDArray[np.uint8],
    ranks: npt.NDArray[np.uint32],
    peers: npt.NDArray[np.uint32],
    tags: npt.NDArray[np.uint64],
) -> Matched:
    """Match the sends of all ranks with the receives.

    Receives of a stated source and tag come first: the k-th send with these is for the k-th receive. What is left is
    for receives of any tag, then for those of any source, rank by rank: first those of a stated tag.

    Args:
        kinds: `SEND`, `RECV` or another, of each operation.
        ranks: the rank of each.
        peers: the destination of a send, the source of a receive.
        tags: their tags.
    """
    sends = np.flatnonzero(kinds == SEND)
    recvs = np.flatnonzero(kinds == RECV)
    found = Matched(sends=np.full(len(kinds), -1, dtype=np.int64))
    both = np.concatenate((sends, recvs))
    wide_ranks, wide_peers = ranks[both].astype(np.uint64), peers[both].astype(np.uint64)
    is_send = np.arange(len(both)) < len(sends)
    pairs = np.where(is_send, wide_ranks << np.uint64(32) | wide_peers, wide_peers << np.uint64(32) | wide_ranks)
    del wide_ranks, wide_peers
    stated = tags[both]
    order = np.lexsort((stated, pairs))  # keeps the order within a group: its sends, then its receives
    pairs, stated, is_send = pairs[order], stated[order], is_send[order]
    new = np.ones(len(both), dtype=np.bool_)
    new[1:] = (pairs[1:] != pairs[:-1]) | (stated[1:] != stated[:-1])
    begins = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    sent = np.add.reduceat(is_send, begins, dtype=np.int64) if len(begins) else begins
    at = np.arange(len(both)) - begins[group]
    wild = (stated == ANY_TAG) | (pairs >> np.uint64(32) == ANY_PEER)
    takes = ~is_send & ~wild & (at < 2 * sent[group])
    places = np.flatnonzero(takes)
    froms = places - sent[group[places]]
    found.sends[both[order[places]]] = both[order[froms]]
    found.shared = int(np.maximum(sent[~wild[begins]] - 1, 0).sum())
    taken = takes.copy()
    taken[froms] = True
    if not taken.all():
        left = np.sort(both[order[~taken]])
        _match_wild(left.tolist(), kinds, ranks, peers, tags, found)
    return found


def _match_wild(
    left: list[int],
    kinds: npt.NDArray[np.uint8],
    ranks: npt.NDArray[np.uint32],
    peers: npt.NDArray[np.uint32],
    tags: npt.NDArray[np.uint64],
    found: Matched,
) -> None:
    """Matches what stated ranks and tags have left."""
    sends = {at: None for at in left if kinds[at] == SEND}
    recvs = {at: None for at in left if kinds[at] == RECV}

    def pair(send: int, recv: int) -> None:
        found.sends[recv] = send
        del sends[send], recvs[recv]

    def queues(operations: dict[int, None], ends: bool) -> dict[tuple[int, int], deque[int]]:
        made: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        for at in operations:
            one, other = int(ranks[at]), int(peers[at])
            made[(one, other) if ends else (other, one)].append(at)
        return made

    # A send of any tag fits any receive, and a receive of any tag any send, between the same ranks.
    of_sends = queues({at: None for at in sends if tags[at] == ANY_TAG}, ends=True)
    for recv in [at for at in recvs if peers[at] != ANY_PEER]:
        waiting = of_sends[int(peers[recv]), int(ranks[recv])]
        if waiting:
            pair(waiting.popleft(), recv)
    of_sends = queues(sends, ends=True)
    for recv in [at for at in recvs if peers[at] != ANY_PEER and tags[at] == ANY_TAG]:
        waiting = of_sends[int(peers[recv]), int(ranks[recv])]
        if waiting:
            pair(waiting.popleft(), recv)
    for any_tag in (False, True):
        of_ranks: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        for send in sends:
            of_ranks[int(peers[send]), ANY_TAG if any_tag else int(tags[send])].append(send)
        for recv in [at for at in recvs if peers[at] == ANY_PEER and (tags[at] == ANY_TAG) == any_tag]:
            rank = int(ranks[recv])
            fitting = of_ranks.get((rank, int(tags[recv]))) or of_ranks.get((rank, ANY_TAG))
            if fitting:
                found.any_source += 1
                pair(fitting.popleft(), recv)
    found.unmatched = min((*sends, *recvs), default=None)
