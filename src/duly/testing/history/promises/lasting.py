"""What must not change: ended jobs and the audit trail."""

from __future__ import annotations

from duly.model.audit_chain import verify
from duly.model.states import TERMINAL
from duly.testing.history.book import Book, Findings, Key, promise
from duly.testing.history.records import Sight

_ENDED = frozenset(status.value for status in TERMINAL)


@promise
def i19(book: Book, found: Findings) -> None:
    """Rows of ended jobs never change, nor do audit entries, and the audit chain verifies."""
    _rows_last(book, found)
    _entries_last(book, found)
    _chain_verifies(book, found)


def _rows_last(book: Book, found: Findings) -> None:
    ended: dict[Key, Sight] = {}
    alive_after: dict[tuple[str, Key], bool] = {}
    for sight in book.history.sights:
        key = (sight.org_id, sight.job_id)
        if sight.status not in _ENDED:
            if alive_after.get((sight.observer, key)):
                found.report(f"it had ended, and is {sight.status} again", key, observer=sight.observer)
            continue
        found.facts += 1
        alive_after[sight.observer, key] = True
        first = ended.setdefault(key, sight)
        if first.digest != sight.digest:
            found.report(
                f"its row changed after it was {first.status}",
                key,
                seen=[first.digest, sight.digest],
                observers=[first.observer, sight.observer],
                now=sight.status,
            )


def _entries_last(book: Book, found: Findings) -> None:
    kept = {str(entry["entry_id"]): entry["digest"] for entry in book.history.audit if "digest" in entry}
    for entry_id, digest in book.history.audit_sights:
        found.facts += 1
        if entry_id not in kept:
            found.report(f"audit entry {entry_id} is gone", entry_id=entry_id)
        elif kept[entry_id] != digest:
            found.report(f"audit entry {entry_id} was rewritten", entry_id=entry_id)


def _chain_verifies(book: Book, found: Findings) -> None:
    found.facts += len(book.history.seals)
    for problem in verify(book.history.audit, book.history.seals):
        found.report(
            f"the audit chain is broken: {problem.message}",
            org_id=problem.org_id,
            seal_seq=problem.seal_seq,
            entry_id=problem.entry_id,
        )
