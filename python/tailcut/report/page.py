"""The page: one HTML file with everything inside, that works without a network."""

import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from tailcut.plan import flatten, options, title
from tailcut.report import attribution, fabric_samples, kernels, vega, words
from tailcut.report.export import DrawingPool, specification
from tailcut.report.figures import Data, Figure, draw
from tailcut.report.figures.base import significant, unit_for
from tailcut.report.figures.jobs import TITLES as JOB_TITLES
from tailcut.report.study import Run, Study, spell
from tailcut.report.tables import STATISTICS, share
from tailcut.report.theme import BACKENDS, Theme, variables
from tailcut.report.timelines import Timelines
from tailcut.results import estimates, thread_times
from tailcut.results.lab_runs import is_caveat
from tailcut.results.summary import point_columns

SYMBOLS = {
    "circle": "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z",
    "square": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "triangle-up": "M0-5.5L5.5 4.5H-5.5Z",
    "diamond": "M0-6L5 0L0 6L-5 0Z",
    "triangle-down": "M0 5.5L5.5-4.5H-5.5Z",
    "cross": "M-2-5.5H2V-2H5.5V2H2V5.5H-2V2H-5.5V-2H-2Z",
    "triangle-right": "M5.5 0L-4.5 5.5V-5.5Z",
}
"""The mark shapes of Vega as SVG paths of about 10 units, for the page's own legend."""


def render(study: Study, data: Data, theme: Theme, slow: Timelines | None = None, files_in: str = "figures") -> str:
    """The page as HTML.

    Args:
        study: the experiment.
        data: its tables.
        theme: an interactive one.
        slow: flows that are told packet by packet.
        files_in: the directory beside it with the figures as files.
    """
    assets = files("tailcut.report") / "assets"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(lambda name: (assets / name).read_text("utf-8")),
    )  # fmt: skip
    environment.filters["keep_units_together"] = keep_units_together
    drawn = list(draw(study, data, theme))
    figures = [(kind, figure) for kind, figure in drawn if figure.panels]
    absent = [figure for kind, figure in drawn if not figure.panels and kind.shown_empty]
    return environment.get_template("page.html.j2").render(
        study=study,
        title=title(study.plan),
        options=options,
        parts=study.plan.get("parts") or [dict(study.plan)],
        headline=words.headline(study, data.curves, data.throughput),
        verdicts=words.verdicts(study, data.curves),
        agreement=words.agreement(data.against),
        made_of=attribution.sentence(study, data.attribution),
        cautions=words.cautions(study, data.curves),
        legend=[(s, theme.colour(s), SYMBOLS[theme.shape(s)], s == study.baseline) for s in study.schemes],
        backends=[(name, *BACKENDS.get(name, (name, (4, 2)))) for name in study.backends],
        point=study.points[len(study.points) // 2],
        figures=figures,
        absent=absent,
        files_in=files_in,
        slow=slow,
        instant=lambda picoseconds: f"{picoseconds / 1e9:,.3f} ms",
        one_point=any(kind.per_point and figure.panels for kind, figure in figures),
        often=estimates.OFTEN,
        spell=spell,
        columns=columns,
        cells=cells,
        summary=summary(study, data.curves),
        totals=totals(study),
        plan=plan(study),
        runs=runs(study),
        threads=threads(study),
        machines=machines(study),
        charts=Markup(script_json(charts((f for _, f in figures), theme))),  # noqa: S704 - escaped there
        state=Markup(script_json(_state(study, slow))),  # noqa: S704
        light=variables(dark=False),
        dark=variables(dark=True),
        style=Markup((assets / "page.css").read_text("utf-8")),  # noqa: S704
        script=Markup((assets / "page.js").read_text("utf-8")),  # noqa: S704
        **kernels.on_page(study),
        **fabric_samples.on_page(study, theme),
        vega=Markup(vega.script()),  # noqa: S704
    )


def keep_units_together(text: str) -> str:
    """Returns the text with no-break spaces between numbers and units, so that no line ends between 95 and %."""
    return re.sub(r"(\d) (%|of|KB|MB|ms|µs)", "\\1\N{NO-BREAK SPACE}\\2", text)


def script_json(value: object) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def charts(figures: Iterable[Figure], theme: Theme) -> dict[str, Any]:
    """The charts of a page: ``specs`` by panel, and the ``tables`` that they draw, column by column."""
    pool = DrawingPool()
    specs = {}
    for figure in figures:
        for panel in figure.panels:
            spec = specification(panel.chart, pool)
            spec.pop("$schema")
            spec["description"] = f"{figure.title}. {panel.title}. The numbers are in the table below the figure."
            specs[panel.name] = {**spec, "autosize": {"type": "fit-x", "contains": "padding"}}
    tables = {name: packed(table) for name, table in pool.tables.items()}
    return {"specs": specs, "tables": tables, "config": theme.config()}


def packed(table: pl.DataFrame) -> dict[str, Any]:
    """A table column by column; repeated texts are written once as ``levels`` and referred to by ``codes``."""
    columns: dict[str, Any] = {}
    for name, column in table.to_dict().items():
        if column.dtype == pl.String:
            levels = column.unique(maintain_order=True).to_list()
            numbers = {level: code for code, level in enumerate(levels)}
            columns[name] = {"levels": levels, "codes": [numbers[text] for text in column.to_list()]}
        else:
            columns[name] = column.to_list()
    return columns


def _state(study: Study, slow: Timelines | None) -> dict[str, Any]:
    return {
        "slow": [
            {
                "flow": one.key,
                "cell": study.cell(dict(one.point)),
                "point": study.point(dict(one.point)),
                "times": dict(one.times),
            }
            for one in (slow.flows if slow else ())
        ],
        "cell": study.cells[0],
        "point": study.points[len(study.points) // 2],
        "light": dict(variables(dark=False)),
    }


# --- tables ---------------------------------------------------------------------------------------

RARE = {
    "lost_on_links": "packets lost on links",
    "needless_retransmissions": "needless retransmissions",
    "recoveries_undone": "recoveries undone",
    "elephants_found": "elephants found",
    "elephants_missed": "elephants missed",
    "elephants_mistaken": "mistaken for elephants",
    "elephant_ack_streams": "streams of ACKs taken for elephants",
    "elephant_reroutes": "elephants rerouted (times)",
    "pauses": "links paused (times)",
    "deadlocked_links": "links in a deadlock",
    "headers_returned": "headers returned to senders",
    "headers_dropped": "headers and answers dropped",
    "paws_discarded": "segments discarded by PAWS",
}
"""Totals that are shown where they are not zero."""
HEADINGS = {
    "n_flows": "flows",
    "n_unfinished": "unfinished",
    "n_seeds": "seeds",
    "value_us": "FCT (µs)",
    "ci_low": "95 % from",
    "ci_high": "95 % to",
    "normalised": "slowdown",
    "normalised_ci_low": "95 % from",
    "normalised_ci_high": "95 % to",
    "change_bound": "bound of the change",
    "change": "change (%)",
    "change_ci_low": "95 % from",
    "change_ci_high": "95 % to",
    "max_queue": "longest queue (packets)",
    "mean": "mean utilisation (%)",
    "busiest": "busiest link (%)",
    "dropped": "dropped (%)",
}


def columns(table: pl.DataFrame) -> list[tuple[str, str]]:
    """The columns of a table worth showing, as (name, heading): those that say something, in words."""
    kept = [c for c in table.columns if c != "x" and not (c in ("cell", "point") and set(table[c]) <= {"", None})]
    known = table.fill_nan(None)
    return [(c, HEADINGS.get(c, c.replace("_", " "))) for c in kept if known[c].null_count() < table.height]


def cells(row: dict[str, Any], shown: Sequence[tuple[str, str]]) -> list[tuple[str, bool]]:
    """The cells of a row as (text, whether it is a number)."""
    texts = []
    for name, _ in shown:
        value = row[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        text = f"{value:,}" if isinstance(value, int) else significant(value, 4) if number else spell(value or "–")
        texts.append((text, number))
    return texts


def summary(study: Study, table: pl.DataFrame) -> list[dict[str, Any]]:
    """The summary: per class a row per scheme and point, a cell per statistic, footnotes for empty cells."""
    sections = []
    kinds = table.filter(pl.col("grouping") == "job")["class"].unique(maintain_order=True).to_list()
    for grouping, names in (("class", ["short", "long"]), ("all", ["all"]), ("job", kinds)):
        for name in names:
            part = table.filter(pl.col("grouping") == grouping, pl.col("class") == name)
            if part.height == 0:
                continue
            unit, size = unit_for(part["value_us"])
            reasons: list[str] = []
            keys = ["backend", "cell", "point", "scheme"]
            rows = [
                _summary_row(dict(zip(keys, key, strict=True)), group, size, reasons)
                for key, group in part.group_by(keys, maintain_order=True)
            ]
            order = {"backend": study.backends, "cell": study.cells, "point": study.points, "scheme": study.schemes}
            known = [row for row in rows if row["backend"] in study.backends]
            known.sort(key=lambda row: [order[k].index(row[k]) for k in keys])
            sections.append(
                {"title": _section_title(study, grouping, name), "unit": unit, "rows": known,
                 "reasons": reasons, "name": name}
            )  # fmt: skip
    return sections


def _section_title(study: Study, grouping: str, name: str) -> str:
    if grouping == "job":
        return JOB_TITLES.get(name, name)
    return study.class_title(name) if name != "all" else "All flows"


def _note(reason: str, reasons: list[str]) -> int:
    """The number of a footnote; a new one is added."""
    if reason not in reasons:
        reasons.append(reason)
    return reasons.index(reason) + 1


def _summary_row(key: dict[str, Any], group: pl.DataFrame, size: float, reasons: list[str]) -> dict[str, Any]:
    by_statistic = {row["statistic"]: row for row in group.iter_rows(named=True)}
    values = []
    for statistic in STATISTICS:
        row = by_statistic.get(statistic)
        if row is None or row["value_us"] is None:
            reason = (row or {}).get("reason") or "this backend does not give it"
            values.append({"text": "–", "note": _note(reason, reasons), "interval": "", "change": ""})
            continue
        low, high = row["ci_low"], row["ci_high"]
        values.append(
            {
                "note": _note(row["reason"], reasons) if is_caveat(row["reason"]) else None,
                "text": ("≥ " if row["lower_bound"] else "") + significant(row["value_us"] / size),
                "interval": f"{significant(low / size)} to {significant(high / size)}" if low is not None else "",
                "change": _marked(row) if row["change"] is not None else "",
            }
        )
    first = group.row(0, named=True)
    return {
        **key,
        "values": values,
        "flows": first["n_flows"],
        "unfinished": first["n_unfinished"],
        "seeds": first["n_seeds"],
    }


def _marked(row: dict[str, Any]) -> str:
    """A change with its star."""
    return words.change(row["change"], row["change_bound"]) + ("*" if row["significant"] else "")


def totals(study: Study) -> pl.DataFrame:
    """Returns each scheme's carried and lost traffic at each point, with readable headings."""
    table = study.totals
    if table.height == 0:
        return table
    packets = pl.col("data_packets")
    shown = table.select(
        "scheme",
        pl.col("n_seeds").cast(pl.Int64).alias("seeds"),
        pl.col("offered_load").alias("offered load"),
        pl.col("carried_load").alias("carried load, headers and copies included"),
        pl.col("goodput").alias("goodput"),
        pl.col("flows").cast(pl.Int64),
        pl.col("unfinished_flows").cast(pl.Int64).alias("unfinished"),
        packets.cast(pl.Int64).alias("data packets sent"),
        share(pl.col("retransmissions"), packets, 100).alias("retransmitted (%)"),
        share(pl.col("timeouts"), pl.col("flows"), 1000).alias("timeouts per 1,000 flows"),
        pl.col("dropped").cast(pl.Int64).alias("packets dropped"),
        *_telling(table),
    )  # fmt: skip
    points = [run["point"] for run in study.plan["runs"]]
    for place, axis in enumerate(study.axes, start=1):
        name = axis.key if axis.name in shown.columns else axis.name
        spelled = {point_columns(study.plan, at)[axis.key]: axis.label(at[axis.key]) for at in points}
        shown.insert_column(place, pl.Series(name, [spelled[value] for value in table[axis.key]], pl.String()))
    return shown


def _telling(table: pl.DataFrame) -> list[pl.Expr]:
    """Returns the columns of events that only some experiments have, if they occurred."""
    found = [
        pl.col(name).cast(pl.Int64).alias(title)
        for name, title in RARE.items()
        if table[name].null_count() < table.height and table[name].sum() > 0
    ]
    if table["elephants_found"].null_count() < table.height and table["elephants_found"].sum() > 0:
        mean = pl.col("elephant_detection_ns") / pl.col("elephants_found") / 1000
        found.append(pl.when(pl.col("elephants_found") > 0).then(mean).alias("mean time to detect an elephant (µs)"))
    return found


def plan(study: Study) -> list[tuple[str, list[tuple[str, str]]]]:
    """Returns every setting of the experiment by table: those shared by all runs, and those of schemes and sweep."""
    configurations = [{k: spell(v) for k, v in flatten(run["config"]).items()} for run in study.plan["runs"]]
    if not configurations:
        return []
    swept = {axis.key for axis in study.axes}
    keys = dict.fromkeys(key for configuration in configurations for key in configuration)
    sections: dict[str, list[tuple[str, str]]] = {}
    for key in keys:
        table, _, name = key.rpartition(".")
        values = list(dict.fromkeys(c[key] for c in configurations if key in c))
        everywhere = all(key in c for c in configurations)
        if key in swept or key.removeprefix("scheme.") in swept:
            text = f"{', '.join(values)} (swept)"
        elif len(values) == 1 and everywhere:
            text = values[0]
        else:
            per_scheme = {run["scheme"]: c.get(key) for run, c in zip(study.plan["runs"], configurations, strict=True)}
            text = "; ".join(f"{scheme}: {value}" for scheme, value in per_scheme.items() if value is not None)
        sections.setdefault(table, []).append((name, text))
    measure = [(key.replace("_", " "), spell(value)) for key, value in flatten(study.plan["measure"]).items()]
    return [*sections.items(), ("measure", measure)]


def runs(study: Study) -> list[dict[str, Any]]:
    """Every run with its time, speed and memory."""
    rows = []
    for run in study.runs:
        record = run.record
        speed = record.get("packet_hops_per_second")
        memory = record.get("peak_memory_bytes")
        rows.append(
            {
                **_names(study, run),
                "wall": significant(record.get("wall_seconds")),
                "hops": f"{record['packet_hops']:,}" if record.get("packet_hops") is not None else "–",
                "speed": significant(speed / 1e6 if speed is not None else None),
                "memory": significant(memory / 1e6 if memory is not None else None),
                "id": run.planned["id"][:12],
            }
        )
    return rows


def _names(study: Study, run: Run) -> dict[str, Any]:
    """Returns the names of a run in tables: its scheme, point and seed."""
    point = run.planned["point"]
    where = ", ".join(filter(None, [study.point(point), study.cell(point)]))
    return {"scheme": run.planned["scheme"], "where": where, "seed": run.planned["seed"]}


def threads(study: Study) -> list[dict[str, Any]]:
    """Returns a row for each run on several threads: the shares of their time."""
    rows = []
    for run in study.runs:
        times = run.record.get("thread_seconds")
        if times is None:
            continue
        found, waited = thread_times.shares([times]), thread_times.waiting_of_each(times)
        rows.append(
            {
                **_names(study, run),
                "threads": run.record["threads"],
                "work": significant(found.work),
                "waiting": significant(found.waiting),
                "range": f"{significant(min(waited))} to {significant(max(waited))}",
                "exchange": significant(found.exchange),
            }
        )
    return rows


def machines(study: Study) -> list[str]:
    """The machines, with their kernels, that the runs were made on and the versions that made them, each once."""
    described = []
    for record in (*(run.record for run in study.runs), *(run.about for run in study.lab.finished)):
        machine = record.get("machine", {})
        text = ", ".join(f"{key.replace('_', ' ')} {spell(value)}" for key, value in machine.items())
        described.append(f"Tailcut {record.get('version', '?')} on {text}")
    return list(dict.fromkeys(described))
