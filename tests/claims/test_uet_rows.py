"""The rows of Ultra Ethernet's cases follow from the public simulator's ranges."""

from support.uet_claims import CLAIMS, text
from tailcut import claims


def test_the_claims_of_ultra_ethernet_are_those_that_the_ranges_give() -> None:
    assert CLAIMS.read_text("utf-8") == text(), "write it again: python tests/support/uet_claims.py"


def test_every_case_of_the_public_simulator_is_a_row_counted_as_a_known_answer() -> None:
    paper = claims.load()["uet"]
    assert paper.known
    assert len(paper.claims) == 58
