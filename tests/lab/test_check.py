"""Fields of a plan that the lab realises, nearly realises or refuses; only marked tests need a kernel."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tailcut
from support import experiments, skipping
from tailcut import _core, cli
from tailcut.backends import Capture, Options, backend
from tailcut.backends.lab import fields
from tailcut.errors import BackendError
from tailcut.lab import calibration, doctor, process, repnet
from tailcut.lab.calibration import Calibration
from tailcut.plan import Plan

Missing = dict[str, str]

SHIPPED = experiments.shipped("lab")
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
    ("transport.congestion", '{ kind = "bbr", cwnd_gain = 3.0 }', "congestion"),
    ("transport.kind", '"mmptcp"', "kind"),
    ("replicate", '{ kind = "repflow", copies = 3 }', "copies"),
    ("replicate", '{ kind = "repflow", loser = "finish" }', "loser"),
    ("replicate", '{ kind = "hedge" }', "kind"),
]


PROGRAM = repnet.program
APART = {"title", "question", "seeds", "schemes", "sweep", "report", "model", "small", "medium"}
"""Sections that name what is compared, or that other backends and the report read."""


@pytest.fixture(autouse=True)
def missing(monkeypatch: pytest.MonkeyPatch) -> Missing:
    """A machine that offers everything but what is put here, with the reason, and carries 100,000 frames a second."""
    gone: Missing = {}
    names = [name for name in doctor.NEEDS if name not in {"repnet-bench", "supervisor"}]
    monkeypatch.setattr(
        process,
        "probe",
        lambda timers: [
            {"name": name, "offered": name not in gone, "found": gone.get(name, "there")}
            for name in names
            if timers or name != "timers"
        ],
    )
    monkeypatch.setattr(repnet, "program", lambda: ["node", "main.js"])
    monkeypatch.setattr(calibration, "calibrate", lambda _fabric, _program: Calibration("sockets", 1e5, 2e5))
    return gone


def answers(experiment: Path, **overrides: str) -> dict[str, tuple[str, str]]:
    told = fields(tailcut.load(experiment, set=overrides).plan)
    return {one["field"]: (one["answer"], one["text"]) for one in told}


def test_check_reports_every_field_of_a_realisable_plan(experiment: Path) -> None:
    told = answers(experiment)
    assert {answer for answer, _ in told.values()} == {"done", "near"}
    for field in ("mss", "initial_window", "receive_window", "recovery", "congestion", "min_rto", "ecn", "close"):
        assert f"transport.{field}" in told
    assert told["transport.recovery"][0] == "near"
    assert "RACK" in told["transport.recovery"][1]


def test_dependent_flows_are_done_with_sockets_and_near_with_repnet(experiment: Path) -> None:
    poisson = 'kind = "poisson"\nsizes = "20KB"\nload = 0.2'
    experiment.write_text(experiment.read_text().replace(poisson, 'kind = "transfers"\nbytes = "20KB"'))
    assert answers(experiment)["traffic.kind"][0] == "done"
    assert answers(experiment, **{"traffic.kind": '"shuffle"'})["traffic.kind"][0] == "done"
    answer, text = answers(experiment, replicate='{ kind = "repflow" }')["traffic.kind"]
    assert (answer, "Node does not report ACKs" in text) == ("near", True)


def test_indistinguishable_tiny_flows_are_refused_with_repnet(experiment: Path) -> None:
    pings = 'kind = "pings"\ncount = 300\nbytes = "1B"\nfrom = 0\nto = 1'
    experiment.write_text(experiment.read_text().replace('kind = "poisson"\nsizes = "20KB"\nload = 0.2', pings))
    assert "fatal" not in {answer for answer, _ in answers(experiment).values()}
    for kind in ("repflow", "repsyn"):
        answer, text = answers(experiment, **{"replicate.kind": f'"{kind}"'})["traffic"]
        assert answer == "fatal"
        assert "both 1B from host 0 to host 1" in text
        assert "make them 8B or longer" in text


@pytest.mark.parametrize(("key", "value", "field"), REFUSED, ids=[key for key, _, _ in REFUSED])
def test_fields_that_the_lab_cannot_realise_are_refused_by_name(
    experiment: Path, key: str, value: str, field: str
) -> None:
    if key == "transport.kind":
        experiment.write_text(experiment.read_text().replace('initial_rto = "1s"', "").replace('"tcp"', value))
        told = answers(experiment)
    else:
        told = answers(experiment, **{key: value})
    fatal = [name for name, (answer, _) in told.items() if answer == "fatal"]
    assert [name.rpartition(".")[2] for name in fatal] == [field]


@pytest.mark.parametrize("topology", ["multi-plane", "rail-optimised"])
def test_hosts_with_several_interfaces_are_refused(tmp_path: Path, topology: str) -> None:
    file = tmp_path / "t.toml"
    file.write_text(
        f'title = "t"\ntopology = {{ kind = "{topology}" }}\ntraffic = {{ kind = "poisson", load = 0.1 }}\n'
    )
    answer, text = answers(file)["topology"]
    assert (answer, text.partition(":")[0]) == ("fatal", "the lab gives each host one interface")


ORDERED = ("fatal", "messages in order: the lab's hosts do not report departures")
COMPUTED = ("fatal", "computations: the lab's hosts carry messages only")
COLLECTIVE = """title = "t"
topology = {{ kind = "star", hosts = 8, rate = "10Mbps" }}
traffic = {{ kind = "collective", operation = "{}", algorithm = "{}", bytes = "1MB", repeat = {} }}
horizon = {{ arrivals = "10ms", drain = "1s" }}
[schemes.TCP]
"""


@pytest.mark.parametrize(
    ("operation", "algorithm", "repeat", "answer"),
    [
        ("all-reduce", "ring", 1, ORDERED),
        ("all-reduce", "halving-doubling", 1, ORDERED),
        ("all-gather", "ring", 1, ORDERED),
        ("reduce-scatter", "ring", 1, ORDERED),
        ("all-reduce", "direct", 1, COMPUTED),
        ("mixture-of-experts", "direct", 1, COMPUTED),
        ("all-to-all", "pairwise", 2, COMPUTED),
        ("all-to-all", "pairwise", 1, None),
        ("all-to-all", "direct", 1, None),
        ("all-reduce", "double-tree", 1, None),
        ("all-gather", "direct", 1, None),
        ("reduce-scatter", "direct", 1, None),
    ],
)
def test_collectives_whose_hosts_would_compute_or_watch_departures_are_refused(
    operation: str, algorithm: str, repeat: int, answer: tuple[str, str] | None
) -> None:
    plan = tailcut.loads(COLLECTIVE.format(operation, algorithm, repeat)).plan
    (told,) = [(one["answer"], one["text"]) for one in fields(plan) if one["field"] == "traffic.kind"]
    if answer is None:
        assert told[0] == "done"
    else:
        assert told == answer


@pytest.mark.parametrize(("until", "answer"), [("sent", ORDERED), ("received", None), ("acknowledged", None)])
def test_pools_whose_hosts_would_watch_departures_are_refused(
    tmp_path: Path, until: str, answer: tuple[str, str] | None
) -> None:
    rows = f"id,src,dst,bytes,pool,at_once,until\n1,0,1,9000,p,1,{until}\n2,0,1,9000,p,1,{until}\n"
    (tmp_path / "job.csv").write_text(rows)
    file = tmp_path / "t.toml"
    traffic = 'traffic = { kind = "graph", file = "job.csv" }'
    file.write_text(f'title = "t"\ntopology = {{ kind = "star", hosts = 8, rate = "10Mbps" }}\n{traffic}\n')
    told = answers(file)["traffic.kind"]
    assert told == answer if answer else told[0] == "done"


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
def test_near_realisations_in_hosts_or_fabric_are_accepted(experiment: Path, key: str, value: str) -> None:
    if key == "queue":
        experiment.write_text(experiment.read_text().replace('[queue]\nlimit = "50packets"', '[queue]\nkind = "red"'))
        told = answers(experiment)
    else:
        told = answers(experiment, **{key: value})
    assert "fatal" not in {answer for answer, _ in told.values()}


def test_check_reports_which_time_series_are_recorded(experiment: Path) -> None:
    assert answers(experiment)["series"] == ("done", "no time series is requested")
    for what in ("segments", "attribution", "fabric"):
        assert answers(experiment, **{f"measure.{what}": "true"})[f"measure.{what}"][0] == "near"
    links = {"series.links": '["h0>s0"]', "series.differentials": '["h0>h3"]'}
    told = answers(experiment, **links, **{"series.flows": "[0]", "series.interval": '"2ms"'})
    assert [told[f"series.{name}"][0] for name in ("links", "differentials", "flows")] == ["done"] * 3
    often = answers(experiment, **{"series.flows": "[0]", "series.interval": '"100us"'})["series.flows"]
    assert (often[0], "at most every 1ms" in often[1]) == ("near", True)
    node = answers(experiment, replicate='{ kind = "repflow" }', **{"series.flows": "[0]", **links})
    assert (node["series.flows"][0], node["series.links"][0]) == ("near", "done")
    assert "not recorded" in node["series.flows"][1]


def test_check_shows_the_table_and_exits_by_whether_the_plan_is_realisable(experiment: Path) -> None:
    runner = CliRunner()
    possible = runner.invoke(cli.app, ["check", str(experiment), "--on", "lab"])
    assert possible.exit_code == 0
    assert "transport.min_rto" in possible.output
    refused = runner.invoke(cli.app, ["check", str(experiment), "--on", "lab", "--set", 'transport.initial_rto="10ms"'])
    assert refused.exit_code == 2
    assert "TC-B002" in refused.stderr
    assert "--set transport.initial_rto=1s" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("name", "fabric", "overrides", "field"),
    [
        ("namespaces", "engine", {}, "--on"),
        ("veth", "engine", {}, "--on"),
        ("hosts with cubic", "engine", {"transport.congestion": '{ kind = "cubic" }'}, "transport.congestion"),
        ("tbf", "kernel", {}, "topology.rate"),
        ("hash seeds", "kernel", {}, "balance"),
        ("nft numgen", "kernel", {"balance.kind": '"spray"'}, "balance"),
        ("nft numgen", "kernel", {"balance.kind": '"round-robin"'}, "balance"),
    ],
)
def test_check_and_run_refuse_what_this_machine_lacks_with_the_remedy(
    experiment: Path, missing: Missing, name: str, fabric: str, overrides: dict[str, str], field: str
) -> None:
    plan = tailcut.load(experiment, set=overrides).plan
    assert not any(gap.fatal for gap in tailcut.Lab(fabric=fabric).check(plan, Options()))
    missing[name] = "it is not there"
    fatal = [gap for gap in tailcut.Lab(fabric=fabric).check(plan, Options()) if gap.fatal]
    assert [gap.where for gap in fatal] == [field]
    assert f"{name}: it is not there ({doctor.NEEDS[name][1]})" == fatal[0].reason
    settings = [part for key, value in overrides.items() for part in ("--set", f"{key}={value}")]
    told = CliRunner().invoke(cli.app, ["check", str(experiment), "--on", "lab", "--lab-fabric", fabric, *settings])
    assert (told.exit_code, "TC-B002" in told.stderr) == (2, True)
    assert f"{field}: {name}: it is not there" in " ".join(told.stderr.split())


@pytest.mark.parametrize("name", ["hosts with cubic", "tbf", "hash seeds", "nft numgen", "netem", "red", "fq"])
def test_missing_parts_that_the_plan_does_not_need_are_no_obstacle(
    experiment: Path, missing: Missing, name: str
) -> None:
    missing[name] = "it is not there"
    assert not any(gap.fatal for gap in backend("lab").check(tailcut.load(experiment).plan, Options()))


@pytest.mark.parametrize(
    ("fabric", "overrides"),
    [
        ("engine", {}),
        ("engine", {"replicate.kind": '"repflow"'}),
        ("engine", {"replicate.kind": '"repsyn"'}),
        ("kernel", {}),
        ("kernel", {"balance.kind": '"spray"'}),
        ("kernel", {"balance.kind": '"round-robin"'}),
        ("kernel", {"faults.incidents": '[{ kind = "link-down", link = "h0>s0", at = "1ms", until = "2ms" }]'}),
    ],
)
def test_check_reports_every_field_of_the_schema(experiment: Path, fabric: str, overrides: dict[str, str]) -> None:
    assert untold(tailcut.load(experiment, set=overrides).plan, fabric, json.loads(_core.schema())) == []


def test_check_reports_every_field_of_multipath_tcp(experiment: Path) -> None:
    experiment.write_text(
        experiment.read_text().replace(
            'kind = "tcp"\ninitial_rto = "1s"', 'kind = "mptcp"\ntcp = { initial_rto = "1s" }'
        )
    )
    assert untold(tailcut.load(experiment).plan, "engine", json.loads(_core.schema())) == []


@pytest.mark.parametrize("of", ["SwitchSpec", "DropTail", "TcpSpec"])
def test_a_field_missing_from_the_check_is_detected(experiment: Path, of: str) -> None:
    plan = tailcut.load(experiment).plan
    schema = json.loads(_core.schema())
    kinds = {"DropTail": ("QueueSpec", "drop-tail", "queue"), "TcpSpec": ("TransportSpec", "tcp", "transport")}
    if of in kinds:
        spec, kind, section = kinds[of]
        new = next(one for one in schema["$defs"][spec]["oneOf"] if one["properties"]["kind"]["const"] == kind)
    else:
        section, new = "switch", schema["$defs"][of]
    new["properties"]["unheard"] = {"type": "boolean"}
    assert untold(plan, "kernel", schema) == [f"{section}.unheard"]


def untold(plan: Plan, fabric: str, schema: dict[str, Any]) -> list[str]:
    """The fields that a plan has by the schema, of which the lab says nothing."""
    config = plan["runs"][0]["config"]
    sections: dict[str, Any] = {**config, **config["scheme"]}
    told = [one["field"] for one in fields(plan, fabric)]
    return [
        field
        for name, spec in schema["properties"].items()
        if name not in APART
        for field in leaves(schema, spec, name, sections.get(name, {}).get("kind"))
        if not any(field == one or field.startswith(f"{one}.") for one in told)
    ]


def leaves(schema: dict[str, Any], spec: dict[str, Any], name: str, kind: str | None = None) -> Iterator[str]:
    """The fields of a part of the schema; of its kinds, those of ``kind``."""
    spec = schema["$defs"][spec["$ref"].rpartition("/")[2]] if "$ref" in spec else spec
    if kind is not None:
        spec = next(one for one in spec["oneOf"] if one["properties"]["kind"]["const"] == kind)
    parts = spec.get("properties")
    if parts is None:
        yield name
    for part, more in (parts or {}).items():
        yield from leaves(schema, more, f"{name}.{part}")


@pytest.mark.parametrize(
    ("overrides", "field", "answer"),
    [
        ({}, "reduction_base", "near"),
        ({"transport.reduction_base": '"pipe"'}, "reduction_base", "near"),
        ({"transport.reduction_base": '"window"'}, "reduction_base", "done"),
        ({"transport.recovery": '"newreno"'}, "reduction_base", "done"),
        ({}, "window_growth", "near"),
        ({"transport.window_growth": '"delivered"'}, "window_growth", "done"),
        ({}, "rto_variation", "near"),
        ({"transport.rto_variation": '"linux"'}, "rto_variation", "done"),
        ({}, "clock_granularity", "done"),
        ({"transport.clock_granularity": '"50ms"'}, "clock_granularity", "near"),
        ({}, "delayed_ack_timeout", "done"),
        ({"transport.ack_every": "2", "transport.quick_acks": "16"}, "delayed_ack_timeout", "near"),
    ],
)
def test_check_reports_what_the_kernel_does_in_place_of_a_parameter(
    experiment: Path, overrides: dict[str, str], field: str, answer: str
) -> None:
    assert answers(experiment, **overrides)[f"transport.{field}"][0] == answer


@pytest.mark.parametrize(("kind", "mode"), [("repflow", "mode flow"), ("repsyn", "mode syn")])
def test_repnet_realises_replication(experiment: Path, kind: str, mode: str) -> None:
    told = answers(experiment, **{"replicate.kind": f'"{kind}"'})
    assert "fatal" not in {answer for answer, _ in told.values()}
    assert told["replicate.kind"][0] == "near"
    assert mode in told["replicate.kind"][1]
    open_ended = answers(experiment, **{"replicate.kind": f'"{kind}"', "transport.close": '"none"'})
    assert open_ended["transport.close"][0] == "fatal"


def test_baselines_of_replication_are_reported_to_run_over_node_net(experiment: Path) -> None:
    assert "node:net" not in answers(experiment)["replicate.kind"][1]
    experiment.write_text(experiment.read_text() + '[schemes.RepFlow]\nreplicate = { kind = "repflow" }\n')
    told = [one["text"] for one in fields(tailcut.load(experiment).plan) if one["field"] == "replicate.kind"]
    assert len(told) == 2
    assert any("node:net" in text for text in told)


@pytest.mark.parametrize("program", ["node", "repnet-bench"])
def test_without_repnet_bench_only_replication_is_refused(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(repnet, "program", PROGRAM)
    monkeypatch.setattr(repnet, "BUILT", Path("/nowhere/main.js"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == program else f"/usr/bin/{name}")
    plan = tailcut.load(experiment, set={"replicate.kind": '"repflow"'}).plan
    fatal = [gap for gap in backend("lab").check(plan, Options()) if gap.fatal]
    assert [gap.where for gap in fatal] == ["replicate"]
    assert f"no program `{program}`" in fatal[0].reason
    assert repnet.INSTALL in fatal[0].reason
    assert not any(gap.fatal for gap in backend("lab").check(tailcut.load(experiment).plan, Options()))


def test_a_refused_plan_makes_no_run(experiment: Path, tmp_path: Path) -> None:
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


def test_only_the_lab_repeats() -> None:
    with pytest.raises(BackendError, match="the backend 'sim' has no option 'repeat'") as refused:
        backend("sim", repeat=2)
    assert refused.value.code == "TC-B003"
    with pytest.raises(BackendError, match="repeat = 0: must be at least 1"):
        tailcut.Lab(repeat=0)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_simulator_and_lab_realise_the_labs_experiments(path: Path) -> None:
    if path.stem == "mptcp" and not Path("/proc/sys/net/mptcp/pm_type").exists():
        skipping.missing("the kernel lab: this kernel has no Multipath TCP with subflows from user space")
    plan = tailcut.load(path).plan
    assert [gap for gap in backend("sim").check(plan, Options()) if gap.fatal] == []
    assert [one for one in fields(plan) if one["answer"] == "fatal"] == []
