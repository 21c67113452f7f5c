import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailcut
from support import made_up
from tailcut import StoreError
from tailcut.results import State, Store, drafts
from tailcut.results.locks import locked

PLAN = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2])
RUN, OTHER = PLAN["runs"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "results", PLAN)


def test_a_run_is_absent_until_it_is_stored_and_complete_after(store: Store) -> None:
    assert store.state(RUN["id"]) is State.ABSENT
    made_up.put(store, RUN, made_up.flows([100]))
    assert store.state(RUN["id"]) is State.COMPLETE
    assert store.state(OTHER["id"]) is State.ABSENT


def test_stored_tables_say_what_they_are(store: Store) -> None:
    import polars as pl

    made_up.put(store, RUN, made_up.flows([100]))
    about = json.loads(pl.read_parquet_metadata(store.path(RUN["id"]) / "flows.parquet")["tailcut"])
    assert about["table"] == "flows"
    assert about["seed"] == 1
    assert about["config"] == RUN["config"]
    assert about["units"]["bytes"] == "application bytes"


def test_a_run_can_be_replaced(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    made_up.put(store, RUN, made_up.flows([100]), capture=["h0"])
    assert store.state(RUN["id"]) is State.COMPLETE
    assert store.run_record(RUN["id"])["capture"] == ["h0"]
    assert sorted(path.name for path in store.directory.joinpath("runs").iterdir()) == [RUN["id"]]


@settings(max_examples=40)
@given(name=st.sampled_from(["flows.parquet", "run.json"]), data=st.data())
def test_a_run_with_any_byte_changed_or_cut_is_damaged(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store.create(tmp_path_factory.mktemp("damage") / "results", PLAN)
    made_up.put(store, RUN, made_up.flows([100, 200]))
    path = store.path(RUN["id"]) / name
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans(), label="cut"):
        path.write_bytes(content[:at])
    else:
        content[at] ^= 0x80  # no longer ASCII, so never the same JSON either
        path.write_bytes(content)
    assert store.verify(RUN["id"]) is State.DAMAGED
    assert store.state(RUN["id"]) is State.DAMAGED


def changed_with_its_old_time(path: Path) -> None:
    """Flips a bit as a failing disk does: size and time stay."""
    content, was = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def test_a_file_with_another_time_is_read_whole(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    path = store.path(RUN["id"]) / "flows.parquet"
    changed_with_its_old_time(path)
    assert store.state(RUN["id"]) is State.COMPLETE, "nobody looked"
    os.utime(path, ns=(1, 1))
    assert store.state(RUN["id"]) is State.DAMAGED


def test_copied_files_with_other_times_are_intact(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    for file in store.path(RUN["id"]).iterdir():
        os.utime(file, ns=(1, 1))
    assert store.state(RUN["id"]) is State.COMPLETE


def test_files_of_the_size_and_time_that_they_were_written_with_are_not_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up.put(store, RUN, made_up.flows([100]))

    def read(path: Path) -> str:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("tailcut.results.run_record.digest", read)
    assert store.state(RUN["id"]) is State.COMPLETE
    with pytest.raises(AssertionError, match="was read"):
        store.verify(RUN["id"])


def test_damage_found_by_verify_stays_known(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    changed_with_its_old_time(store.path(RUN["id"]) / "flows.parquet")
    assert store.verify(RUN["id"]) is State.DAMAGED
    assert store.state(RUN["id"]) is State.DAMAGED


def test_a_run_of_an_older_version_that_noted_no_times_is_read_whole(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    record = store.path(RUN["id"]) / "run.json"
    about = json.loads(record.read_text())
    for file in about["files"].values():
        del file["modified_ns"]
    record.write_text(json.dumps(about))
    assert store.state(RUN["id"]) is State.COMPLETE
    changed_with_its_old_time(store.path(RUN["id"]) / "flows.parquet")
    assert store.state(RUN["id"]) is State.DAMAGED


def test_a_run_without_one_of_its_files_is_damaged(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    (store.path(RUN["id"]) / "flows.parquet").unlink()
    assert store.state(RUN["id"]) is State.DAMAGED


def test_a_failure_while_storing_leaves_nothing(store: Store) -> None:
    with pytest.raises(TypeError):
        store.put(RUN["id"], {"flows.parquet": b"whole"}, {"not JSON": object()})
    assert list((store.directory / "runs").iterdir()) == []


def test_a_directory_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(StoreError, match=r"no plan\.json") as caught:
        Store.create(tmp_path, PLAN)
    assert caught.value.code == "TC-S001"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_opening_a_directory_without_results_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        tailcut.open_results(tmp_path)
    assert (caught.value.code, "tailcut run" in str(caught.value.hint)) == ("TC-S002", True)


def test_a_damaged_plan_is_reported_as_such(store: Store) -> None:
    (store.directory / "plan.json").write_text('{"format": 1, "runs": [')
    with pytest.raises(StoreError) as caught:
        store.plan()
    assert caught.value.code == "TC-S003"


def test_a_plan_of_another_format_is_refused(store: Store) -> None:
    (store.directory / "plan.json").write_text(json.dumps(PLAN | {"format": 99}))
    with pytest.raises(StoreError) as caught:
        store.plan()
    assert caught.value.code == "TC-S004"


def test_a_run_of_another_format_is_reported_and_not_made_again(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    record = store.path(RUN["id"]) / "run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"format": 99}))
    with pytest.raises(StoreError, match=r"run\.json has format 99; this version reads 1") as caught:
        store.state(RUN["id"])
    assert caught.value.code == "TC-S004"
    assert "--out" in str(caught.value.hint)


def test_a_plan_of_another_format_is_not_replaced(store: Store) -> None:
    plan = store.directory / "plan.json"
    plan.write_text(json.dumps(PLAN | {"format": 99}))
    with pytest.raises(StoreError) as caught:
        Store.create(store.directory, PLAN)
    assert caught.value.code == "TC-S004"
    assert json.loads(plan.read_text())["format"] == 99


def test_more_seeds_add_to_what_is_there(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    again = Store.create(store.directory, made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2, 3]))
    states = [again.state(run["id"]) for run in again.plan()["runs"]]
    assert states == [State.COMPLETE, State.ABSENT, State.ABSENT]


CLAIMING = """
import sys
from pathlib import Path
from tailcut.results import Store
with Store(Path(sys.argv[1])).claim(sys.argv[2]) as ours:
    print(ours)
"""


def test_a_claimed_run_cannot_be_claimed_by_another_process(store: Store) -> None:
    def claim_elsewhere() -> str:
        command = [sys.executable, "-c", CLAIMING, str(store.directory), RUN["id"]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    with store.claim(RUN["id"]) as ours:
        assert ours
        assert claim_elsewhere() == "False"
    assert claim_elsewhere() == "True"


def test_a_lock_leaves_no_file_behind(tmp_path: Path) -> None:
    with locked(tmp_path / "lock", wait=True) as held:
        assert held
    assert list(tmp_path.iterdir()) == []


STORING_FOREVER = """
import sys
from itertools import count
from pathlib import Path
from support import made_up
from tailcut.results import Store
store = Store(Path(sys.argv[1]))
run = store.plan()["runs"][0]
table = made_up.flows([float(i % 977) for i in range(20_000)])
print("ready", flush=True)
for number in count():
    made_up.put(store, run, table, capture=[f"h{number}"])
    print("stored", flush=True)
"""


@pytest.mark.parametrize("patience", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_a_process_killed_at_any_point_leaves_a_run_whole_or_absent(store: Store, patience: int) -> None:
    """SIGKILL hits a process that does nothing but store, ``patience`` milliseconds after it has stored once."""
    process = subprocess.Popen(
        [sys.executable, "-c", STORING_FOREVER, str(store.directory)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "POLARS_MAX_THREADS": "1"},
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        try:
            process.wait(patience / 1000)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
    assert store.state(RUN["id"]) in (State.ABSENT, State.COMPLETE)
    store.clear_leftovers()
    left = {path.name for path in (store.directory / "runs").iterdir()}
    assert left <= {RUN["id"], f".{RUN['id']}.lock"}
    made_up.put(store, RUN, made_up.flows([float(i % 977) for i in range(20_000)]))
    assert store.state(RUN["id"]) is State.COMPLETE


def test_drafts_of_a_claimed_run_are_kept(store: Store) -> None:
    draft = store.directory / "runs" / f".{RUN['id']}.draft.tmp"
    with locked(store.directory / "runs" / f".{RUN['id']}.lock", wait=False):
        draft.mkdir()
        assert store.clear_leftovers() == 0
        assert draft.exists()
    assert store.clear_leftovers() == 1
    assert not draft.exists()


def test_where_the_file_system_has_no_locks_a_run_can_be_claimed_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with store.claim(RUN["id"]) as ours:
        assert ours


def test_the_same_run_again_is_not_written_again(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    first = store.path(RUN["id"]).stat().st_ino
    made_up.put(store, RUN, made_up.flows([100]))
    assert store.path(RUN["id"]).stat().st_ino == first


def test_a_run_made_twice_with_different_tables_is_reported_as_such(store: Store) -> None:
    made_up.put(store, RUN, made_up.flows([100]))
    with pytest.raises(StoreError, match="made twice and its tables differ") as caught:
        made_up.put(store, RUN, made_up.flows([200]))
    assert caught.value.code == "TC-S011"
    assert store.state(RUN["id"]) is State.COMPLETE


def test_a_draft_stays_while_its_maker_is_alive(store: Store) -> None:
    """Also where another store believes that it holds the lock."""
    with store.scratch(RUN["id"]) as draft:
        assert Store(store.directory).clear_leftovers() == 0
        assert draft.exists()
    assert not draft.exists()


DRAFTING = """
import sys
from pathlib import Path
from tailcut.results import Store, drafts
drafts.draft_path(Path(sys.argv[1]), sys.argv[2]).mkdir()
"""


def test_a_draft_goes_when_its_maker_has_gone(store: Store) -> None:
    subprocess.run([sys.executable, "-c", DRAFTING, str(store.directory / "runs"), RUN["id"]], check=True)
    assert store.clear_leftovers() == 1


def test_a_draft_of_another_machine_goes_when_nothing_of_it_has_changed_for_a_day(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(drafts, "_here", lambda: "another")
        draft = drafts.draft_path(store.directory / "runs", RUN["id"])
    draft.mkdir()
    assert store.clear_leftovers() == 0
    os.utime(draft, (1, 1))
    (draft / "capture.pcapng").touch()
    assert store.clear_leftovers() == 0
    os.utime(draft / "capture.pcapng", (1, 1))
    os.utime(draft, (1, 1))
    assert store.clear_leftovers() == 1


def test_a_lock_that_a_killed_process_left_is_removed(store: Store) -> None:
    lock = store.directory / "runs" / f".{RUN['id']}.lock"
    lock.touch()
    assert store.clear_leftovers() == 0
    assert not lock.exists()


def test_a_directory_that_another_process_is_about_to_use_is_no_foreign_one(tmp_path: Path) -> None:
    (tmp_path / ".plan.json.4711.tmp").write_text("{")
    assert Store.create(tmp_path, PLAN).plan()["title"] == PLAN["title"]


def test_a_draft_of_another_user_whose_processes_are_hidden_stays_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = drafts.draft_path(tmp_path, RUN["id"])
    other = draft.with_name(draft.name.replace(f"-{os.getpid()}-", f"-{2**22 + 1}-"))  # more than Linux gives out
    other.mkdir()
    assert drafts.left_behind(other)

    def refused(process: int, signal: int) -> None:
        raise PermissionError(process, signal)

    monkeypatch.setattr("tailcut.results.drafts.os.kill", refused)
    assert not drafts.left_behind(other)
    os.utime(other, (0, 0))
    assert drafts.left_behind(other)
