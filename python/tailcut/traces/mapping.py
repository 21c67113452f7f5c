"""Files that say which host a trace means by a name or an address."""

from pathlib import Path

from tailcut.traces import cells
from tailcut.traces.cells import TraceError

MAX_BYTES = 64 * 10**6
_HEADERS = ("host", "hosts", "number", "node")


def read_mapping(path: Path, name: str) -> dict[str, str]:
    """Returns the hosts of a mapping file by their names in the trace.

    Args:
        path: the file: text with two columns, the name in the trace and the host.
        name: what it is called in messages.

    Raises:
        TraceError: it cannot be read, or a line of it is none.
    """

    def bad(what: str, hint: str | None) -> TraceError:
        return TraceError("trace-hosts", f"{name}: {what}", hint, field="hosts")

    try:
        if path.stat().st_size > MAX_BYTES:
            raise bad(f"more than {MAX_BYTES:,} bytes", "name a file with a line for each host")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise bad(f"cannot be read: {error.strerror}", "paths are relative to the experiment file") from None
    except UnicodeDecodeError as error:
        raise bad(f"it is not text in UTF-8 (byte {error.start + 1})", "save it as UTF-8") from None
    found: dict[str, str] = {}
    first = True
    for number, line in enumerate(text.split("\n"), 1):
        fields = cells.fields(line.partition("#")[0].strip())
        if not fields:
            continue
        if len(fields) != 2 or not all(fields):
            hint = "write what the trace calls the host, a comma, and the host: 10.0.0.1,h0"
            raise bad(f"line {number}: {len(fields)} columns where 2 are expected", hint)
        if first and fields[1].casefold() in _HEADERS:
            first = False
            continue
        first = False
        if found.get(fields[0], fields[1]) != fields[1]:
            raise bad(f"line {number}: {fields[0]} is already {found[fields[0]]}", "say each once")
        found[fields[0]] = fields[1]
    return found
