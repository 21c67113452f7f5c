"""Location of the lab's BPF programs, which `make lab-bpf` compiles in this repository."""

from pathlib import Path

BUILT = Path(__file__).parents[3] / "target" / "bpf"


def directory() -> str | None:
    """Returns their directory; None if they have not been compiled."""
    return str(BUILT) if any(BUILT.glob("*.o")) else None
