"""The ``tailcut`` command: one thin function per command."""

import typer

app = typer.Typer(name="tailcut", no_args_is_help=True, add_completion=False)


@app.callback()
def tailcut() -> None:
    """Cut the latency tail of data-centre flows."""


def main() -> None:
    """Run the command line."""
    app()
