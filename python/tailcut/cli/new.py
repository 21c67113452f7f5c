"""``tailcut new``."""

from pathlib import Path
from typing import Annotated

import typer

from tailcut.cli.common import err, out
from tailcut.cli.results import quoted


def _size(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar="N", min=1, help=what, show_default=False)
    return option


def new(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The file to write; by default experiment.toml, or named after its original.",
            show_default=False,
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Start from an experiment or workload that comes with Tailcut."),
    ] = None,
    list_all: Annotated[
        bool,
        typer.Option("--list", metavar="", help="List the experiments and workloads that --from accepts, and exit."),
    ] = False,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Write a training step of a language model, such as gpt-13b, or custom with --layers and --hidden.",
            show_default=False,
        ),
    ] = None,
    tensor: Annotated[int | None, _size("With --step: ranks that share each layer; 1 by default.")] = None,
    data: Annotated[int | None, _size("With --step: copies of the model; 1 by default.")] = None,
    micro_batches: Annotated[int | None, _size("With --step: micro-batches of a rank; 1 by default.")] = None,
    micro_batch: Annotated[int | None, _size("With --step: sequences of a micro-batch; 1 by default.")] = None,
    tensor_as: Annotated[
        str | None,
        typer.Option(
            metavar="direct|ring|computation",
            help="With --step: how tensor all-reduces are carried; computation keeps them inside servers.",
            show_default=False,
        ),
    ] = None,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", metavar="", help="With --step: compute each layer once more before its backward."),
    ] = False,
    tflops: Annotated[int | None, _size("With --step: 10^12 operations per second of a rank; 140 by default.")] = None,
    layers: Annotated[int | None, _size("With --step: layers of the model.")] = None,
    hidden: Annotated[int | None, _size("With --step: width of a layer.")] = None,
    vocabulary: Annotated[int | None, _size("With --step: tokens that the model knows.")] = None,
    sequence: Annotated[int | None, _size("With --step: tokens of a sequence.")] = None,
) -> None:
    """Write a small experiment with comments to start from, a copy of one, or a training step of a model."""
    of_step = {
        "tensor": tensor, "data": data, "micro_batches": micro_batches, "micro_batch": micro_batch,
        "tensor_as": tensor_as, "recompute": recompute or None, "tflops": tflops,
    }  # fmt: skip
    of_model = {"layers": layers, "hidden": hidden, "vocabulary": vocabulary, "sequence": sequence}
    if step is not None:
        if from_ is not None or list_all:
            raise typer.BadParameter("--step writes an experiment of its own: leave --from and --list out")
        _new_step(file or Path("step.toml"), step, of_step, of_model)
        return
    given = next((name for name, value in (of_step | of_model).items() if value is not None), None)
    if given is not None:
        raise typer.BadParameter(f"--{given.replace('_', '-')} belongs to --step: name a model, such as --step gpt-13b")
    _new_copy(file, from_, list_all=list_all)


def _new_step(file: Path, name: str, of_step: dict[str, int | str | None], of_model: dict[str, int | None]) -> None:
    """Writes a training step, and says what it consists of."""
    from tailcut import training

    given = {key: value for key, value in of_step.items() if value is not None}
    traffic = str(given.pop("tensor_as", training.TensorTraffic.DIRECT))
    known = [str(one) for one in training.TensorTraffic]
    if traffic not in known:
        raise typer.BadParameter(f"--tensor-as {traffic}: write one of {', '.join(known)}")
    if "tflops" in given:
        given["flops"] = int(given.pop("tflops")) * 10**12
    model = training.model(name, **of_model)
    step = training.TrainingStep(model=model, traffic=training.TensorTraffic(traffic), **given)  # type: ignore[arg-type]
    counts = step.counts()
    for path in training.write(step, file, name):
        out.print(str(path), highlight=False, soft_wrap=True)
    err.print(
        f"{counts.hosts:,} hosts, {counts.messages:,} messages of {counts.total_bytes:,} bytes in all,"
        f" {counts.computations:,} computations; tailcut run {quoted(file)} runs it.",
        highlight=False,
        soft_wrap=True,
    )


def _new_copy(file: Path | None, from_: str | None, *, list_all: bool) -> None:
    """Writes the starter or a copy of what comes with Tailcut, or lists the latter."""
    from tailcut import shipped

    known = shipped.texts()
    if list_all:
        for name, text in known.items():
            out.print(f"{name:32} {shipped.summary(name, text)}", highlight=False, soft_wrap=True)
        return
    if from_ is not None and from_ not in known:
        raise typer.BadParameter(shipped.unknown(from_, known))
    text = known[from_ or shipped.STARTER]
    file = file or Path(shipped.file_name(from_) if from_ else "experiment.toml")
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise typer.BadParameter(f"{file} exists already; name another file") from None
    workload = from_ is not None and from_.endswith(shipped.WORKLOAD)
    use = f'name it in an experiment: sizes = {{ file = "{file}" }}' if workload else f"try tailcut run {quoted(file)}"
    out.print(f"{file}: {use}", highlight=False, soft_wrap=True)
