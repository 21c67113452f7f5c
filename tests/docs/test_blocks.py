"""Blocks of pages that are looked up rather than followed: each stands for itself."""

import re
import tomllib
from pathlib import Path

import pytest

import tailcut
from support import pages
from tailcut import claims

ROOT = Path(__file__).parents[2]
LOOKED_UP = [ROOT / "README.md", *pages.written(ROOT / "docs/components"), *pages.written(ROOT / "docs/reference")]
AROUND = {
    "title": "what a block is put into",
    "topology": {"kind": "fat-tree", "k": 4},
    "traffic": {"kind": "poisson", "sizes": "web-search", "load": 0.3},
    "schemes": {"TCP": {}, "RepFlow": {"replicate": {"kind": "repflow"}}},
}


def blocks(language: str, *, of_claims: bool = False) -> pytest.MarkDecorator:
    """The blocks in a language, as the cases of a test; those of claims files only, or those of everything else."""
    fenced = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    cases = [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in LOOKED_UP
        for number, text in enumerate(fenced.findall(page.read_text("utf-8")), 1)
        if of_claims == text.startswith(("[[claims]]", "situations"))
    ]
    return pytest.mark.parametrize("text", cases)


@blocks("toml")
def test_parts_of_experiments_in_the_docs_are_accepted(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "capture.csv").write_text("start,src,dst,bytes\n12s,10.0.0.1,10.0.0.2,1000\n", "utf-8")
    (tmp_path / "hosts.csv").write_text("10.0.0.1,h0\n10.0.0.2,h1\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert tailcut.loads(AROUND | tomllib.loads(text)).plan["runs"]


@blocks("toml", of_claims=True)
def test_claims_in_the_docs_are_accepted(text: str) -> None:
    head = 'title = "a paper"\nsource = "somebody"\n'
    if text.startswith("situations"):  # what a page of questions is made of
        assert claims.document.read("today", f"{head}claims = []\n{text}").answers
        return
    readings = '[readings."ns-3.10"]\nsays = "another"\n'
    assert claims.document.read("repflow", f"{head}{readings}{text}").claims


@blocks("python")
def test_programs_in_the_docs_run(text: str, tmp_path: Path) -> None:
    """A program that names an experiment gets a small one."""
    (tmp_path / "experiment.toml").write_text(
        """
        title = "small"
        topology = { kind = "star" }
        traffic = { kind = "poisson", sizes = "10KB", load = 0.1 }
        horizon = { arrivals = "1ms", drain = "1s" }
        """
    )
    (tmp_path / "program.py").write_text(text, "utf-8")
    pages.shell("python program.py", tmp_path)
