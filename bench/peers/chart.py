"""A bar chart in SVG, written by hand: jobs per second of every system on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

from bench.peers.catalogue import OURS
from bench.peers.figures import by_drain, number

PANELS = {
    "drain_1": "Drain, one process",
    "drain_2": "Drain, two processes",
    "bulk": "Bulk enqueue",
    "single_20": "Single enqueue, 20 at once",
}
WIDTH, LEFT, RIGHT, BAR, GAP, HEAD, FOOT = 820, 170, 90, 16, 6, 34, 34
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .head { font-weight: 600; font-size: 14px; }
  .note { fill: #6e7781; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .bar { fill: #8c959f; }
  .ours { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .note { fill: #8b949e; }
    .grid { stroke: #30363d; }
    .bar { fill: #6e7681; }
    .ours { fill: #58a6ff; }
  }
"""


def chart(results: dict[str, Any]) -> str:
    """Return one panel of bars for each main figure."""
    keys = list(by_drain(results))
    scale = Scale([value for name in PANELS for key in keys if (value := number(results, key, name))])
    panel_height = HEAD + len(keys) * (BAR + GAP) + FOOT
    height = panel_height * len(PANELS)
    body = "\n".join(
        line
        for row, (name, title) in enumerate(PANELS.items())
        for line in panel(results, name, title, scale, row * panel_height)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Jobs per second of job queues">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


def panel(results: dict[str, Any], name: str, title: str, scale: Scale, top: int) -> Iterator[str]:
    """Draw a title, the grid of powers of ten, and a bar for each system."""
    values = {key: number(results, key, name) for key in by_drain(results)}
    bottom = top + HEAD + len(values) * (BAR + GAP)
    yield f'<text class="head" x="{LEFT}" y="{top + 20}">{escape(title)}: jobs per second, logarithmic</text>'
    for power in range(scale.low, scale.high + 1):
        x = scale.x(10.0**power)
        yield f'<line class="grid" x1="{x:.1f}" y1="{top + HEAD - 4}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="note" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{10**power:,}</text>'
    for row, (key, value) in enumerate(values.items()):
        y = top + HEAD + row * (BAR + GAP)
        entry = results["systems"][key]
        yield f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(entry["title"])}</text>'
        if value:
            kind = "ours" if key == OURS else "bar"
            end = scale.x(value)
            yield f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" rx="2"/>'
            yield f'<text x="{end + 6:.1f}" y="{y + 12}">{value:,.0f}</text>'
        else:
            reason = "not run" if entry["not_run"] else "not measured"
            yield f'<text class="note" x="{LEFT + 6}" y="{y + 12}">{reason}</text>'


class Scale:
    """A logarithmic scale, the same for all panels: powers of ten around all values."""

    def __init__(self, values: list[float]) -> None:
        self.low = math.floor(math.log10(min(values, default=1.0)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values, default=10.0))))

    def x(self, value: float) -> float:
        """Return the coordinate of a value."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)
