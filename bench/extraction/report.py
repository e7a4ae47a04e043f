"""The results as text and as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.extraction.trial import HEAD

_PAGE = """# Document extraction

Written by `./dev bench extraction`, engine `{engine}`: each file in a process of its own, {at_once} at a
time, on a shared machine with two virtual cores. {known:,} of {files:,} files ended as specified: with
their text or with a stable code. The peak memory of a real file was {memory} MB, of a hostile one
{memory_hostile} MB; the limit is {memory_limit} MB. The slowest file took {slowest:.0f} s ({longest}), all
of them {seconds:,.0f} s.

*kind* is detected by content; files that ended before that are listed by extension. *code*: ended with a
stable code. *other*: ended otherwise, which is a bug. *MB*: peak memory of the process. *not as usual*:
codes, pages that are not plain text, and warnings. Pages with `needs_ocr` are images, which `fast` does not
recognize.

## Real files

From: {sources}.

{real}

## Damaged

One in {every} of the real files, truncated or with changed bytes.

{damaged}

## Hostile

{right} of {made} crafted files ended with the expected code.

{hostile}

## Words

F1 over bags of words, compared with `pdftotext`: the text of whole PDF files, and *scans*: pages rendered at
200 dpi, rotated by up to 0.8 degrees, with noise, recognized by `hires`. *lying* are scans that are sideways
or upside down.

{words}
"""
_WORDS = ("PDF", "what", "count", "median F1", "lowest tenth", "lowest", "s per page")


def as_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    )


def of_words(likenesses: Mapping[tuple[str, str], Sequence[tuple[float, float]]]) -> list[list[str]]:
    """Return rows by group and kind: F1 values and time."""
    rows = []
    for (group, what), found in likenesses.items():
        alike = sorted(value for value, _ in found)
        figures = (statistics.median(alike), alike[len(alike) // 10], alike[0])
        seconds = statistics.median(seconds for _, seconds in found)
        rows.append([group, what, str(len(found)), *(f"{f:.3f}" for f in figures), f"{seconds:.2f}"])
    return rows


def words(rows: Sequence[Sequence[str]]) -> str:
    """Return the table of words for a terminal."""
    return as_text(_WORDS, rows)


def write(figures: Mapping[str, Any], folder: Path) -> None:
    """Write the page."""
    tables = {name: _table(HEAD, figures[name]) for name in ("real", "damaged", "hostile")}
    page = _PAGE.format(**{**figures, **tables, "words": _table(_WORDS, figures["words"])})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "extraction.md").write_text(page, encoding="utf-8")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
