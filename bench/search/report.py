"""The results as text and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HEAD = """# Search

Written by `./dev bench search` on {server}: queries through `app.documents.search`,
one at a time, ten hits each, including transaction and fragments. Each query ran once before, so that the
data is in memory. MRR@10 and recall@10 measure how often the right passage is among the hits, and how high.

- **German**: questions of XQuAD-de; each passage is a document with a meaningless name.
- **English**: the Python standard library; the first line of a docstring is the query for the rest of it.
- **many**: the German passages among {chunks:,} others of the same org, with {others:,} of other orgs in the
  same tables. The others are real sentences with generated rare words, {terms:,} different stems per org.
- **filtered**: with a filter by time that matches all documents. **closed**: a twentieth of the documents
  is in a folder to which the user has no access.
- **seed**: `plainto_tsquery` and `ts_rank` over an index on `to_tsvector('german', text)`, without row level
  security, on the same tables. It requires all words of a query and mostly finds nothing; **with OR** it
  requires any of them, measured for a tenth of the queries.
"""


def lines(figures: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each variant."""
    rows = []
    for name, arm in figures["arms"].items():
        ms = arm["ms"]
        rows.append(
            [name, f"{arm['questions']}", f"{arm['mrr']:.3f}", f"{arm['recall']:.3f}"]
            + [f"{ms[key]:.1f}" for key in ("p50", "p95", "p99")]
        )
    return rows


def as_text(figures: Mapping[str, Any]) -> str:
    """Return a table."""
    head = ["", "questions", "MRR@10", "recall@10", "p50 ms", "p95 ms", "p99 ms"]
    table = [head, *lines(figures)]
    text = "\n".join(f"{row[0]:<28}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in table)
    return text + "\n" + "\n".join(f"{name}: {value}" for name, value in _facts(figures).items())


def write(figures: Mapping[str, Any], folder: Path) -> None:
    """Write the page."""
    page = _HEAD.format(**figures)
    page += (
        "\n| | questions | MRR@10 | recall@10 | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|---|---|---|\n"
    )
    page += "".join(f"| {' | '.join(row)} |\n" for row in lines(figures))
    page += "\n" + "".join(f"- {name}: {value}\n" for name, value in _facts(figures).items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "search.md").write_text(page, encoding="utf-8")


def _facts(figures: Mapping[str, Any]) -> dict[str, str]:
    facts = {"compounds split by HanTa": "yes" if figures["hanta"] else "no"}
    if "shared" in figures:
        facts["found among the ten best of all passages"] = f"{figures['shared']:.1%}"
        facts["time of the seed with OR as a multiple of Duly's, p50 and p95"] = figures["ratio"]
        facts["passages written in bulk, per second"] = f"{figures['rate']:,.0f}"
        facts["passages published one document at a time, per second"] = f"{figures['published']:,.0f}"
    return facts
