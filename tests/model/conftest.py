from collections.abc import Sequence

import pytest

from tailcut.model import FlowSizes

# The web-search table of the pFabric lineage (workloads/web-search.cdf), in bytes.
WEB_SEARCH: tuple[Sequence[float], Sequence[float]] = (
    (8760, 8760, 18980, 27740, 48180, 77380, 194180, 973820, 1946180, 4866180, 9733820, 29200000),
    (0, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1),
)


@pytest.fixture(scope="session")
def web_search() -> FlowSizes:
    return FlowSizes.from_bytes(*WEB_SEARCH, mss=1460)
