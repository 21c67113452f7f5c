"""``python -m tailcut``: the command line."""

from tailcut.cli import main

main()
