"""What was found, as text and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HEAD = """# Search

Made by `./dev bench search` on {server}: questions through `app.documents.search`,
one at a time, ten hits each, transaction and fragments included; each was asked once before, so that what
search reads is in memory. MRR@10 and recall@10 tell how often the right passage is among the hits, and how
far up.

- **German**: XQuAD-de, questions over passages, each a document of its own whose name says nothing.
- **English**: the Python standard library: the first line of a docstring asks for the rest of it.
- **many**: the German passages among {chunks:,} others of the same org, with {others:,} of other orgs in the
  same tables. The others are real sentences whose rare words are made anew, {terms:,} different stems an org.
- **filtered**: the same, of a time that all documents are of. **closed**: a twentieth of the documents lies
  in a folder that is closed to whoever asks.
- **seed**: `plainto_tsquery` and `ts_rank` over an index on `to_tsvector('german', text)`, without row level
  security, on the same tables. It wants all words of a question, and mostly finds nothing; **with OR** it
  wants any of them, asked for a tenth of the questions.
"""


def lines(figures: Mapping[str, Any]) -> list[list[str]]:
    """A row for each arm."""
    rows = []
    for name, arm in figures["arms"].items():
        ms = arm["ms"]
        rows.append(
            [name, f"{arm['questions']}", f"{arm['mrr']:.3f}", f"{arm['recall']:.3f}"]
            + [f"{ms[key]:.1f}" for key in ("p50", "p95", "p99")]
        )
    return rows


def as_text(figures: Mapping[str, Any]) -> str:
    """A table."""
    head = ["", "questions", "MRR@10", "recall@10", "p50 ms", "p95 ms", "p99 ms"]
    table = [head, *lines(figures)]
    text = "\n".join(f"{row[0]:<28}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in table)
    return text + "\n" + "\n".join(f"{name}: {value}" for name, value in _facts(figures).items())


def write(figures: Mapping[str, Any], folder: Path) -> None:
    """The page."""
    page = _HEAD.format(**figures)
    page += (
        "\n| | questions | MRR@10 | recall@10 | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|---|---|---|\n"
    )
    page += "".join(f"| {' | '.join(row)} |\n" for row in lines(figures))
    page += "\n" + "".join(f"- {name}: {value}\n" for name, value in _facts(figures).items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "search.md").write_text(page, encoding="utf-8")


def _facts(figures: Mapping[str, Any]) -> dict[str, str]:
    facts = {"compounds taken apart by HanTa": "yes" if figures["hanta"] else "no"}
    if "shared" in figures:
        facts["of the ten best of all passages, found by looking at few"] = f"{figures['shared']:.1%}"
        facts["milliseconds of the seed with OR to ours, p50 and p95"] = figures["ratio"]
        facts["passages written in bulk, a second"] = f"{figures['rate']:,.0f}"
        facts["passages published one document at a time, a second"] = f"{figures['published']:,.0f}"
    return facts
