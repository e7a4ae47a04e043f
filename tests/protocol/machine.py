"""Random sequences on the real statements and on the model side by side: they must not differ."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.protocol.actions import ENDINGS, Acts
from tests.protocol.stage import Stage

_number = st.integers(0, 7)
_fate = st.sampled_from(["answered", "answered", "answered", "unanswered", "undone"])
# The fate of a statement: its answer may be lost after the commit, or before it with all its effects.
_percent = st.sampled_from([0.0, 10.0, 50.0, 150.0])
_grip = st.tuples(st.sampled_from(["zombie", "held", "any"]), _number)
# The claimed job that a worker continues: often one that it has lost.
_grips = st.lists(_grip, min_size=1, max_size=3)
_ending = st.sampled_from(sorted(ENDINGS))
_yes = st.booleans()
_way = st.sampled_from(["gates", "open", "open", "named"])

ACTS: dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]] = {
    "enqueue": (
        3,
        {
            "org": st.integers(0, 1),
            "later": st.sampled_from([False, False, True]),
            "attempts": st.integers(1, 3),
            "bridge": _yes,
        },
    ),
    "enqueue_again": (1, {"job": _number}),
    "cancel": (2, {"job": _number}),
    "boot": (2, {}),
    "claim": (4, {"index": _number, "slots": st.integers(1, 4), "fate": _fate, "way": _way}),
    "end": (8, {"which": _grips, "ending": _ending, "heard": _yes, "fate": _fate}),
    "complete": (5, {"which": _grips, "fate": _fate}),
    "chunk": (3, {"which": _grip, "percent": _percent}),
    "progress": (3, {"which": _grips, "percent": _percent}),
    "beat": (2, {"index": _number}),
    "stop": (1, {"index": _number}),
    "find_unknown": (1, {"index": _number}),
    "sleep": (4, {"index": _number}),
    "wait": (2, {"seconds": st.sampled_from([1, 40, 7200])}),
    "promote": (2, {}),
    "lose": (1, {}),
    "take_over": (2, {"limit": st.sampled_from([1, 100])}),
    "see_abandoned": (1, {}),
    "suspect": (2, {"job": _number}),
    "look_away": (2, {"job": _number, "ending": st.sampled_from(["retry", "snooze", "give back"])}),
    "overrule": (
        3,
        {"late": _yes, "sight": _number, "unqueued": st.sampled_from([False, False, True])},
    ),
}
"""The actions, their frequency and their arguments."""

EVERY_ACT = tuple(ACTS)


def _drawn(names: tuple[str, ...]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    weighted = [name for name in names for _ in range(ACTS[name][0])]
    return st.sampled_from(weighted).flatmap(
        lambda name: st.tuples(st.just(name), st.fixed_dictionaries(ACTS[name][1]))
    )


class Protocol(RuleBasedStateMachine):
    """Clients, workers that sleep for any time, reapers and reconcilers, in any order."""

    def __init__(self, stage: Stage, names: tuple[str, ...] = EVERY_ACT) -> None:
        super().__init__()
        self.acts = Acts(stage)
        self.drawn = _drawn(names)

    @initialize(bridge=_yes)
    def begin(self, bridge: bool) -> None:
        """Start two workers, one of them with a job."""
        for _ in range(2):
            self.acts.boot()
        for org in (0, 1):
            self.acts.enqueue(org=org, later=False, attempts=3, bridge=bridge)
        self.acts.claim(index=0, slots=2, fate="answered", way="open")

    @rule(act=st.runner().flatmap(lambda machine: machine.drawn))
    def do(self, act: tuple[str, dict[str, Any]]) -> None:
        """One rule for all actions: with many rules a run would omit most, and they matter only together."""
        name, given = act
        getattr(self.acts, name)(**given)

    @invariant()
    def the_tables_say_what_the_model_says(self) -> None:
        self.acts.check_tables()

    @invariant()
    def every_held_job_has_a_claim(self) -> None:
        self.acts.check_claims()
