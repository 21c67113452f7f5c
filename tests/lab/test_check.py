"""What of a plan the lab realises, nearly realises and refuses; no kernel is asked."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tailcut
from tailcut import cli
from tailcut.backends import Capture, Options, backend
from tailcut.backends.lab import fields
from tailcut.errors import BackendError
from tailcut.lab import repnet

SHIPPED = sorted((Path(__file__).parents[2] / "experiments/lab").glob("*.toml"))
REFUSED = [
    ("transport.initial_rto", '"10ms"', "initial_rto"),
    ("transport.ack_every", "2", "ack_every"),
    ("transport.limited_transmit", "false", "limited_transmit"),
    ("transport.imitate", '["no-rescue"]', "imitate"),
    ("transport.max_rto", '"200s"', "max_rto"),
    ("transport.min_rto", '"1500us"', "min_rto"),
    ("transport.initial_ssthresh", '"10packets"', "initial_ssthresh"),
    ("transport.receive_window", '"32MB"', "receive_window"),
    ("transport.congestion", '{ kind = "cubic", beta = 0.5 }', "congestion"),
    ("transport.kind", '"mmptcp"', "kind"),
    ("replicate", '{ kind = "repflow", copies = 3 }', "copies"),
    ("replicate", '{ kind = "repflow", loser = "finish" }', "loser"),
    ("replicate", '{ kind = "hedge" }', "kind"),
]


def answers(experiment: Path, **overrides: str) -> dict[str, tuple[str, str]]:
    told = fields(tailcut.load(experiment, set=overrides).plan)
    return {one["field"]: (one["answer"], one["text"]) for one in told}


def test_a_plan_that_can_be_had_is_told_field_by_field(experiment: Path) -> None:
    told = answers(experiment)
    assert {answer for answer, _ in told.values()} == {"done", "near"}
    for field in ("mss", "initial_window", "receive_window", "recovery", "congestion", "min_rto", "ecn", "close"):
        assert f"transport.{field}" in told
    assert told["transport.recovery"][0] == "near"
    assert "RACK" in told["transport.recovery"][1]


def test_flows_that_wait_for_others_are_carried_by_sockets_and_nearly_so_by_repnet(experiment: Path) -> None:
    poisson = 'kind = "poisson"\nsizes = "20KB"\nload = 0.2'
    experiment.write_text(experiment.read_text().replace(poisson, 'kind = "transfers"\nbytes = "20KB"'))
    assert answers(experiment)["traffic.kind"][0] == "done"
    assert answers(experiment, **{"traffic.kind": '"shuffle"'})["traffic.kind"][0] == "done"
    answer, text = answers(experiment, replicate='{ kind = "repflow" }')["traffic.kind"]
    assert (answer, "the end of the connection" in text) == ("near", True)


def test_flows_of_a_few_bytes_that_nothing_tells_apart_are_refused_where_repnet_carries_them(experiment: Path) -> None:
    pings = 'kind = "pings"\ncount = 300\nbytes = "1B"\nfrom = 0\nto = 1'
    experiment.write_text(experiment.read_text().replace('kind = "poisson"\nsizes = "20KB"\nload = 0.2', pings))
    assert "fatal" not in {answer for answer, _ in answers(experiment).values()}
    for kind in ("repflow", "repsyn"):
        answer, text = answers(experiment, **{"replicate.kind": f'"{kind}"'})["traffic"]
        assert answer == "fatal"
        assert "both 1B from host 0 to host 1" in text
        assert "make them 8B or more" in text


@pytest.mark.parametrize(("key", "value", "field"), REFUSED, ids=[key for key, _, _ in REFUSED])
def test_what_cannot_be_had_is_refused_by_name(experiment: Path, key: str, value: str, field: str) -> None:
    if key == "transport.kind":
        experiment.write_text(experiment.read_text().replace('initial_rto = "1s"', "").replace('"tcp"', value))
        told = answers(experiment)
    else:
        told = answers(experiment, **{key: value})
    fatal = [name for name, (answer, _) in told.items() if answer == "fatal"]
    assert [name.rpartition(".")[2] for name in fatal] == [field]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transport.congestion", '{ kind = "cubic" }'),
        ("transport.recovery", '"newreno"'),
        ("transport.timestamps", "true"),
        ("transport.close", '"none"'),
        ("balance.kind", '"spray"'),
        ("queue", '{ kind = "red" }'),
    ],
)
def test_what_differs_only_in_the_hosts_or_the_fabric_can_be_had(experiment: Path, key: str, value: str) -> None:
    if key == "queue":
        experiment.write_text(experiment.read_text().replace('[queue]\nlimit = "50packets"', '[queue]\nkind = "red"'))
        told = answers(experiment)
    else:
        told = answers(experiment, **{key: value})
    assert "fatal" not in {answer for answer, _ in told.values()}


def test_which_time_series_are_recorded_is_told(experiment: Path) -> None:
    assert not any(field.startswith(("series", "measure")) for field in answers(experiment))
    for what in ("segments", "attribution", "fabric"):
        assert answers(experiment, **{f"measure.{what}": "true"})[f"measure.{what}"][0] == "near"
    links = {"series.links": '["h0>s0"]', "series.differentials": '["h0>h3"]'}
    told = answers(experiment, **links, **{"series.flows": "[0]", "series.interval": '"2ms"'})
    assert [told[f"series.{name}"][0] for name in ("links", "differentials", "flows")] == ["done"] * 3
    often = answers(experiment, **{"series.flows": "[0]", "series.interval": '"100us"'})["series.flows"]
    assert (often[0], "every 1ms at the most often" in often[1]) == ("near", True)
    node = answers(experiment, replicate='{ kind = "repflow" }', **{"series.flows": "[0]", **links})
    assert (node["series.flows"][0], node["series.links"][0]) == ("near", "done")
    assert "not recorded" in node["series.flows"][1]


def test_the_command_shows_the_table_and_ends_by_whether_it_can_be_had(experiment: Path) -> None:
    runner = CliRunner()
    possible = runner.invoke(cli.app, ["check", str(experiment), "--on", "lab"])
    assert possible.exit_code == 0
    assert "transport.min_rto" in possible.output
    refused = runner.invoke(cli.app, ["check", str(experiment), "--on", "lab", "--set", 'transport.initial_rto="10ms"'])
    assert refused.exit_code == 2
    assert "TC-B002" in refused.stderr
    assert "--set transport.initial_rto=1s" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(("kind", "mode"), [("repflow", "mode flow"), ("repsyn", "mode syn")])
def test_replication_can_be_had_by_repnet(experiment: Path, kind: str, mode: str) -> None:
    told = answers(experiment, **{"replicate.kind": f'"{kind}"'})
    assert "fatal" not in {answer for answer, _ in told.values()}
    assert told["replicate.kind"][0] == "near"
    assert mode in told["replicate.kind"][1]
    open_ended = answers(experiment, **{"replicate.kind": f'"{kind}"', "transport.close": '"none"'})
    assert open_ended["transport.close"][0] == "fatal"


def test_what_replication_is_compared_with_is_told_that_the_same_program_carries_it(experiment: Path) -> None:
    assert "node:net" not in answers(experiment)["replicate.kind"][1]
    experiment.write_text(experiment.read_text() + '[schemes.RepFlow]\nreplicate = { kind = "repflow" }\n')
    told = [one["text"] for one in fields(tailcut.load(experiment).plan) if one["field"] == "replicate.kind"]
    assert len(told) == 2
    assert any("node:net" in text for text in told)


@pytest.mark.parametrize("missing", ["node", "repnet-bench"])
def test_without_repnet_bench_replication_is_refused_and_all_else_is_not(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(repnet, "BUILT", Path("/nowhere/main.js"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/usr/bin/{name}")
    plan = tailcut.load(experiment, set={"replicate.kind": '"repflow"'}).plan
    fatal = [gap for gap in backend("lab").check(plan, Options()) if gap.fatal]
    assert [gap.where for gap in fatal] == ["replicate"]
    assert missing in fatal[0].reason
    assert not any(gap.fatal for gap in backend("lab").check(tailcut.load(experiment).plan, Options()))


def test_nothing_is_run_of_what_is_refused(experiment: Path, tmp_path: Path) -> None:
    wanted = tailcut.load(experiment, set={"transport.ack_every": "2"})
    with pytest.raises(BackendError, match=r"transport\.ack_every") as refused:
        tailcut.run(wanted, on="lab", out=tmp_path / "results")
    assert refused.value.code == "TC-B002"
    assert not (tmp_path / "results").exists()


def test_a_cluster_or_a_capture_of_links_is_refused(experiment: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from tailcut.backends.farm import ExecutorFarm

    plan = tailcut.load(experiment).plan
    with ThreadPoolExecutor(1) as executor:
        gaps = backend("lab").check(plan, Options(farm=ExecutorFarm(executor), capture=Capture(("h0>s0",))))
    assert {gap.where for gap in gaps if gap.fatal} == {"--cluster", "--capture"}


def test_only_the_lab_repeats(experiment: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="another result each time") as refused:
        tailcut.run(tailcut.load(experiment), out=tmp_path / "results", repeat=2)
    assert refused.value.code == "TC-B003"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_labs_experiments_can_be_had_by_the_simulator_and_by_the_lab(path: Path) -> None:
    if path.stem == "mptcp" and not Path("/proc/sys/net/mptcp/pm_type").exists():
        pytest.skip("the kernel lab: this kernel has no Multipath TCP whose subflows a program opens")
    plan = tailcut.load(path).plan
    assert [gap for gap in backend("sim").check(plan, Options()) if gap.fatal] == []
    assert [one for one in fields(plan) if one["answer"] == "fatal"] == []
