"""Extract one file as a worker does; record its outcome, time and memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines.error_codes import CODES
from duly.apps.documents.engines.file_reader import FileReader
from duly.apps.documents.engines.limits import ReaderLimits

HEAD = ("kind", "files", "ok", "code", "other", "pages", "pages/s", "MB", "not as usual")


@dataclass(frozen=True)
class Trial:
    """The outcome of a file."""

    path: Path
    kind: str
    """The media type, or the extension if it was not detected."""
    outcome: str
    """`ok`, a stable code, or an unexpected error."""
    pages: Sequence[PageElements]
    seconds: float
    memory: int

    @property
    def is_known(self) -> bool:
        """Whether the file ended as specified: no page is silently without text, no worker dies."""
        return self.outcome in CODES or (self.outcome == "ok" and bool(self.pages))

    @property
    def text(self) -> str:
        """The whole extracted text."""
        return "\n".join(page.text for page in self.pages)


async def tried(path: Path, engine: Engine, limits: ReaderLimits) -> Trial:
    """Extract a whole file."""
    reader = FileReader(path, path.name, engine, limits)
    pages: list[PageElements] = []
    outcome, began = "ok", time.monotonic()
    try:
        await reader.open()
        numbers = range(1, reader.pages + 1)
        pages.extend([page async for page in reader.read(numbers)])
    except UnreadableFile as why:
        outcome = why.code
    except Exception as trouble:
        outcome = type(trouble).__name__
    finally:
        await reader.close()
    kind = reader.media_type or path.suffix.lower()
    return Trial(path, kind, outcome, pages, time.monotonic() - began, reader.memory)


def table(trials: Iterable[Trial]) -> list[list[str]]:
    """Return rows by kind: outcomes, states of pages, pages per second, peak memory."""
    by_kind: dict[str, list[Trial]] = {}
    for trial in trials:
        by_kind.setdefault(_short(trial.kind), []).append(trial)
    return [[kind, *_row(trials_of_kind)] for kind, trials_of_kind in sorted(by_kind.items())]


def _row(trials: Sequence[Trial]) -> list[str]:
    ok = sum(t.outcome == "ok" for t in trials)
    known = sum(t.is_known for t in trials) - ok
    pages = sum(len(t.pages) for t in trials)
    speed = pages / max(0.001, sum(t.seconds for t in trials))
    memory = max(t.memory for t in trials) >> 20
    counts = (len(trials), ok, known, len(trials) - ok - known, f"{pages:,}", f"{speed:.1f}", memory)
    return [*(str(count) for count in counts), _notes(trials)]


def _notes(trials: Sequence[Trial]) -> str:
    notes = Counter(t.outcome.removeprefix("document.") for t in trials if t.outcome != "ok")
    notes += Counter(page.state for t in trials for page in t.pages if page.state != "text")
    notes += Counter(warning for t in trials for page in t.pages for warning in page.warnings)
    return ", ".join(f"{name} {count}" for name, count in notes.most_common())


def _short(kind: str) -> str:
    return kind.rpartition(".")[2] if "officedocument" in kind or "opendocument" in kind else kind
