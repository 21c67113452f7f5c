"""Colours stay apart for everybody, and a scheme looks the same everywhere."""

from itertools import combinations

import numpy as np
import pytest

from tailcut.report.theme import PAIRS, SHAPES, theme_for

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
PAPER = {"light": "#ffffff", "dark": "#14181d"}
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def linear(colour: str) -> Array:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: Array) -> Array:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("mode", "paper"), PAPER.items())
def test_every_colour_stands_out_from_its_background(mode: str, paper: str) -> None:
    colours = [pair[mode == "dark"] for pair in PAIRS]
    assert min(contrast(colour, paper) for colour in colours) >= 3


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("mode", PAPER)
def test_colours_stay_apart_whatever_colours_one_sees(mode: str, vision: str) -> None:
    seen = [lab(VISIONS[vision] @ linear(pair[mode == "dark"])) for pair in PAIRS]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 10


def test_colour_and_shape_together_tell_56_schemes_apart() -> None:
    theme = theme_for([f"s{i}" for i in range(56)], None, interactive=False)
    assert len({(theme.colour(s), theme.shape(s)) for s in theme.schemes}) == 56 == len(PAIRS) * len(SHAPES)


def test_the_baseline_is_grey_wherever_it_stands_in_the_plan() -> None:
    theme = theme_for(["RepFlow", "TCP", "RepSYN"], "TCP", interactive=False)
    assert theme.colour("TCP") == PAIRS[0][0]
    assert theme.colour("RepFlow") == PAIRS[1][0]
    assert theme.colour("RepSYN") == PAIRS[2][0]


def test_only_the_baseline_is_grey_while_other_looks_are_free() -> None:
    theme = theme_for([f"s{i}" for i in range(50)], "s0", interactive=False)
    assert [s for s in theme.schemes if theme.colour(s) == PAIRS[0][0]] == ["s0"]
