"""The sample texts, and texts that make a bad regular expression backtrack."""

from __future__ import annotations

from pathlib import Path

TEXTS = Path(__file__).parents[3] / "examples" / "texts"

_UNITS = (
    '1|1.|1,1| |\n |a|a@|a.|@|a-|-|.|. |<|&#|😀|"|0 |DE89|DE89 |DE89 3704 |1 |1 000 |€|€ 1|1%|1 Mio. |12. |'
    "12. März |März |01.02.|1/1/|u\u0308|\u0315\u0300|A1 |x@b.b.b.b.b.b.b.b. |wort |Dr. |!?|'a|"
    "1 Billion Euro |1,500 € |3. bis |de89 3704 |June 3-|$3-4"
)
HOSTILE = {unit: (unit * 80_000)[:80_000] for unit in _UNITS.split("|")}
"""Repetitions of one unit: a search that backtracks takes quadratic or exponential time."""


def sample(name: str) -> str:
    return (TEXTS / name).read_text(encoding="utf-8")


def samples() -> list[dict[str, str]]:
    return [{"name": path.name, "text": sample(path.name)} for path in sorted(TEXTS.iterdir())]
