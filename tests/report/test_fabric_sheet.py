"""The fabric as a file: what waits at the busiest instant, under every scheme."""

from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut import report
from tailcut.report import fabric_sheet
from tailcut.report.fabric_samples import FabricSamples
from tailcut.report.study import Study
from tailcut.report.theme import INK, theme_for
from tailcut.result import Result

FABRIC = {
    "measure.fabric": "true",
    "measure.fabric_instants": "40",
    "traffic.sizes": "web-search",
    "traffic.load": "0.6",
    "horizon.arrivals": "20ms",
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    directory = tmp_path_factory.mktemp("sheet")
    return tailcut.run(tailcut.load(experiments.tiny(directory), set=FABRIC, seeds=1), out=directory / "results")


def test_every_link_has_the_colour_of_what_waits_there(result: Result) -> None:
    watched = FabricSamples.whole(Study.of(result))
    assert watched is not None
    at_switches = result.fabric.join(
        result.ports.filter(pl.col("from") >= 16).select("scheme", "port"), on=["scheme", "port"]
    )
    waiting = at_switches.group_by("scheme", "time_ns").agg(pl.col("queue_packets").sum()).sort("queue_packets")
    time = (fabric_sheet.busiest(watched) + 1) * watched.interval_ns
    assert waiting.filter(pl.col("time_ns") == time)["queue_packets"].max() == waiting["queue_packets"].max()
    drawn = ElementTree.fromstring(fabric_sheet.svg(watched, theme_for(("TCP", "RepFlow"), "TCP", interactive=False)))  # noqa: S314
    panels = drawn.findall(f"{SVG}g")
    assert [panel.findtext(f"{SVG}text") for panel in panels] == ["TCP", "RepFlow"]
    for scheme, panel in zip(watched.runs, panels, strict=True):
        lines = panel.findall(f"{SVG}line")
        colours = [
            INK[f"load-{level}"][0] for level in fabric_sheet.levels(watched, scheme, time // watched.interval_ns - 1)
        ]
        assert sorted(line.get("stroke") or "" for line in lines) == sorted(colours)
        assert len(lines) == 48
        queues = at_switches.filter(pl.col("scheme") == scheme, pl.col("time_ns") == time)
        full = queues.filter(pl.col("queue_packets") > 0).select((pl.col("port") // 2).n_unique()).item()
        assert sum(colour != INK["load-0"][0] for colour in colours) == full
        assert len(panel.findall(f"{SVG}circle")) == 36


def test_the_sheet_is_among_the_written_files_and_states_its_instant(result: Result, tmp_path: Path) -> None:
    written = report.write(result, tmp_path / "page.html")
    names = [path.name for path in written]
    assert names[-2:] == ["fabric.svg", "fabric.png"]
    assert written[-1].read_bytes().startswith(b"\x89PNG")
    captions = (tmp_path / "page-figures/captions.md").read_text("utf-8")
    assert "## fabric\n\nPackets that wait at the links of the fabric " in captions
    first = written[-2].read_bytes()
    assert report.write(result, tmp_path / "page.html")[-2].read_bytes() == first


def test_without_samples_no_fabric_sheet_is_written(tmp_path: Path) -> None:
    plain = tailcut.run(tailcut.load(experiments.tiny(tmp_path), seeds=1), out=tmp_path / "plain")
    assert not [path for path in report.write(plain, tmp_path / "page.html") if path.stem == "fabric"]


def test_of_many_hosts_only_the_switches_are_drawn(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = FabricSamples.whole(Study.of(result))
    assert watched is not None
    monkeypatch.setattr(fabric_sheet, "MOST_HOSTS", 8)
    drawn = ElementTree.fromstring(fabric_sheet.svg(watched, theme_for(("TCP", "RepFlow"), "TCP", interactive=False)))  # noqa: S314
    for panel in drawn.findall(f"{SVG}g"):
        assert len(panel.findall(f"{SVG}line")) == 32
        assert len(panel.findall(f"{SVG}circle")) == 20
    assert "Hosts are left out: there are 16." in fabric_sheet.caption(watched)
