"""Nothing listens beyond loopback unless asked to, and TLS as Dask has it is passed through."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from support.clusters import local, tables
from support.skipping import missing, needs
from tailcut.cluster import connect
from tailcut.errors import ClusterError

Cluster = Any  # of conftest.py

LISTENING = """
import contextlib
import os
import sys
from pathlib import Path
from tailcut.cluster import connect

def listening():
    ours = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one by which the directory was read
            ours.add(os.readlink(entry))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            _, address, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in ours:
                yield address.partition(":")[0]

with connect("local:2"):
    print(*listening())
"""


@needs(Path("/proc/self/net/tcp").exists(), "there is no /proc as Linux has it")
def test_a_cluster_on_this_machine_listens_on_loopback_alone() -> None:
    told = subprocess.run(
        [sys.executable, "-c", LISTENING],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert set(told.split()) <= {"0100007F"}, "127.0.0.1 as the system writes it"


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a self-signed certificate for all processes into Dask's settings."""
    if shutil.which("openssl") is None:
        missing("openssl is not installed", "apt-get install openssl")
    key, made = tmp_path / "key.pem", tmp_path / "me.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=tailcut", "-keyout", str(key), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TLS__CA_FILE", str(made))
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT", str(made))
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY", str(key))


HEAD = """
import sys
import tailcut
from tailcut.cluster import connect
from tailcut.errors import ClusterError
file, directory, where = sys.argv[1:]
try:
    with connect(where) as client:
        tailcut.run(tailcut.load(file), out=directory, executor=client)
except ClusterError as error:
    sys.exit(error.code)
"""


@pytest.mark.usefixtures("certificate")
def test_a_sweep_over_tls_needs_the_certificate(cluster_of_its_own: Cluster, tmp_path: Path) -> None:
    cluster = cluster_of_its_own
    cluster.start_scheduler("--protocol", "tls")
    cluster.start_worker("--protocol", "tls")
    path = experiments.tiny(tmp_path)
    where = cluster.address
    assert where.startswith("tls://127.0.0.1:")
    # In a process of its own: Dask reads its settings when it is imported.
    subprocess.run([sys.executable, "-c", HEAD, str(path), str(tmp_path / "far"), where], check=True)
    assert tables(tmp_path / "far") == local(tailcut.load(path), tmp_path / "near")
    with pytest.raises(ClusterError, match="without certificates") as refused, connect(where):
        pass  # this process was started without
    assert refused.value.code == "TC-C004"
