"""The simulator against real kernels on the page: the figure, the sentence and the note, whichever way they differ."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest

from support import made_up, synthetic
from tailcut.report import page, tables, words
from tailcut.report.figures import Data, draw
from tailcut.report.figures import against as figure
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.results import kernel_comparison, samples
from tailcut.results.kernel_comparison import compare_with_kernels
from tailcut.results.lab_runs import LabRun

if TYPE_CHECKING:
    from tailcut.lab.results import LabResults
    from tailcut.plan import PlannedRun


@dataclass(frozen=True)
class Kernels:
    """The part of the lab's results that the page's comparison with the simulator reads."""

    against: pl.DataFrame
    runs: int
    unfaithful: int
    with_unfaithful: bool
    spread: pl.DataFrame = field(default_factory=pl.DataFrame)
    counted: tuple[LabRun, ...] = ()

    @property
    def finished(self) -> list[LabRun]:
        about = {"faithful": True, "unfaithful": []}
        return [LabRun("", cast("PlannedRun", {}), 1, "engine", about) for _ in range(self.runs)]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    shape = synthetic.Shape(schemes=("TCP", "RepFlow"), sweep=(("traffic.load", (0.1, 0.2)),), seeds=(1, 2), flows=200)
    return Study.of(synthetic.build(tmp_path_factory.mktemp("store"), shape))


def over_kernels(
    study: Study,
    longer: dict[tuple[str, str], float],
    runs: int = 0,
    unfaithful: int = 0,
    with_unfaithful: bool = False,
) -> Study:
    """The same study with runs of real kernels, longer by so much in each class and statistic, and alike elsewhere."""
    kept = pl.col("class").is_in(kernel_comparison.CLASSES) & pl.col("statistic").is_in(kernel_comparison.STATISTICS)
    rows = study.summary.filter(kept, pl.col("grouping") == "class").with_columns(
        simulated_us="value_us", backend=pl.lit("lab")
    )
    factor = pl.lit(1.0)
    for (name, statistic), by in longer.items():
        here = (pl.col("class") == name) & (pl.col("statistic") == statistic)
        factor = pl.when(here).then(pl.lit(by)).otherwise(factor)
    table = rows.select(
        "backend", "scheme", "traffic.load", "class", "statistic", "simulated_us", "n_seeds",
        real_us=pl.col("simulated_us") * factor, change=factor - 1,
    )  # fmt: skip
    return replace(study, lab=cast("LabResults", Kernels(table, runs, unfaithful, with_unfaithful)))


def test_every_class_and_statistic_is_compared_with_the_simulator(simulated: Study) -> None:
    study = over_kernels(simulated, {("short", "p99"): 1.5, ("long", "mean"): 0.9})
    table = tables.against(study)
    of = {(row["class"], row["statistic"]): row for row in table.filter(scheme="RepFlow", point="0.2").to_dicts()}
    assert {key: row["said"] for key, row in of.items()} == {
        ("short", "mean"): "±0 %", ("short", "p99"): "+50 %", ("long", "mean"): "−10 %", ("long", "p99"): "±0 %",
    }  # fmt: skip
    assert table.height == 2 * 2 * 4
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    figures = {figure.name: figure for _, figure in draw(study, Data.of(study), theme)}
    assert [panel.name for panel in figures["against"].panels] == ["against-kernels"]
    assert "+50 %" in figures["against"].data["change"].to_list()
    assert words.agreement(table) == (
        "Real kernels differ from the simulator by ±0 % in the mean of short flows, +50 % in their 99th percentile,"
        " −10 % in the mean of long flows, over 2 seeds that both have."
    )
    html = page.render(study, Data.of(study), theme)
    assert "Real kernels differ from the simulator" in html
    assert "against-kernels" in html


@pytest.mark.parametrize(("with_unfaithful", "told"), [(False, "faithful runs alone"), (True, "unfaithful runs inc")])
def test_the_caption_says_which_runs_count(simulated: Study, with_unfaithful: bool, told: str) -> None:
    study = over_kernels(simulated, {}, with_unfaithful=with_unfaithful)
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    assert told in figure.kernels(study, tables.against(study), theme).caption


def test_without_runs_over_kernels_the_page_says_nothing_of_them(simulated: Study) -> None:
    assert tables.against(simulated).height == 0
    assert words.agreement(pl.DataFrame()) == ""
    theme = theme_for(simulated.schemes, simulated.baseline, interactive=True)
    html = page.render(simulated, Data.of(simulated), theme)
    assert "Real kernels differ" not in html
    assert "not faithful" not in html
    assert "No run over real kernels" not in html


PLAN = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2, 3])


class Runs:
    """Runs of which only the times of short flows are there: by seed, those of its flows in us, None where open."""

    def __init__(self, of_seeds: dict[int, list[float | None]]) -> None:
        self._of_seeds = of_seeds

    def samples(self, scheme: str, point: object) -> dict[int, dict[samples.Group, samples.Sample]]:
        return {
            seed: samples.by_group(samples.of_flows(made_up.flows(times), made_up.MEASURE, 10**9))
            for seed, times in self._of_seeds.items()
        }

    def parted(self, scheme: str, point: object) -> dict[int, pl.DataFrame]:
        raise NotImplementedError


def of_mean(simulated: dict[int, list[float | None]], real: dict[int, list[float | None]]) -> dict[str, Any]:
    rows = compare_with_kernels(PLAN, Runs(simulated), Runs(real)).filter(statistic="mean", **{"class": "short"})
    return rows.row(0, named=True)


def test_a_seed_that_one_backend_lacks_does_not_count() -> None:
    row = of_mean({1: [10.0], 2: [1_000.0], 3: [20.0]}, {1: [11.0], 3: [25.0]})
    assert (row["simulated_us"], row["real_us"], row["n_seeds"]) == (15.0, 18.0, 2)
    assert row["change"] == pytest.approx(0.2)


def test_the_flows_of_all_seeds_count_alike() -> None:
    row = of_mean({1: [10.0], 2: [10.0]}, {1: [10.0, 20.0], 2: [40.0]})
    assert row["real_us"] == pytest.approx((10 + 20 + 40) / 3)


@pytest.mark.parametrize("bounds", [(None, 11.0), (11.0, None)])
def test_lower_bounds_are_not_compared(bounds: tuple[float | None, float | None]) -> None:
    simulated, real = (Runs({1: [10.0, one], 2: [12.0]}) for one in bounds)
    assert compare_with_kernels(PLAN, simulated, real).filter(statistic="mean").height == 0


@pytest.mark.parametrize(
    ("unfaithful", "said"), [(1, "1 of 4 runs over real kernels is"), (3, "3 of 4 runs over real kernels are")]
)
def test_unfaithful_runs_are_reported(simulated: Study, unfaithful: int, said: str) -> None:
    study = over_kernels(simulated, {}, runs=4, unfaithful=unfaithful)
    assert any(said in one for one in words.cautions(study, tables.curves(study)))
    faithful = over_kernels(simulated, {}, runs=4)
    assert not any("faithful" in one for one in words.cautions(faithful, tables.curves(faithful)))
