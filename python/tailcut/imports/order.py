"""An order in which the operations of a rank can start."""

from collections.abc import Mapping, Sequence


class Cycle(Exception):  # noqa: N818
    """Operations that wait for each other.

    Attributes:
        operations: each waits for the next one, the last one for the first.
    """

    def __init__(self, operations: list[int]) -> None:
        super().__init__(operations)
        self.operations = operations


def start_order(begin: int, end: int, before: Mapping[int, Sequence[int]], partners: Mapping[int, int]) -> list[int]:
    """Returns operations in an order in which they can start.

    An operation has two events: it starts, and it is over. A message of a rank to itself is over when both its send and
    its receive have started.

    Args:
        begin: the first operation.
        end: the operation behind the last one.
        before: what each operation waits for: twice an operation, and one more if for its start instead of its end.
        partners: the send of a receive, and the receive of a send, of messages of a rank to itself.

    Raises:
        Cycle: operations wait for each other.
    """
    done: set[int] = set()  # events: twice the operation, and one more for its end
    order: list[int] = []

    def needed(event: int) -> list[int]:
        operation, over = divmod(event, 2)
        if over:
            partner = partners.get(operation)
            return [2 * operation] if partner is None else [2 * operation, 2 * partner]
        return [one ^ 1 for one in before.get(operation, ())]

    for operation in range(begin, end):
        if 2 * operation in done:
            continue
        path, open_events, rest = [2 * operation], {2 * operation}, [needed(2 * operation)]
        while path:
            event = _next(rest[-1], done)
            if event is None:
                finished = path.pop()
                rest.pop()
                open_events.discard(finished)
                done.add(finished)
                if not finished % 2:
                    order.append(finished // 2)
            elif event in open_events:
                circle = [one // 2 for one in path[path.index(event) :]]
                # Both events of an operation may be in the circle: each operation is named once.
                circle = [one for at, one in enumerate(circle) if one != circle[at - 1]] or circle[:1]
                least = circle.index(min(circle))
                raise Cycle(circle[least:] + circle[:least])
            else:
                path.append(event)
                open_events.add(event)
                rest.append(needed(event))
    return order


def _next(events: list[int], done: set[int]) -> int | None:
    """Takes events until one is not done; returns it."""
    while events:
        event = events.pop()
        if event not in done:
            return event
    return None
