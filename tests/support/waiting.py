"""Waits for conditions. The only limit is pytest's, which no working machine reaches."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], state: Callable[[], object]) -> None:
    """Waits until the condition holds. An exception that ends the wait earlier shows the state."""
    try:
        while not holds():
            time.sleep(0.01)
    except BaseException as error:
        error.add_note(f"waiting, when there was: {state()}")
        raise
