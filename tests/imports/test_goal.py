"""Schedules of GOAL, as text and binary."""

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tailcut
from support.imports import finished, read_or_refused, refused
from support.jobs import DATA, binary, named, of_text, rows
from tailcut import imports
from tailcut.imports import ImportOptions
from tailcut.imports.job import JOIN_PROCESSOR

RING = {
    "4": "m00", "6": "c0", "8": "m01", "11": "d0", "15": "m10", "17": "c1", "19": "m11", "22": "d1",
    "26": "m20", "28": "c2", "30": "m21", "33": "d2",
}  # fmt: skip
HEAD = "num_ranks 2\nrank 0 {\n"
TAIL = "}\nrank 1 {\n}\n"


def content(name: str) -> str:
    """Returns a file of the test data."""
    return (DATA / name).read_text()


def small(*lines: str, other: str = "") -> str:
    """Returns a schedule of two ranks: a message of rank 0, and these lines from line 4 on."""
    return (
        HEAD
        + "send 1b to 1 tag 9\n"
        + "".join(f"{line}\n" for line in lines)
        + "}\nrank 1 {\nrecv 1b from 0 tag 9\n"
        + other
        + "}\n"
    )


def test_a_ring_waits_for_its_sums(tmp_path: Path) -> None:
    found = named(of_text(tmp_path, content("ring3.goal")), RING)
    assert found == {
        "m00": ("0->1 3333", frozenset()), "m01": ("0->1 3334", frozenset({"c0"})),
        "m10": ("1->2 3334", frozenset()), "m11": ("1->2 3333", frozenset({"c1"})),
        "m20": ("2->0 3334", frozenset()), "m21": ("2->0 3334", frozenset({"c2"})),
        "c0": ("host 0 cpu 0 100", frozenset({"m20"})), "d0": ("host 0 cpu 0 100", frozenset({"m21"})),
        "c1": ("host 1 cpu 0 100", frozenset({"m00"})), "d1": ("host 1 cpu 0 100", frozenset({"m01"})),
        "c2": ("host 2 cpu 0 100", frozenset({"m10"})), "d2": ("host 2 cpu 0 100", frozenset({"m11"})),
    }  # fmt: skip


def test_waits_for_starts_pass_on_what_the_operation_waits_for(tmp_path: Path) -> None:
    names = {
        "4": "calc1", "5": "A", "7": "B", "11": "calc2", "14": "L", "21": "w1", "23": "w2", "25": "O", "31": "F",
    }  # fmt: skip
    found = named(of_text(tmp_path, content("overlap.goal")), names)
    assert found == {
        "calc1": ("host 0 cpu 0 5000", frozenset()), "A": ("0->1 4096", frozenset({"calc1"})),
        "B": ("0->1 100", frozenset({"calc1"})), "calc2": ("host 0 cpu 1 2000", frozenset({"calc1"})),
        "F": ("2->0 300", frozenset()), "w1": ("host 1 cpu 0 1000", frozenset({"A"})),
        "w2": ("host 1 cpu 1 3000", frozenset({"B"})), "O": ("1->2 300", frozenset({"w1", "w2"})),
        "L": ("0->2 1", frozenset({"calc2", "F"})),
    }  # fmt: skip


@pytest.mark.parametrize(("eager", "z"), [(False, "X"), (True, "w")])
def test_wildcards_are_paired_by_rank(tmp_path: Path, *, eager: bool, z: str) -> None:
    names = {"8": "join", "11": "go", "13": "big", "18": "end", "23": "P", "29": "w", "30": "X", "33": "Z"}
    found = named(of_text(tmp_path, content("wildcards.goal"), ImportOptions(eager=eager)), names)
    assert found == {
        "w": ("host 2 cpu 0 7", frozenset()), "P": ("1->0 1000", frozenset()), "X": ("2->0 1000", frozenset({"w"})),
        "join": ("host 0 cpu 0 0", frozenset({"P", "X"})), "go": ("0->1 1", frozenset({"join"})),
        "big": ("0->2 2000", frozenset({"join"})), "end": ("host 0 cpu 0 10", frozenset()),
        "Z": ("2->1 10", frozenset({z})),
    }  # fmt: skip


def test_the_summary_says_what_was_changed() -> None:
    _, found = imports.read([DATA / "wildcards.goal"])
    told = "\n".join(found.notes)
    for part in ("2 receives from any source", "1 empty messages", "1 messages of a rank to itself", "--nics N"):
        assert part in told
    assert found.hosts == 4


def test_interfaces_may_be_hosts(tmp_path: Path) -> None:
    found = rows(of_text(tmp_path, content("overlap.goal"), ImportOptions(nics=2)))
    assert found["25"][0] == "3->4 300"
    assert found["31"][0] == "4->1 300"
    assert found["21"][0] == "host 2 cpu 0 1000"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (small("a: calc 1", "a requires b"), 5, "b is not defined above"),
        (small("calc 1.5"), 4, "numbers are whole"),
        (small("a: calc 1", "a: calc 2"), 5, "label a is that of line 4"),
        (small("send 8b to 9"), 4, "there is no rank 9"),
        (small("send 8b to 1 tag 1"), 4, "no receive of rank 1 takes the message with tag 1"),
        (small(other="recv 8b from 0 tag 2\n"), 7, "no message with tag 2 from rank 0 is left"),
        (small(other="recv 8b from -1 tag 2\n"), 7, "no message with tag 2 from any rank is left"),
        (small("a: calc 1", "b: calc 1", "a irequires b", "b requires a"), 6, "line 4 waits for line 5"),
        (small("a: calc 1", "a irequires a"), 5, "line 4 waits for line 4"),
        (small("a: calc 1", "a requires a"), 5, "line 4 waits for line 4"),
        (small("send 1b to 0"), 4, "no receive of rank 0 takes the message with tag 0"),
        (small("recv 1b from -1 tag 3", "send 1b to 0 tag 4"), 5, "no receive of rank 0 takes the message with tag 4"),
        (small("send 1b to 1 tag 9"), 4, "no receive of rank 1 takes the message with tag 9"),
        (small(other="recv 1b from 0 tag 9\n"), 7, "no message with tag 9 from rank 0 is left"),
        (small(other="recv 1b from -1 tag 9\n"), 7, "no message with tag 9 from any rank is left"),
        ("rank 0 {\n}\nnum_ranks 2\nrank 1 {\n}\n", 3, "num_ranks stands behind the first rank"),
        ("rank 0 {\n}\nrank 1 {\nnum_ranks 2\n}\n", 4, "num_ranks stands behind the first rank"),
        ("rank 0 {\n}\nrank 1 {\n}\nnum_ranks 1\n", 5, "num_ranks stands behind the first rank"),
        (small("a: calc 1", "b: calc 1", "a requires b b"), 6, "one label waits for one label"),
        ("num_ranks 2\nrank 0 {\n}\n", 3, "there is no block for rank 1"),
        ("num_ranks 2\nrank 1 {\n}\n", 2, "rank 1 where rank 0"),
        ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n", 4, "rank 0 where rank 1"),
        ("rank 0 {\nsend 1b to 1\n}\n", 3, "no num_ranks"),
        ("num_ranks 1\nnum_ranks 1\n", 2, "num_ranks is given twice"),
        ("num_ranks 0\n", 1, "0 ranks"),
        ("num_ranks 99999999\n", 1, "hosts: at most"),
        ("rank 0 {\nsend 1b to 3\nnum_ranks 2\n}\nrank 1 {\n}\n", 2, "there is no rank 3"),
        (small("calc 5 nic 0"), 4, "no operation"),
        (small("send 5b to 1 cpu 0 tag 1"), 4, "no operation"),
        (small("calc 5 }"), 4, "an operation ends with its line"),
        (small("calc 5 // five"), 4, "a comment behind an operation"),
        (small("# five"), 4, "# begins no comment"),
        (small("/* never"), 4, "the comment does not end"),
        (small("send: calc 5"), 4, "send is no label"),
        (small("calc 0x5"), 4, "no operation"),
        (small("calc -5"), 4, "no operation"),
        (small("calc 1 cpu 256"), 4, "cpu 256"),
        (small("calc 99999999999999999999"), 4, "eleven days"),
        (small("send 99999999999999999999b to 1"), 4, "3,000 GB"),
        (small("send 5b to -1"), 4, "no operation"),
        (HEAD + "calc 5\n", 3, "rank 0 does not end"),
        (HEAD + TAIL, 1, "no message"),
        ("", 0, "no num_ranks"),
    ],
)  # fmt: skip
def test_faults_are_refused_by_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    error = refused(tmp_path, {"a.goal": text})
    assert what in str(error), str(error)
    assert f"a.goal:{line}:" in str(error)
    assert error.code in ("TC-I002", "TC-I003")


def test_the_first_of_many_faults_is_refused() -> None:
    with pytest.raises(imports.ImportRefusedError, match=r"malformed.goal:5:1: l3 is not defined above"):
        imports.read([DATA / "malformed.goal"])


def test_a_cycle_over_two_ranks_is_refused(tmp_path: Path) -> None:
    block = "rank {0} {{\nr: recv 1b from {1}\ns: send 1b to {1}\ns requires r\n}}\n"
    error = refused(tmp_path, {"a.goal": "num_ranks 2\n" + block.format(0, 1) + block.format(1, 0)})
    assert "a.goal:4:1: line 4 waits for line 9, which waits for line 4: none of them can start" in str(error)


def test_a_circle_names_no_row_that_joins_waits(tmp_path: Path) -> None:
    calcs = "".join(f"c{at}: calc 5\n" for at in range(9))
    waits = "".join(f"r requires c{at}\n" for at in range(9))
    own = f"{calcs}in: recv 1b from 1 tag 1\nc0 requires in\nr: recv 1b from 1 tag 2\n{waits}"
    other = "r: recv 1b from 0\na: send 1b to 0 tag 1\na requires r\nsend 1b to 0 tag 2\n"
    text = f"{HEAD}{own}s: send 1b to 1\ns requires r\n}}\nrank 1 {{\n{other}}}\n"
    error = refused(tmp_path, {"a.goal": text})
    assert "line 3 waits for line 29, which waits for line 24, which waits for line 3: none" in str(error)


@pytest.mark.parametrize(
    ("receives", "sends", "expected"),
    [
        ("recv 1b from -1 tag 1\nrecv 1b from -1 tag -1\n", ("tag 1", "tag 1"), {"9", "12"}),
        ("recv 1b from -1 tag -1\nrecv 1b from -1 tag 1\n", ("tag 2", "tag 1"), {"9", "12"}),
        ("recv 1b from -1 tag 5\nrecv 1b from 2 tag 6\n", ("tag -1", "tag 6"), {"9", "12"}),
        ("recv 1b from -1\nrecv 1b from -1\nsend 1b to 0\nrecv 1b from -1\n", ("", ""), {"11", "14"}),
        ("send 1b to 0 tag 4\nrecv 1b from -1 tag -1\nrecv 1b from -1\nrecv 1b from -1\n", ("", ""), {"11", "14"}),
    ],
)
def test_receives_of_any_source_take_what_is_left(
    tmp_path: Path, receives: str, sends: tuple[str, str], expected: set[str]
) -> None:
    blocks = [f"send 1b to 2 tag 8\n{receives}", *(f"send 1b to 0 {tag}\n" for tag in sends)]
    blocks[2] += "recv 1b from 0 tag 8\n"
    blocks[0] += "calc 1\n"
    text = "num_ranks 3\n" + "".join(f"rank {rank} {{\n{block}}}\n" for rank, block in enumerate(blocks))
    messages = {own for own, (what, _) in rows(of_text(tmp_path, text)).items() if "->0" in what}
    assert messages == expected


@pytest.mark.parametrize(
    "line",
    [
        "calc1: calc 5", "rank_a: calc 5", "tag: calc 5", "  calc 5", "\tx :calc 5  ", "calc 5cpu 0", "// c",
        "/* a */", "/* a\nb */ calc 5", "", "   ", "/* a */ // b", "calc 5 cpu 255",
    ],
)  # fmt: skip
def test_what_txt2bin_takes_is_read(tmp_path: Path, line: str) -> None:
    assert rows(of_text(tmp_path, small(line)))["3"] == ("0->1 1", frozenset())


@pytest.mark.parametrize("tag", ["tag -1", "tag 4294967295", "tag 18446744073709551615", "tag 77123456789012"])
def test_tags_have_64_bits_or_are_any(tmp_path: Path, tag: str) -> None:
    text = f"{HEAD}send 5b to 1 tag 77123456789012\n}}\nrank 1 {{\nrecv 5b from 0 {tag}\n}}\n"
    assert rows(of_text(tmp_path, text)) == {"3": ("0->1 5", frozenset())}


@pytest.mark.parametrize("change", ["crlf", "last", "bom", "gz", "tight", "behind", "late"])
def test_forms_of_files(tmp_path: Path, change: str) -> None:
    text = content("ring3.goal")
    changed = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "last": text.rstrip().encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "gz": gzip.compress(text.encode()),
        "tight": text.replace("b to", "bto").replace(" tag", "tag").encode(),
        "behind": (text + "anything at all\n").encode(),
        "late": text.replace("num_ranks 3\n", "\n").replace("}", "num_ranks 3\n}", 1).encode(),
    }[change]
    name = "a.goal.gz" if change == "gz" else "a.goal"
    if change == "late":
        assert len(rows(of_text(tmp_path, changed, name=name))) == 12
    else:
        assert set(rows(of_text(tmp_path, changed, name=name))) == set(RING)


def test_a_chain_of_receives_stays_small(tmp_path: Path) -> None:
    """Each receive waits for the one before: without rows that join waits there would be about 20,000."""
    count = 200
    sends = "".join(f"send 1b to 1 tag {at}\n" for at in range(count))
    chain = "".join(
        f"r{at}: recv 1b from 0 tag {at}\n"
        + (f"r{at} requires r{at - 1}\n" if at else "")
        + f"c{at}: calc 1\nc{at} requires r{at}\n"
        for at in range(count)
    )
    found = rows(of_text(tmp_path, HEAD + sends + "}\nrank 1 {\n" + chain + "}\n"))
    assert sum(len(after) for _, after in found.values()) < 2_500
    joins = [what for what, _ in found.values() if f"cpu {JOIN_PROCESSOR} 0" in what]
    assert 0 < len(joins) < count


@pytest.mark.parametrize("name", ["ring3", "overlap", "wildcards"])
def test_binary_schedules_are_the_same_job(tmp_path: Path, name: str) -> None:
    text = content(f"{name}.goal").replace("300 b", "300b")
    plain = "\n".join(line for line in text.splitlines() if line[:2] not in ("//", "/*", "  "))
    (tmp_path / "t").mkdir()
    (tmp_path / "b").mkdir()
    of_words = rows(of_text(tmp_path / "t", plain))
    of_bytes = rows(of_text(tmp_path / "b", binary(plain)))
    names = dict(zip(of_bytes, of_words, strict=True))
    assert {
        names[own]: (what, frozenset(names[one] for one in after)) for own, (what, after) in of_bytes.items()
    } == of_words


def test_damaged_binary_schedules_are_refused(tmp_path: Path) -> None:
    whole = binary(content("ring3.goal").split("\n", 1)[1])
    for end in range(8, len(whole)):
        (tmp_path / "a.goal").write_bytes(whole[:end])
        with pytest.raises(imports.ImportRefusedError):
            imports.read([tmp_path / "a.goal"])
    spoilt = (2342).to_bytes(8, "little") + whole[8:]
    assert "--save-mem" in str(refused(tmp_path, {"a.goal": spoilt}))


def test_binary_schedules_are_known_by_their_content(tmp_path: Path) -> None:
    whole = binary(content("ring3.goal").split("\n", 1)[1])
    assert len(rows(of_text(tmp_path, whole, name="a.bin"))) == 12
    error = refused(tmp_path, {"a.goal.gz": gzip.compress(whole)})
    assert "a.goal.gz: a compressed binary schedule" in str(error)


def test_faults_of_binary_schedules_name_the_node(tmp_path: Path) -> None:
    text = "rank 0 {\ncalc 1\na: send 1b to 1\na requires a\n}\nrank 1 {\nrecv 1b from 0\n}\n"
    error = refused(tmp_path, {"a.goal": binary(text)})
    assert "a.goal: node 1: node 1 waits for node 1: none of them can start" in str(error)


def test_lines_that_are_no_text_are_named(tmp_path: Path) -> None:
    error = refused(tmp_path, {"a.goal": HEAD.encode() + b"send 1b to \xff\n"})
    assert "a.goal: line 3 is not text in UTF-8" in str(error)


@pytest.mark.parametrize("work", ["send 3000000000000b to 1 tag 9", "calc 100000000000000"])
def test_what_is_imported_loads_however_long_it_takes(tmp_path: Path, work: str) -> None:
    receives = "recv 1b from 0 tag 9\n" * 5 if "send" in work else ""
    directory = of_text(tmp_path, small(*[work] * 5, other=receives))
    assert tailcut.load(directory / "experiment.toml").plan["runs"]


def test_what_is_imported_runs(tmp_path: Path) -> None:
    directory = of_text(tmp_path, content("ring3.goal"))
    assert finished(directory) == 6
    jobs = tailcut.run(tailcut.load(directory / "experiment.toml"), out=directory / "results", jobs=1).jobs
    assert jobs["finished"].to_list() == [True]


@pytest.mark.parametrize("name", ["ring3.goal", "overlap.goal"])
def test_the_plan_of_an_import_says_how_large_its_run_is(tmp_path: Path, name: str) -> None:
    directory = of_text(tmp_path, content(name))
    result = tailcut.run(tailcut.load(directory / "experiment.toml"), out=directory / "results", jobs=1)
    [planned] = result.plan["runs"]
    counted = result.runs["packet_hops"].item()
    assert planned["facts"]["expected_packet_hops"] == pytest.approx(counted, rel=0.1)


@st.composite
def schedules(draw: st.DrawFn) -> tuple[str, dict[str, tuple[str, set[str]]]]:
    """Draws an acyclic graph; returns it as a schedule, and its rows by label."""
    ranks = draw(st.integers(2, 4))
    blocks: list[list[str]] = [[] for _ in range(ranks)]
    known: list[dict[str, str]] = [{} for _ in range(ranks)]  # of each rank: label, and the row that it stands for
    expected: dict[str, tuple[str, set[str]]] = {}
    for at in range(draw(st.integers(1, 25))):
        rank = draw(st.integers(0, ranks - 1))
        waits = draw(st.sets(st.sampled_from(sorted(known[rank])), max_size=3)) if known[rank] else set()
        row = f"o{at}"
        if draw(st.booleans()) or not at:
            other = (rank + draw(st.integers(1, ranks - 1))) % ranks
            size, tag = draw(st.integers(1, 10**6)), draw(st.integers(0, 2))
            blocks[rank].append(f"{row}: send {size}b to {other} tag {tag}")
            blocks[other].append(f"r{at}: recv {size}b from {rank} tag {tag}")
            known[other][f"r{at}"] = row
            what = f"{rank}->{other} {size}"
        else:
            ns, cpu = draw(st.integers(0, 10**6)), draw(st.integers(0, 3))
            blocks[rank].append(f"{row}: calc {ns} cpu {cpu}")
            what = f"host {rank} cpu {cpu} {ns}"
        expected[row] = (what, {known[rank][label] for label in waits})
        blocks[rank] += [f"{row} requires {label}" for label in sorted(waits)]
        known[rank][row] = row
    text = f"num_ranks {ranks}\n"
    for rank, block in enumerate(blocks):
        text += f"rank {rank} {{\n" + "".join(f"{line}\n" for line in block) + "}\n"
    return text, expected


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schedules())
def test_random_graphs_come_back(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, dict[str, tuple[str, set[str]]]]
) -> None:
    text, expected = case
    for form in (text.encode(), binary(text)):
        found = rows(of_text(tmp_path_factory.mktemp("g"), form))
        labels = [line.split(":")[0] for line in text.splitlines() if ": send" in line or ": calc" in line]
        names = dict(zip(found, labels, strict=True))
        assert {names[own]: (what, {names[one] for one in after}) for own, (what, after) in found.items()} == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["ring3.goal", "overlap.goal", "wildcards.goal", "binary"])
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str, seed: int) -> None:
    stream = random.Random(seed)  # noqa: S311
    whole = binary(content("ring3.goal").split("\n", 1)[1]) if name == "binary" else content(name).encode()
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(stream.randint(1, 4)):
            at = stream.randrange(8 if name == "binary" else 0, len(damaged))
            match stream.randrange(3):
                case 0:
                    damaged[at] = stream.randrange(256)
                case 1:
                    del damaged[at : at + stream.randint(1, 9)]
                case _:
                    damaged[at:at] = stream.choice([b"\n", b"}", b" ", b"9", b"requires", b"*/", b"l1: calc 1\n"])
        (tmp_path / "a.goal").write_bytes(damaged)
        read_or_refused([tmp_path / "a.goal"])


def test_labels_are_apart_however_they_are_numbered(tmp_path: Path) -> None:
    names = ["a1", "a01", "a", "a999999999", "a9999999999", "a0", "a00", "b1", "a_1"]
    lines = [f"{name}: calc {at}" for at, name in enumerate(names, 1)]
    waits = [f"{name} requires {names[0]}" for name in names[1:]]
    found = rows(of_text(tmp_path, small(*lines, *waits)))
    assert found["4"] == ("host 0 cpu 0 1", frozenset())
    for at in range(2, len(names) + 1):
        assert found[str(3 + at)] == (f"host 0 cpu 0 {at}", frozenset({"4"}))


@pytest.mark.parametrize("label", ["x7", "x07", "x", "x999999999"])
def test_a_label_that_is_given_twice_is_refused(tmp_path: Path, label: str) -> None:
    error = refused(tmp_path, {"a.goal": small(f"{label}: calc 1", "y: calc 1", f"{label}: calc 2")})
    assert f"a.goal:6:1: label {label} is that of line 4, too" in str(error)
