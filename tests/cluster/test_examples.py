"""The scripts of ``examples/cluster`` on one machine: stand-ins for srun and ssh start processes here."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

import tailcut
from support import experiments
from support.clusters import local, tables
from support.skipping import needs

EXAMPLES = Path(__file__).parents[2] / "examples/cluster"
BIN = Path(sys.executable).parent
# As Slurm does: as many tasks as are asked for, by default one for each node of the job.
SRUN = """#!/usr/bin/env bash
tasks=$SLURM_NNODES
while [[ $1 == --* ]]; do
    [[ $1 == --ntasks=* ]] && tasks=${1#--ntasks=}
    shift
done
echo "$tasks: $*" >> "$STAND_IN_LOG"
trap 'kill $(jobs -p) 2> /dev/null' TERM
for ((task = 0; task < tasks; task++)); do "$@" & done
wait
"""
SSH = """#!/usr/bin/env bash
while [[ $1 == -o ]]; do shift 2; done
echo "$1: $2" >> "$STAND_IN_LOG"
exec bash -c "$2"
"""


def follow(directory: Path, script: str, *arguments: str, **environment: str) -> str:
    """Run a script of the examples in a directory, with the stand-ins on the path; what they were asked for."""
    stand_ins = directory / "bin"
    stand_ins.mkdir()
    for name, text in (("srun", SRUN), ("ssh", SSH)):
        (stand_ins / name).write_text(text)
        (stand_ins / name).chmod(0o755)
    log = directory / "stand-ins.log"
    log.touch()
    path = os.pathsep.join([str(stand_ins), str(BIN), os.environ["PATH"]])
    process = subprocess.Popen(
        ["bash", str(EXAMPLES / script), *arguments],
        cwd=directory,
        env={**os.environ, "PATH": path, "STAND_IN_LOG": str(log), "TMPDIR": str(directory), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    try:
        said, _ = process.communicate()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, said
    return log.read_text()


def a_free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def test_the_batch_script_starts_a_scheduler_and_a_worker_a_node_and_makes_the_sweep(tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path)
    asked = follow(
        tmp_path,
        "slurm.sbatch",
        "tiny.toml",
        "--out",
        "far",
        SLURM_JOB_ID="4711",
        SLURM_NNODES="2",
        SLURM_CPUS_PER_TASK="1",
        SLURM_MEM_PER_NODE="4096",
    )
    assert tables(tmp_path / "far") == local(tailcut.load(path), tmp_path / "near")
    scheduler, workers = asked.splitlines()
    assert scheduler.startswith("1: dask scheduler ")
    assert workers.startswith("2: dask worker ")
    assert "--nthreads 1 " in workers
    assert "MEMORY=3865468928" in workers
    assert list(tmp_path.glob(".tailcut-scheduler-*")) == []


def test_machines_by_ssh_make_the_sweep(tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path)
    arguments = ["127.0.0.1", "here:1", "second:1", "third:1", "--", "tiny.toml", "--out", "far"]
    asked = follow(tmp_path, "by-ssh.sh", *arguments, TAILCUT_PORT=a_free_port())
    assert tables(tmp_path / "far") == local(tailcut.load(path), tmp_path / "near")
    # They are asked at once.
    assert sorted(line.partition(":")[0] for line in asked.splitlines()) == ["second", "third"]


@pytest.mark.parametrize("arguments", [[], ["10.0.0.1"], ["10.0.0.1", "here"], ["10.0.0.1", "here", "--"]])
def test_the_script_for_ssh_says_how_it_is_used(arguments: list[str]) -> None:
    said = subprocess.run(
        ["bash", str(EXAMPLES / "by-ssh.sh"), *arguments], capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert "by-ssh.sh ADDRESS HOST... -- FILE" in said.stderr


@pytest.mark.parametrize("script", ["slurm.sbatch", "by-ssh.sh"])
def test_the_shell_accepts_the_scripts(script: str) -> None:
    subprocess.run(["bash", "-n", str(EXAMPLES / script)], check=True)


@needs(shutil.which("shellcheck"), "shellcheck is not installed", "apt-get install shellcheck")
@pytest.mark.parametrize("script", ["slurm.sbatch", "by-ssh.sh"])
def test_shellcheck_finds_nothing_in_the_scripts(script: str) -> None:
    checked = subprocess.run(["shellcheck", str(EXAMPLES / script)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("version", ["1.30", kubernetes_validate.latest_version()])
def test_the_manifest_is_valid_by_the_schemas_of_kubernetes(version: str) -> None:
    parts = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))
    assert [kubernetes_validate.validate(part, version, strict=True) for part in parts]


def test_the_parts_of_the_manifest_refer_to_each_other() -> None:
    parts = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))
    named = {(part["kind"], part["metadata"]["name"]): part["spec"] for part in parts}
    pods = [spec["template"] for spec in named.values() if "template" in spec]
    for (kind, _), spec in named.items():
        if kind == "Deployment":
            assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    service = named["Service", "scheduler"]
    assert service["selector"] == named["Deployment", "scheduler"]["template"]["metadata"]["labels"]
    port = service["ports"][0]["port"]
    policy = named["NetworkPolicy", "only-among-us"]["podSelector"]["matchLabels"]
    for pod in pods:
        assert policy.items() <= pod["metadata"]["labels"].items()
        (container,) = pod["spec"]["containers"]
        command = " ".join(container["command"])
        assert str(port) in command
        assert container["image"] == f"registry.example/tailcut:{tailcut.__version__}"
        mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in pod["spec"].get("volumes", [])}
        for volume in pod["spec"].get("volumes", []):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            assert claim is None or ("PersistentVolumeClaim", claim) in named
