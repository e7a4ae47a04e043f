"""Line charts as SVG, written by hand: few elements, readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from figures.numbers import Point

_WIDTH, _HEIGHT = 760, 340
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 44, 150, 46
_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#65a30d")
_STYLE = "text{font:12px sans-serif;fill:#64748b}.title{font-size:14px;font-weight:600}"


def line_chart(
    title: str, series: Mapping[str, Sequence[Point]], *, x: str, y: str, log_x: bool = False
) -> str:
    """Return one panel with a line per series; the y axis starts at zero."""
    points = [point for line in series.values() for point in line]
    scale = _Scale(points or [(0.0, 0.0)], log_x)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="{_TOP - 8}">{escape(y)}</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">{escape(x)}</text>',
        *scale.grid(),
    ]
    for number, (name, line) in enumerate(series.items()):
        parts += _line(name, line, number, scale)
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Maps values to coordinates."""

    def __init__(self, points: Sequence[Point], log_x: bool) -> None:
        self._log = log_x
        self._from = min(self._along(x) for x, _ in points)
        self._to = max(self._along(x) for x, _ in points)
        self._step = _step(max(y for _, y in points))
        self._top = self._step * max(1, math.ceil(max(y for _, y in points) / self._step))
        self._xs = sorted({x for x, _ in points})

    def _along(self, x: float) -> float:
        return math.log10(max(x, 1.0)) if self._log else x

    def point_at(self, point: Point) -> tuple[float, float]:
        wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        along = (self._along(point[0]) - self._from) / ((self._to - self._from) or 1.0)
        return _LEFT + along * wide, _TOP + high - point[1] / self._top * high

    def grid(self) -> list[str]:
        """Draw lines at round values, and ticks at the sizes or at round times."""
        right, below = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        parts = []
        for number in range(round(self._top / self._step) + 1):
            value = number * self._step
            _, y = self.point_at((self._from, value))
            parts.append(
                f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#94a3b8" '
                f'stroke-opacity="0.3"/><text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
                f"{short(value)}</text>"
            )
        for value in self._marks():
            x, _ = self.point_at((value, 0.0))
            parts.append(f'<text x="{x:.1f}" y="{below + 18}" text-anchor="middle">{short(value)}</text>')
        return parts

    def _marks(self) -> list[float]:
        if self._log:
            return self._xs
        step = _step(self._to - self._from)
        first = math.ceil(self._from / step)
        return [step * n for n in range(first, math.floor(self._to / step) + 1)]


def _line(name: str, line: Sequence[Point], number: int, scale: _Scale) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    key_y = _TOP + 6 + number * 18
    key_x = _WIDTH - _RIGHT + 14
    key = (
        f'<line x1="{key_x}" x2="{key_x + 16}" y1="{key_y}" y2="{key_y}" stroke="{colour}" stroke-width="2"/>'
        f'<text x="{key_x + 22}" y="{key_y + 4}">{escape(name)}</text>'
    )
    points = [scale.point_at(point) for point in line]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
    drawn = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return [key, drawn, *(dots if len(dots) <= 20 else [])]


def _step(maximum: float) -> float:
    """Return a round step that divides this into four to eight parts."""
    if maximum <= 0:
        return 1.0
    rough = 10 ** math.floor(math.log10(maximum))
    return float(next(rough * part for part in (0.2, 0.25, 0.5, 1.0, 2.0) if maximum / (rough * part) <= 8))


def short(value: float) -> str:
    """Format a number in few characters: 1k, 2.5M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{name}"
    return f"{value:.4g}"
