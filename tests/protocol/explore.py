"""Exhaustive breadth-first exploration: every state, and the shortest path to a violation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Move(NamedTuple, Generic[S]):
    """One possible step in a state."""

    label: str
    state: S
    broken: str | None = None
    """The invariant that it violates."""
    fair: bool = False
    """Whether it happens by itself when there are no more faults."""


@dataclass(frozen=True, slots=True)
class Counterexample(Generic[S]):
    """The shortest path to a violated invariant."""

    broken: str
    trace: tuple[tuple[str, S], ...]

    @property
    def labels(self) -> list[str]:
        """The labels of the steps."""
        return [label for label, _ in self.trace]

    def __str__(self) -> str:
        steps = "\n".join(f"{number:3}. {label}" for number, label in enumerate(self.labels, 1))
        return f"broken: {self.broken}\n{steps}"


@dataclass
class Explored(Generic[S]):
    """Every state in the order of discovery, with its first predecessor."""

    states: list[S] = field(default_factory=list)
    parents: list[tuple[int, str]] = field(default_factory=list)
    fair: list[list[int]] = field(default_factory=list)
    """The states that follow by fair steps."""
    moves: int = 0
    depth: int = 0
    counterexample: Counterexample[S] | None = None

    def way_to(self, index: int) -> list[tuple[str, S]]:
        """Return the path from the first state."""
        way = []
        while index:
            parent, label = self.parents[index]
            way.append((label, self.states[index]))
            index = parent
        return way[::-1]


def explore(first: S, moves: Callable[[S], Iterable[Move[S]]], *, limit: int = 1_000_000) -> Explored[S]:
    """Visit every state; stop at the first violated invariant, which is then one of the nearest."""
    found = Explored([first], [(0, "")])
    known, depths = {first: 0}, [0]
    at = 0
    while at < len(found.states):
        fair: list[int] = []
        for move in moves(found.states[at]):
            found.moves += 1
            if move.broken:
                trace = (*found.way_to(at), (move.label, move.state))
                found.counterexample = Counterexample(move.broken, trace)
                return found
            index = known.setdefault(move.state, len(found.states))
            if index == len(found.states):
                assert index < limit, f"more than {limit} states"
                found.states.append(move.state)
                found.parents.append((at, move.label))
                depths.append(depths[at] + 1)
            if move.fair and index != at:
                fair.append(index)
        found.fair.append(fair)
        at += 1
    found.depth = depths[-1]
    return found


def unfinished(found: Explored[S], done: Callable[[S], bool]) -> Iterator[Counterexample[S]]:
    """Return the states from which fair steps alone do not surely lead to an end.

    Every fair run must stop, and where it stops every job must have ended: fair steps form no cycle, and a
    state without fair steps is done.
    """
    before: list[list[int]] = [[] for _ in found.states]
    for index, following in enumerate(found.fair):
        for later in following:
            before[later].append(index)
    left = [len(following) for following in found.fair]
    stack = [index for index, count in enumerate(left) if not count]
    for index in stack:
        if not done(found.states[index]):
            yield Counterexample("stuck although nothing goes wrong", tuple(found.way_to(index)))
    while stack:
        for earlier in before[stack.pop()]:
            left[earlier] -= 1
            if not left[earlier]:
                stack.append(earlier)
    for index, count in enumerate(left):
        if count:
            yield Counterexample("may go on for ever", tuple(found.way_to(index)))
            return
