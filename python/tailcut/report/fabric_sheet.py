"""The fabric as a file for a paper: every scheme side by side, at the instant at which most waits in any of them."""

import numpy as np
import polars as pl
from markupsafe import escape

from tailcut.report.fabric_samples import FabricSamples, Places, places
from tailcut.report.theme import INK, Theme

NAME = "fabric"
SHARES = (0.0, 0.1, 0.25, 0.5, 0.8)
"""Shares of the longest queue beyond which a link has the next colour, as on the page."""
WIDTHS = (0.8, 1.4, 2.0, 2.8, 3.8, 5.0)
MOST_HOSTS = 128
"""Number of hosts from which hosts and their links are left out."""
WIDE, HIGH, HEAD, FOOT, ABREAST = 460, 230, 30, 44, 2


def busiest(samples: FabricSamples) -> int:
    """The place of the instant at which most packets wait at switches, under the scheme where they are most."""
    switches = (samples.ports["from"] >= samples.hosts).to_numpy()
    best = (-1, 0)
    for sampled in samples.runs.values():
        waiting = sampled.queue[:, switches].sum(axis=1)
        if len(waiting):
            best = max(best, (int(waiting.max()), -int(waiting.argmax())))
    return -best[1]


def levels(samples: FabricSamples, scheme: str, instant: int) -> list[int]:
    """The colour of every link at an instant, 0 to 5: by the longer of its two queues; hosts' own do not count."""
    queue = samples.runs[scheme].queue
    ports = samples.ports
    at = queue[instant].copy() if instant < len(queue) else np.zeros(ports.height, dtype=np.int64)
    at[(ports["from"] < samples.hosts).to_numpy()] = 0
    worst = at.reshape(-1, 2).max(axis=1)
    return [int(level) for level in np.searchsorted(np.array(SHARES) * samples.longest, worst)]


def caption(samples: FabricSamples) -> str:
    """Returns the caption."""
    instant = busiest(samples)
    at = f"{(instant + 1) * samples.interval_ns / 1e6:.4g} ms"
    hidden = f" Hosts are left out: there are {samples.hosts:,}." if samples.hosts > MOST_HOSTS else ""
    return (
        f"Packets that wait at the links of the fabric {at} after the beginning, seed {samples.seed}: the instant at"
        f" which most wait. The longest queue of any instant has {samples.longest:,} packets.{hidden}"
    )


def svg(samples: FabricSamples, theme: Theme) -> str:
    """The drawing: a panel per scheme, hosts at the bottom."""
    up = samples.ports.filter(pl.col("port") % 2 == 0)
    ends = list(zip(up["from"].to_list(), up["to"].to_list(), strict=True))
    stand = places(samples.hosts, ends)
    spots = _spots(stand)
    instant = busiest(samples)
    rows = -(-len(samples.runs) // ABREAST)
    width, height = ABREAST * WIDE if len(samples.runs) > 1 else WIDE, rows * (HEAD + HIGH) + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="Arial, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, scheme in enumerate(samples.runs):
        left, top = number % ABREAST * WIDE, number // ABREAST * (HEAD + HIGH)
        parts.append(f'<g transform="translate({left} {top})">')
        parts.append(f'<text x="{WIDE / 2}" y="20" font-size="14" text-anchor="middle" fill="{theme.colour(scheme)}">')
        parts.append(f"{escape(scheme)}</text>")
        drawn = sorted(zip(levels(samples, scheme, instant), ends, strict=True), key=lambda link: link[0])
        for level, (a, b) in drawn:
            if samples.hosts > MOST_HOSTS and min(a, b) < samples.hosts:
                continue
            (x1, y1), (x2, y2) = spots[a], spots[b]
            stroke = f'stroke="{INK[f"load-{level}"][0]}" stroke-width="{WIDTHS[level]}"'
            parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {stroke} stroke-linecap="round"/>')
        for node, (x, y) in enumerate(spots):
            if node >= samples.hosts or samples.hosts <= MOST_HOSTS:
                parts.append(
                    f'<circle cx="{x}" cy="{y}" r="{2 if node < samples.hosts else 3}" fill="{INK["muted"][0]}"/>'
                )
        parts.append("</g>")
    parts.extend([*_legend(samples, height), "</svg>"])
    return "".join(parts)


def _spots(stand: Places) -> list[tuple[float, float]]:
    """Returns the positions of nodes: pods side by side, each as wide as its widest level."""
    top = max(stand.level)
    level_of_pod: dict[tuple[int, int], int] = {}
    for level, pod in zip(stand.level, stand.pod, strict=True):
        level_of_pod[level, pod] = level_of_pod.get((level, pod), 0) + 1
    pods = range(1 + max(stand.pod))
    room = [max(number for (_, of), number in level_of_pod.items() if of == pod) for pod in pods]
    inner, whole = WIDE - 24, max(1, sum(room))
    left = [12 + inner * sum(room[:pod]) / whole for pod in pods]
    spots = []
    for level, pod, order in zip(stand.level, stand.pod, stand.order, strict=True):
        start, width = (12.0, float(inner)) if pod < 0 else (left[pod], inner * room[pod] / whole)
        x = start + (order + 0.5) / level_of_pod[level, pod] * width
        spots.append((round(x, 1), round(HEAD + (HIGH - 24) * (1 - level / max(1, top)) + 8, 1)))
    return spots


def _legend(samples: FabricSamples, height: int) -> list[str]:
    bounds = [0, *(int(share * samples.longest) for share in SHARES[1:])]
    names = ["none waits", *(f"more than {bound:,}" for bound in bounds)]
    parts = []
    for level, name in enumerate(names):
        x = 12 + level * 74
        stroke = f'stroke="{INK[f"load-{level}"][0]}" stroke-width="{WIDTHS[level]}"'
        parts.append(f'<line x1="{x}" y1="{height - 26}" x2="{x + 26}" y2="{height - 26}" {stroke}/>')
        parts.append(f'<text x="{x}" y="{height - 10}" font-size="10" fill="{INK["muted"][0]}">{name}</text>')
    return parts
