"""Where the lab's BPF programs are, which `make lab-bpf` compiles in this repository."""

from pathlib import Path

BUILT = Path(__file__).parents[3] / "target" / "bpf"


def directory() -> str | None:
    """Where they are, if they were compiled."""
    return str(BUILT) if any(BUILT.glob("*.o")) else None
