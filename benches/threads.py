"""How fast one run is on several threads, on all cores of this machine, in at most eight minutes on sixteen.

Builds the benchmark, and prints a table for each fabric. Asserts nothing. Says something of an idle machine only.
Each number is the median of five turns; a turn has one run on one thread, one on so many, and so many side by side.
"""

import subprocess
import sys
import time

from tailcut.results import machine

FABRICS = (("16", "100"), ("32", "20"))
"""Ports of a switch, and simulated milliseconds, that are measured with 2, 4, 8, ... threads."""
LARGEST = ("64", "2")
"""The same of 65,536 hosts, measured with all cores alone."""
BENCH = ("cargo", "bench", "--locked", "--quiet", "-p", "tailcut-net", "--bench", "threads")


def threads(cores: int) -> list[str]:
    """Returns the numbers of threads that are measured on so many cores: powers of two, and all."""
    powers = (2**power for power in range(1, cores.bit_length()))
    return [str(count) for count in sorted({*powers, cores})]


def main() -> None:
    cores = machine.cores()
    if cores < 2:
        sys.exit("one run on several threads: not measured: this process may use one core")
    began = time.monotonic()
    subprocess.run([*BENCH, "--no-run"], check=True)
    print(f"{cores} cores; built in {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    for fabric in FABRICS:
        subprocess.run([*BENCH, "--", *fabric, *threads(cores)], check=True)
        print(flush=True)
    subprocess.run([*BENCH, "--", *LARGEST, str(cores)], check=True)
    print(f"\nMeasured in {time.monotonic() - began:.0f} s.")


if __name__ == "__main__":
    main()
