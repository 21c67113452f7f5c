"""Slow flows on the page, packet by packet."""

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tailcut
from support import experiments
from tailcut.explain import ExplainError, explain, select_runs, slowest
from tailcut.explain.lines import lost
from tailcut.report import page
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.report.timelines import MOST_DRAWN, _bytes, timelines
from tailcut.result import Result

LOSSES = {"queue.limit": '"8packets"', "traffic.load": "0.6", "traffic.sizes": '"90KB"'}
THEME = theme_for(("TCP", "RepFlow"), "TCP", interactive=True)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Short queues, so that the slow have lost packets."""
    directory = tmp_path_factory.mktemp("slow")
    return tailcut.run(tailcut.load(experiments.tiny(directory), set=LOSSES, seeds=1), out=directory / "results")


def test_the_slowest_flows_of_each_scheme_are_drawn_under_every_scheme(result: Result) -> None:
    told = timelines(result, 2, THEME).flows
    wanted = [flow for scheme in ("TCP", "RepFlow") for flow in slowest(result, select_runs(result, scheme), 2)]
    assert [one.flow for one in told] == list(dict.fromkeys(wanted))
    assert all([diagram.scheme for diagram in one.diagrams] == ["TCP", "RepFlow"] for one in told)


def test_a_diagram_has_every_loss_and_every_timer(result: Result) -> None:
    place = select_runs(result)
    told = timelines(result, 2, THEME).flows
    stories = explain(result, place, [one.flow for one in told])
    losses = 0
    for one, story in zip(told, stories, strict=True):
        for diagram, under in zip(one.diagrams, story.stories, strict=True):
            drawn = ElementTree.fromstring(str(diagram.drawing))  # noqa: S314 - our own
            classes = [path.get("class") for path in drawn.iter("path")]
            span = max(other.story["fct_ps"] for other in story.stories)
            packets = [p for p in under.story["packets"] if p["sent_ps"] <= under.story["start_ps"] + span]
            assert classes.count("lost") == sum(lost(packet) for packet in packets)
            assert classes.count("there") + classes.count("again") + classes.count("back") == len(packets) < MOST_DRAWN
            timers = sum(act["what"] == "timed-out" for act in under.story["acts"])
            assert classes.count("timer") == timers
            losses += classes.count("lost")
    assert losses > 0


def test_the_page_has_slow_flows_only_on_request_and_the_same_ones_twice(result: Result) -> None:
    study = Study.of(result)
    data = Data.of(study)
    assert 'id="slow-flows"' not in page.render(study, data, THEME)
    pages = [page.render(study, data, THEME, timelines(result, 2, THEME)) for _ in range(2)]
    assert pages[0] == pages[1]
    figures = re.findall(r'<figure class="slow" data-flow="([\d-]+)"( hidden)?>', pages[0])
    assert len(figures) > 1
    assert [hidden for _, hidden in figures] == ["", *[" hidden"] * (len(figures) - 1)]
    section = pages[0].split('<section id="slow-flows">')[1].split("</section>")[0]
    assert len(section) < 100_000 * 2 * len(figures)


def test_report_draws_the_requested_number_of_slow_flows(result: Result, tmp_path: Path) -> None:
    written = result.report(tmp_path / "page.html", 1)
    html = written[0].read_text("utf-8")
    assert 1 <= html.count('<figure class="slow"') <= 2


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Two loads, two seeds."""
    directory = tmp_path_factory.mktemp("swept")
    path = experiments.tiny(directory, '[sweep]\n"traffic.load" = [0.2, 0.4]\n')
    return tailcut.run(tailcut.load(path), out=directory / "results")


def test_slow_flows_of_every_point_are_shown_the_last_point_first(swept: Result) -> None:
    told = timelines(swept, 1, THEME)
    assert [where for where, _ in told.at] == ["load 0.4, seed 1", "load 0.2, seed 1"]
    assert told.left_out == []
    for load, (where, flows) in zip(("0.4", "0.2"), told.at, strict=True):
        place = select_runs(swept, at={"load": load})
        assert [one.flow for one in flows][:1] == slowest(swept, place, 1)
        assert {one.where for one in flows} == {where}
    keys = [one.key for one in told.flows]
    assert len(set(keys)) == len(keys)


def test_slow_flows_are_of_the_requested_seeds(swept: Result, tmp_path: Path) -> None:
    told = timelines(swept, 1, THEME, [2, 1])
    assert [where for where, _ in told.at] == [f"load {load}, seed {seed}" for seed in (2, 1) for load in (0.4, 0.2)]
    with pytest.raises(ExplainError, match="seed 9") as refused:
        timelines(swept, 1, THEME, [9])
    assert refused.value.code == "TC-X002"
    html = swept.report(tmp_path / "page.html", 1, [2])[0].read_text("utf-8")
    assert re.findall(r'<optgroup label="([^"]+)">', html) == ["load 0.4, seed 2", "load 0.2, seed 2"]


def test_stories_beyond_the_page_limit_are_left_out_and_counted(swept: Result) -> None:
    told = timelines(swept, 1, THEME, [1, 2], most_bytes=1)
    assert [where for where, _ in told.at] == ["load 0.4, seed 1"]
    assert told.left_out == ["load 0.2, seed 1", "load 0.4, seed 2", "load 0.2, seed 2"]
    study = Study.of(swept)
    html = page.render(study, Data.of(study), THEME, told)
    assert (
        "Not shown, since the page would grow too large:</strong> load 0.2, seed 1; load 0.4, seed 2; load 0.2, seed 2."
        in html
    )
    whole = timelines(swept, 1, THEME)
    section = (
        page.render(study, Data.of(study), THEME, whole).split('<section id="slow-flows">')[1].split("</section>")[0]
    )
    # What is reckoned with is about what they take.
    assert len(section) == pytest.approx(sum(map(_bytes, whole.flows)), rel=0.2)


def test_slow_flows_of_several_directories_are_shown_at_every_point_of_each(tmp_path: Path) -> None:
    for name, load, other in (("a", 0.2, "RepFlow"), ("b", 0.2, "TCP"), ("c", 0.4, "TCP")):
        experiment = experiments.tiny(tmp_path, f'[sweep]\n"traffic.load" = [{load}]\n')
        document = tomllib.loads(experiment.read_text())
        del document["schemes"][other], document["report"]
        document["schemes"].get("RepFlow", {}).pop("like", None)
        tailcut.run(tailcut.loads(document), out=tmp_path / name)
    together = tailcut.open_results(*(tmp_path / name for name in "abc"))
    told = timelines(together, 1, THEME)
    schemes = {where: {one.scheme for flow in flows for one in flow.diagrams} for where, flows in told.at}
    assert schemes == {"load 0.4, seed 1": {"RepFlow"}, "load 0.2, seed 1": {"TCP", "RepFlow"}}
    study = Study.of(together)
    html = page.render(study, Data.of(study), THEME, told)
    assert re.findall(r'<optgroup label="([^"]+)">', html) == list(schemes)
