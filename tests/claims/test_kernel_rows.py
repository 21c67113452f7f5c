"""The rows of real kernels follow from the table of `make lab-table`."""

from support.kernel_claims import CLAIMS, measured, text
from tailcut import claims


def test_the_claims_of_kernels_are_those_that_the_table_gives() -> None:
    assert CLAIMS.read_text("utf-8") == text(), "write it again: python tests/support/kernel_claims.py"


def test_every_scheme_of_the_table_has_a_row_of_its_mean_and_one_of_its_tail() -> None:
    paper, found = claims.load()["lab"], measured()
    assert paper.known
    assert found.date in paper.source
    assert len(found.rows) == 19
    asked = [(claim.experiment, claim.compare.scheme, claim.measure.statistic) for claim in paper.claims]  # type: ignore[union-attr]
    assert asked == [
        (f"lab/{row['experiment']}", row["scheme"], statistic) for row in found.rows for statistic in ("mean", "p99")
    ]
