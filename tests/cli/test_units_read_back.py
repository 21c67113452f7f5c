"""Printed times, sizes and rates are accepted as input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailcut
from tailcut import units

SMALL = {"title": "t", "topology": {"kind": "star"}, "traffic": {"kind": "poisson"}}


def read(key: str, text: str) -> str:
    section, _, name = key.partition(".")
    config = tailcut.loads(SMALL, set={key: text}).plan["runs"][0]["config"]
    return str({**config, **config["scheme"]}[section][name])


@given(st.floats(1.0, 9.9e6))  # a link's propagation is at most 10 s
def test_a_written_time_reads_back_the_same(microseconds: float) -> None:
    shown = units.microseconds(microseconds)
    assert units.time_ps(read("topology.propagation", shown)) == pytest.approx(microseconds * 1e6, rel=0.006)


@given(st.integers(2_000, 10**15))
def test_a_written_size_reads_back_the_same(bytes_: int) -> None:
    shown = units.size(bytes_)
    assert units.amount_bytes(read("queue.limit", shown)) == pytest.approx(bytes_, rel=0.006)


@given(st.integers(1_000, 10**13))
def test_a_written_rate_reads_back_the_same(bps: int) -> None:
    shown = f"{units.count(bps)}bps"
    assert units.rate_bps(read("topology.rate", shown)) == pytest.approx(bps, rel=0.006)


@pytest.mark.parametrize("text", ["2µs", "2μs", "2 us", "2 µs", "2.00 µs", "0.002ms"])
def test_spellings_of_one_time_are_one_run(text: str) -> None:
    plan = tailcut.loads(SMALL, set={"topology.propagation": text}).plan
    assert plan["runs"][0]["id"] == tailcut.loads(SMALL, set={"topology.propagation": "2us"}).plan["runs"][0]["id"]
