"""`tailcut check`: every value that some run has, and names as they can be written back."""

import json
import tomllib
from pathlib import Path

import pytest

import tailcut as package

from .conftest import Tailcut

SMALL = """
title = "Small"
[topology]
kind = "star"
hosts = 4
[traffic]
kind = "poisson"
sizes = "web-search"
load = 0.2
[horizon]
arrivals = "1ms"
drain = "20ms"
"""
LONG_NAMES = ["N=4", "a.b", 'say "hi"', "back\\slash", "TCP", "größer", "a b", "#1", "[red]"]


def quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def view(tailcut: Tailcut, path: Path, *options: str) -> list[str]:
    result = tailcut("check", path, *options)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.startswith("[")) :]


def test_a_value_that_depends_on_the_sweep_is_shown_for_each_point(tailcut: Tailcut, tmp_path: Path) -> None:
    path = tmp_path / "swept.toml"
    path.write_text(
        SMALL
        + """
[sweep]
queue = [{ kind = "drop-tail", limit = "10packets" }, { kind = "red", limit = "200packets" }]
"transport.hosts" = ["plain", "linux"]
"""
    )
    shown = view(tailcut, path)
    assert 'kind = swept: "drop-tail", "red"' in shown
    assert 'limit = swept: "10packets", "200packets"' in shown
    assert 'initial_window = swept: "12KB", "10packets"' in shown
    assert "hosts = swept" in shown
    assert 'window_growth = swept: none, "delivered"' in shown


def test_a_sweep_of_one_scheme_is_shown_in_that_scheme_alone(tailcut: Tailcut, tmp_path: Path) -> None:
    path = tmp_path / "swept.toml"
    path.write_text(
        SMALL + '[schemes.A]\n[schemes.B]\n[sweep]\n"schemes.B.transport" = [{ mss = "500B" }, { mss = "900B" }]\n'
    )
    shown = view(tailcut, path)
    of_b = shown[shown.index("[schemes.B.transport]") :]
    assert 'mss = swept: "500B", "900B"' in of_b
    assert 'mss = "1460B"' in shown[shown.index("[schemes.A.transport]") : shown.index("[schemes.B.transport]")]


def test_names_of_schemes_are_written_as_toml_reads_them(tailcut: Tailcut, tmp_path: Path) -> None:
    path = tmp_path / "names.toml"
    schemes = [
        f'[schemes.{quoted(name)}]\ntransport = {{ initial_window = "{1 + number}packets" }}\n'
        for number, name in enumerate(LONG_NAMES)
    ]
    path.write_text(SMALL + "".join(schemes), encoding="utf-8")
    found = tomllib.loads("\n".join(view(tailcut, path)))
    windows = {name: scheme["transport"]["initial_window"] for name, scheme in found["schemes"].items()}
    assert windows == {name: f"{1 + number}packets" for number, name in enumerate(LONG_NAMES)}


@pytest.mark.parametrize("name", LONG_NAMES)
def test_a_scheme_of_any_name_is_set_from_the_command_line_as_from_python(
    tailcut: Tailcut, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "names.toml"
    path.write_text(SMALL + f"[schemes.{quoted(name)}]\n", encoding="utf-8")
    key = f"schemes.{quoted(name)}.transport.initial_window"
    result = tailcut("check", path, "--json", "--set", f"{key} = 9packets")
    assert result.exit_code == 0, result.output
    assert package.load(path, set={key: "9packets"}).plan == json.loads(result.stdout)
    assert '"initial_window": "9packets"' in result.stdout
