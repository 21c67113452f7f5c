"""Connections of htsim that wait for triggers."""

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tailcut
from support.imports import finished, imported, read_or_refused, refused
from support.jobs import DATA, rows
from tailcut import imports
from tailcut.imports import ImportOptions
from tailcut.imports.job import MESSAGE, Job

MICROSECONDS = ImportOptions(start_unit_ps=10**6)
HEAD = "Nodes 9\nConnections 2\nTriggers 1\n"
FIRE = "0->1 id 1 start 0 size 9 send_done_trigger 1\n"
WAIT = "1->2 id 2 trigger 1 size 8\n"
ONE = "trigger id 1 oneshot\n"


def of_file(directory: Path, name: str) -> Path:
    """Imports a file of the test data; returns the directory of the experiment."""
    return imported(directory, {name: (DATA / name).read_text()}, MICROSECONDS)


def test_a_barrier_and_a_oneshot_become_waits(tmp_path: Path) -> None:
    found = rows(of_file(tmp_path, "barrier.cm"))
    three = frozenset({"1@acknowledged", "2@acknowledged", "3@acknowledged"})
    assert found == {
        "1": ("0->1 4096 at 0", frozenset()), "2": ("1->2 100000 at 40000", frozenset()),
        "3": ("2->3 8192 at 0", frozenset()), "4": ("3->0 50000", three), "5": ("0->2 1", three),
        "6": ("1->3 20000", frozenset({"4@acknowledged"})),
    }  # fmt: skip


def test_a_multishot_of_one_list_becomes_a_pool(tmp_path: Path) -> None:
    directory = of_file(tmp_path, "pool.cm")
    table = pl.read_csv(directory / "job.csv")
    assert table["pool"].to_list() == [1, 1, 1, 1, 1, None]
    assert table["at_once"].to_list() == [2, 2, 2, 2, 2, None]
    assert rows(directory)["6"] == ("7->0 1000", frozenset({"4@received"}))
    assert 'over = "acknowledged"' in (directory / "experiment.toml").read_text()


@pytest.mark.parametrize("name", ["barrier.cm", "pool.cm"])
def test_jobs_of_triggers_run(tmp_path: Path, name: str) -> None:
    directory = of_file(tmp_path, name)
    assert finished(directory) == 6
    flows = tailcut.run(tailcut.load(directory / "experiment.toml"), out=directory / "results", jobs=1).flows
    start = dict(flows.select("id", "start_ns").iter_rows())
    over = dict(flows.select("id", pl.col("start_ns") + pl.col("fct_ack_ns")).iter_rows())
    if name == "barrier.cm":
        assert start[4] == start[5] == max(over[1], over[2], over[3])
        assert start[6] == over[4]
    else:
        assert (start[1], start[2], start[3], start[4]) == (0, 0, over[1], min(over[3], over[2]))


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        (HEAD + FIRE + WAIT + ONE + "trigger id 2 oneshot\n", "3:10", "1 triggers are announced"),
        (HEAD + FIRE + "1->2 trigger 1 start 0 size 8\n" + ONE, "5:14", "both a start and a trigger"),
        (HEAD + FIRE + "1->2 start 0 trigger 1 size 8\n" + ONE, "5:22", "both a start and a trigger"),
        (HEAD + FIRE + "4->4 trigger 1 size 8\n" + ONE, "5:1", "a flow from a host to itself"),
        (HEAD + FIRE + "1->2 size 8\n" + ONE, "5:1", "the connection has no start"),
        (HEAD + FIRE + "1->2 id 1 trigger 1 size 8\n" + ONE, "5:9", "id 1 is that of line 4"),
        (HEAD + FIRE + "1->2 trigger 9 size 8\n" + ONE, "5:1", "waits for trigger 9, which"),
        (HEAD + FIRE.replace("r 1", "r 9") + WAIT + ONE, "4:1", "fires trigger 9, which"),
        (HEAD + FIRE + WAIT.replace("1->2", "1->99") + ONE, "5:1", "there is no node 99"),
        (HEAD + FIRE + "1->2 trigger 1\n" + ONE, "5:1", "the connection has no size"),
        (HEAD + FIRE + "1->2 trigger 1 size 0\n" + ONE, "5:1", "a flow of 0 bytes"),
        (HEAD + FIRE + "1->2 start now size 8\n" + ONE, "5:12", "'now' is not a number"),
        (HEAD + FIRE + WAIT + "trigger id 1 barrier\n", "6:1", "the barrier has no count"),
        (HEAD + FIRE + WAIT + "trigger id 1 barrier count 2\n", "6:1", "barrier 1 has count 2 and is fired 1 times"),
        (HEAD + FIRE + WAIT + "trigger id 1 barrier count 0\n", "6:28", "count 0"),
        (HEAD + FIRE + WAIT + "trigger id 1 sometimes\n", "6:1", "this is no trigger"),
        (HEAD + FIRE + WAIT + ONE + "trigger id 1 barrier count 1\n", "7:12", "trigger 1 is that of line 6, too"),
        (HEAD + FIRE + "1->2 id 1 start 0 size 8\n1->1 start 0 size 8\n", "5:9", "id 1 is that of line 4, too"),
        (HEAD + FIRE + WAIT + "trigger id 0 oneshot\n", "6:12", "trigger 0: triggers are counted from 1"),
        (HEAD + FIRE + WAIT + "trigger id 1 oneshot now\n", "6:22", "'now' behind a oneshot"),
        (HEAD + FIRE + FIRE.replace("id 1", "id 2") + ONE, "6:1", "oneshot 1 is fired 2 times"),
        (HEAD + FIRE.partition(" send")[0] + "\n" + WAIT + ONE, "6:1", "no connection fires trigger 1"),
        (HEAD + FIRE + WAIT + "trigger id 1 oneshot\nfailure x\n", "7:1", "failures cannot be imported"),
        (HEAD + FIRE + WAIT + "trigger id 1 multishot\n", "6:1", "starts connections that do not"),
        (HEAD + FIRE + "1->2 trigger 1 size 8 send_done_trigger 1\ntrigger id 1 multishot\n", "6:1", "of several"),
        (HEAD + FIRE.replace("send", "recv") + WAIT + "trigger id 1 multishot\n", "6:1", "as messages are"),
        (HEAD + "0->2 trigger 1 size 8 send_done_trigger 1\n" + FIRE + "trigger id 1 multishot\n", "6:1", "stand be"),
        (HEAD.replace("Triggers 1\n", "") + FIRE + WAIT + ONE, "5:1", "no line says how many"),
        (HEAD + FIRE.replace("start 0", "start 86400000000000000") + WAIT + ONE, "4:1", "at most a day"),
        (HEAD + FIRE.replace("start 0", "start 99999999999999999999000") + WAIT + ONE, "4:1", "a start at 99,999,999"),
        (
            "Nodes 9\nConnections 2\nTriggers 2\n"
            "1->2 trigger 2 size 8 send_done_trigger 1\n2->1 trigger 1 size 8 recv_done_trigger 2\n"
            "trigger id 1 oneshot\ntrigger id 2 oneshot\n",
            "4:1", "line 4 waits for line 5, which waits for line 4: none of them can start",
        ),
    ],
)  # fmt: skip
def test_faults_are_refused_by_line(tmp_path: Path, text: str, place: str, what: str) -> None:
    error = refused(tmp_path, {"a.cm": text})
    assert f"a.cm:{place}: " in str(error), error
    assert what in str(error)


def test_the_first_of_many_faults_is_refused() -> None:
    with pytest.raises(imports.ImportRefusedError, match=r"malformed.cm:5:19: the connection has both"):
        imports.read([DATA / "malformed.cm"])


@pytest.mark.parametrize(
    "text",
    [
        (HEAD + FIRE + WAIT + "trigger id 1 oneshot\n").replace("\n", "\r\n"),
        "# first\n" + HEAD + "trigger\tid 1   oneshot # here\n" + FIRE + "# between\n" + WAIT,
        HEAD + FIRE + "1->2 trigger 1 id 2 size 8 prio 3 addon\ntrigger id 1 oneshot",
        HEAD + FIRE + "1->2 size 8 msg 4 trigger 1 id 2\ntrigger id 1 barrier count 1",
        HEAD + FIRE + "1->2 size 8 trigger 1 msg id 2\ntrigger id 1 oneshot",
    ],
)
def test_forms_of_files(tmp_path: Path, text: str) -> None:
    assert rows(imported(tmp_path, {"a.cm": text})) == {
        "1": ("0->1 9", frozenset()),
        "2": ("1->2 8", frozenset({"1@acknowledged"})),
    }


def test_sizes_go_beyond_32_bits(tmp_path: Path) -> None:
    text = HEAD + FIRE.replace("size 9", "size 3000000000") + WAIT + "trigger id 1 oneshot\n"
    assert rows(imported(tmp_path, {"a.cm": text}))["1"][0] == "0->1 3000000000"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["barrier.cm", "pool.cm"])
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str, seed: int) -> None:
    stream = random.Random(seed)  # noqa: S311
    words = (DATA / name).read_text().split(" ")
    for _ in range(200):
        damaged = list(words)
        for _ in range(stream.randint(1, 3)):
            at = stream.randrange(len(damaged))
            damaged[at] = stream.choice([*words, "", "\n", "-1", "99999999999999999999", "#"])
        (tmp_path / "a.cm").write_text(" ".join(damaged))
        read_or_refused([tmp_path / "a.cm"])


def test_rows_of_a_pool_say_until_when_they_keep_their_place() -> None:
    messages = Job(
        ids=np.array([1, 2]),
        kinds=np.full(2, MESSAGE, dtype=np.uint8),
        one=np.array([0, 0]),
        other=np.array([1, 2]),
        amounts=np.array([5, 6]),
        first=np.array([0, 0, 0]),
        waits=np.array([], dtype=np.int64),
        pool=np.array([0, 1]),
        at_once=np.array([0, 1]),
        until="sent",
    )
    head, alone, pooled = "".join(messages.text()).splitlines()
    assert head == "id,src,dst,bytes,pool,at_once,until,host,processor,duration_ns,after"
    assert (alone, pooled) == ("1,0,1,5,,,,,,,", "2,0,2,6,1,1,sent,,,,")
