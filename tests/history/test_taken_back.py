"""`make lint` finds work that was lost because a commit was laid over an older tree, and nothing else."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "taken_back.py"
OLD = "".join(f"the old rule number {n}\n" for n in range(6))
NEW = "".join(f"a better rule number {n}, with its reason\n" for n in range(10))
REST = "what nobody touches\n"


class Repository:
    """A small repository; each commit writes whole files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        nobody = {"NAME": "nobody", "EMAIL": "nobody@example.org"}
        who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in nobody.items()}
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        environment = {**os.environ, **who, **settings}
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        for name, text in files.items():
            if text is None:
                (self.folder / name).unlink()
            else:
                (self.folder / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def look(folder: Path, **variables: str) -> tuple[int, str]:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False, env=environment
    )
    return done.returncode, done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """It has a file whose rules a commit has made better."""
    made = Repository(tmp_path / "clone")
    made.commit("Rules", {"rules": OLD + REST, "pages": "one\n"})
    made.commit("Better rules", {"rules": NEW + REST})
    return made


def test_a_commit_over_an_older_tree_is_found_with_what_it_took_back(repository: Repository) -> None:
    repository.commit("Pages", {"rules": OLD + REST, "pages": "one\ntwo\n"})
    code, said = look(repository.folder)
    assert code == 1
    assert "(Pages) takes back what" in said
    assert "(Better rules) added, and does not say so" in said
    assert "rules: 10 of 10 lines" in said
    assert "bring the work back" in said


def test_it_is_found_beside_work_of_its_own_in_the_same_file_and_after_other_commits(repository: Repository) -> None:
    repository.commit("Something else", {"pages": "one\ntwo\n"})
    own = "".join(f"the later commit's own line {n}\n" for n in range(20))
    repository.commit("More rules", {"rules": OLD + REST + own})
    assert look(repository.folder)[0] == 1


def test_a_new_file_that_an_older_tree_does_not_have_is_found(repository: Repository) -> None:
    repository.commit("Figures", {"figures": NEW.replace("rule", "figure")})
    repository.commit("Pages", {"figures": None, "pages": "one\ntwo\n"})
    code, said = look(repository.folder)
    assert code == 1
    assert "figures: 10 of 10 lines" in said


def test_a_merge_that_drops_one_side_is_found(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repository.commit("Pages", {"pages": "one\ntwo\n"})
    repository.git("merge", "--quiet", "--strategy=ours", "--message=Merge main", "main")
    code, said = look(repository.folder)
    assert code == 1
    assert "(Merge main) takes back what" in said


def test_a_merge_that_keeps_both_sides_passes(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repository.commit("Pages", {"pages": "one\ntwo\n"})
    repository.git("merge", "--quiet", "--message=Merge main", "main")
    assert look(repository.folder) == (0, "")


def test_moved_lines_pass(repository: Repository) -> None:
    repository.commit("A file of its own for the rules", {"rules": OLD + REST, "better": NEW})
    assert look(repository.folder) == (0, "")


def test_lines_with_something_new_in_their_place_pass(repository: Repository) -> None:
    newer = "".join(f"the best rule number {n}, at last\n" for n in range(10))
    repository.commit("The best rules", {"rules": newer + REST})
    assert look(repository.folder) == (0, "")


def test_lines_that_are_only_indented_pass(repository: Repository) -> None:
    repository.commit("Indented", {"rules": "    " + NEW.replace("\n", "\n    ") + REST})
    assert look(repository.folder) == (0, "")


def test_a_small_edit_passes(repository: Repository) -> None:
    less = "".join(NEW.splitlines(keepends=True)[:7])
    repository.commit("Three rules are no more", {"rules": less + REST})
    assert look(repository.folder) == (0, "")


def test_a_change_of_mind_long_after_passes(repository: Repository) -> None:
    for _ in range(40):
        repository.commit("Something else", {})
    repository.commit("The old rules", {"rules": OLD + REST})
    assert look(repository.folder) == (0, "")


def test_a_revert_by_git_passes(repository: Repository) -> None:
    repository.git("revert", "--no-edit", "HEAD")
    assert look(repository.folder) == (0, "")


def test_a_commit_that_names_what_it_takes_back_passes(repository: Repository) -> None:
    better = repository.git("rev-parse", "--short", "HEAD")
    repository.commit(f"The old rules\n\nThose of {better} were not better.", {"rules": OLD + REST})
    assert look(repository.folder) == (0, "")


def test_a_commit_that_names_another_commit_does_not(repository: Repository) -> None:
    first = repository.git("rev-parse", "--short", "HEAD~1")
    repository.commit(f"The rules of {first}", {"rules": OLD + REST})
    assert look(repository.folder)[0] == 1


def test_a_shallow_clone_is_skipped_with_the_reason(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Pages", {"rules": OLD + REST, "pages": "one\ntwo\n"})
    repository.git("clone", "--quiet", "--depth=2", repository.folder.as_uri(), str(tmp_path / "shallow"))
    code, said = look(tmp_path / "shallow")
    assert code == 0
    assert "not looked for, because a shallow clone has no history" in said


def test_an_unpacked_archive_is_skipped_with_the_reason(tmp_path: Path) -> None:
    said = look(tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert said == (0, "lost work: not looked for, because this is no clone\n")


def test_the_accident_of_this_history_is_found_unless_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    here = SCRIPT.parents[1]
    log = subprocess.run(["git", "-C", here, "log", "--format=%h"], capture_output=True, text=True, check=False).stdout
    if not {"01b1188", "1836242"} <= {line[:7] for line in log.splitlines()}:
        pytest.skip("this is no clone with the whole history")
    check = runpy.run_path(str(SCRIPT))
    assert "1836242" in check["KNOWN"]
    check["KNOWN"].clear()
    assert check["main"](here) == 1
    said = capsys.readouterr().out
    assert re.search(r"1836242 \(.*\) takes back what 01b1188 ", said)
    assert "crates/tailcut-net/tests/run/repeatable.rs: 62 of 68 lines" in said
    assert re.search(
        r"63420c9 \(.*\) takes back what 01b1188 \(.*\) added, and does not say so:\n  Makefile: 5 of 5", said
    )
