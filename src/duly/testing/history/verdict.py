"""What became of the promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from duly.testing.history.book import Findings
from duly.testing.history.records import Violation

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings of every promise. One of which nothing was seen is not held: there is no evidence."""

    findings: tuple[Findings, ...]

    @property
    def holds(self) -> bool:
        """Whether no promise is broken."""
        return not any(self.findings)

    @property
    def violations(self) -> list[Violation]:
        """Everything that is wrong."""
        return [violation for found in self.findings for violation in found]

    @property
    def broken(self) -> set[str]:
        """The promises that do not hold."""
        return {found.promise for found in self.findings if found}

    @property
    def unseen(self) -> set[str]:
        """The promises of which the history tells nothing."""
        return {found.promise for found in self.findings if not found and not found.facts}

    def of(self, promise: str) -> Findings:
        """The findings of one promise."""
        return next(found for found in self.findings if found.promise == promise)

    def table(self) -> str:
        """One line per promise, then what is wrong."""
        width = max(len(found.words) for found in self.findings)
        lines = [f"{'':<4} {'promise':<{width}}  {'checked':>9}  violations"]
        for found in self.findings:
            said = f"{len(found)}" if found or found.facts else "no evidence"
            lines.append(f"{found.promise:<4} {found.words:<{width}}  {found.facts:>9,}  {said}")
        return "\n".join([*lines, *self._wrong()])

    def _wrong(self) -> Iterator[str]:
        for found in self.findings:
            if found:
                yield ""
                yield from map(str, found[:_SHOWN])
                if len(found) > _SHOWN:
                    yield f"{found.promise}: and {len(found) - _SHOWN} more"
