"""What was found, as text and as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.extraction.trial import HEAD

_PAGE = """# Reading files

Made by `./dev bench extraction`, engine `{engine}`: each file in a process of its own, {at_once} at a time,
on a machine with two virtual cores that others used too. {known:,} of {files:,} files ended as they may: with
their text, or with a code that is always the same. The most memory that a real file took was {memory} MB, of
the hostile ones {memory_hostile} MB, where {memory_limit} MB are the end. The longest took {slowest:.0f} s
({longest}); all of them {seconds:,.0f} s.

*kind* is told by content; what ended with a code before it was known is listed by how its name ends. *code*:
ended with a stable code. *other*: ended otherwise, which must not be. *MB*: the most that its process held.
*not as usual*: the codes, the pages that are not plain text, and the warnings. Pages that `needs_ocr` are
pictures, which `fast` does not read and says so.

## Real files

From: {sources}.

{real}

## Damaged

One in {every} of them, cut off or with bytes changed.

{damaged}

## Hostile

{right} of {made} files that are made to do harm ended with the very code that they should.

{hostile}

## Words

F1 over bags of words, against `pdftotext`: of the text of whole PDF, and of *scans*, pages drawn at 200 dpi,
turned by up to 0.8 degrees and with noise, read by `hires`. *lying* are scans that lie on their side or on
their head.

{words}
"""
_WORDS = ("PDF", "what", "count", "median F1", "lowest tenth", "lowest", "s a page")


def as_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    )


def of_words(likenesses: Mapping[tuple[str, str], Sequence[tuple[float, float]]]) -> list[list[str]]:
    """By group and what was compared: how alike, and how long it took."""
    rows = []
    for (group, what), found in likenesses.items():
        alike = sorted(value for value, _ in found)
        figures = (statistics.median(alike), alike[len(alike) // 10], alike[0])
        seconds = statistics.median(seconds for _, seconds in found)
        rows.append([group, what, str(len(found)), *(f"{f:.3f}" for f in figures), f"{seconds:.2f}"])
    return rows


def words(rows: Sequence[Sequence[str]]) -> str:
    """The table of words for a terminal."""
    return as_text(_WORDS, rows)


def write(figures: Mapping[str, Any], folder: Path) -> None:
    """The page."""
    tables = {name: _table(HEAD, figures[name]) for name in ("real", "damaged", "hostile")}
    page = _PAGE.format(**{**figures, **tables, "words": _table(_WORDS, figures["words"])})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "extraction.md").write_text(page, encoding="utf-8")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
