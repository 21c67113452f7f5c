"""Jobs that an import wrote, and schedules of GOAL in both of their forms."""

import csv
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.imports import imported
from tailcut.imports import ImportOptions

DATA = Path(__file__).parents[1] / "imports" / "data"
Row = tuple[str, frozenset[str]]


def rows(directory: Path) -> dict[str, Row]:
    """Returns the rows of a written job by id: what each is, and what it waits for."""
    with (directory / "job.csv").open() as file:
        return {row["id"]: (_shown(row), frozenset(row["after"].split())) for row in csv.DictReader(file)}


def _shown(row: Mapping[str, str]) -> str:
    if row["src"]:
        return f"{row['src']}->{row['dst']} {row['bytes']}" + (f" at {row['start_ns']}" if row.get("start_ns") else "")
    return f"host {row['host']} cpu {row['processor']} {row['duration_ns']}"


def named(directory: Path, names: Mapping[str, str]) -> dict[str, Row]:
    """Returns the rows of a written job with other ids."""
    return {
        names[own]: (what, frozenset(names[one] for one in after)) for own, (what, after) in rows(directory).items()
    }


def of_text(directory: Path, text: str | bytes, options: ImportOptions | None = None, name: str = "a.goal") -> Path:
    """Imports a schedule; returns the directory of the experiment."""
    return imported(directory, {name: text}, options)


def binary(text: str) -> bytes:
    """Returns a schedule as `txt2bin` writes it; ``text`` has single blanks, no comments and no errors."""
    blocks: list[bytes] = []
    nodes: list[tuple[int, int, int, int, int, int]] = []
    labels: dict[str, int] = {}
    waits: list[tuple[int, int, str]] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["rank"]:
            nodes, labels, waits = [], {}, []
        elif words == ["}"]:
            blocks.append(_block(nodes, waits))
        elif len(words) == 3 and words[1] in ("requires", "irequires"):
            waits.append((labels[words[0]], labels[words[2]], words[1]))
        elif words and words[0] != "num_ranks":
            if words[0].endswith(":"):
                labels[words.pop(0)[:-1]] = len(nodes)
            rest = dict(zip(words[2::2], words[3::2], strict=False))
            kind = ("send", "recv", "calc").index(words[0]) + 1
            peer = int(rest.get("to", rest.get("from", 0))) % 2**32
            tag, cpu, nic = (int(rest.get(name, 0)) for name in ("tag", "cpu", "nic"))
            nodes.append((kind, peer, int(re.sub("b$", "", words[1])), tag % 2**32, cpu, nic))
    head = struct.pack("<QIBB", 4223, len(blocks), 255, 255)
    at = len(head) + 16 * len(blocks) - 8
    places = []
    for block in blocks:
        places.append(struct.pack("<QQ", at, at + len(block)))
        at += len(block)
    return head + b"".join(places) + b"".join(blocks)


def _block(nodes: Sequence[tuple[int, ...]], waits: Sequence[tuple[int, int, str]]) -> bytes:
    appendix: list[int] = []
    content = b""
    for at, (kind, peer, amount, tag, cpu, nic) in enumerate(nodes):
        content += struct.pack("<IBIQIBB", sum(one == at for one, _, _ in waits), kind, peer, amount, tag, cpu, nic)
        for word in ("requires", "irequires"):
            of_node = [one for one, other, kind in waits if other == at and kind == word]
            content += struct.pack("<II", len(of_node), len(appendix))
            appendix += of_node
    roots = [at for at in range(len(nodes)) if all(one != at for one, _, _ in waits)]
    head = struct.pack(f"<II{len(roots)}I", len(nodes), len(roots), *roots)
    return head + content + struct.pack(f"<{len(appendix)}I", *appendix)
