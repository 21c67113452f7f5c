"""Waiting for what has to come: there is no limit but pytest's, which no machine at work reaches."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], state: Callable[[], object]) -> None:
    """Wait until it holds; whatever ends the wait before tells the state."""
    try:
        while not holds():
            time.sleep(0.01)
    except BaseException as error:
        error.add_note(f"waiting, when there was: {state()}")
        raise
