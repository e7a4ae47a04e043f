"""The transition table, drawn."""

from __future__ import annotations

from duly.model.states import TERMINAL, TRANSITIONS


def mermaid() -> str:
    """A Mermaid state diagram of every legal step."""
    steps: dict[tuple[str, str], list[str]] = {}
    for (source, trigger), target in TRANSITIONS.items():
        steps.setdefault((source or "[*]", target), []).append(trigger.value)
    lines = [
        f"    {source} --> {target}: {', '.join(triggers)}" for (source, target), triggers in steps.items()
    ]
    ends = [f"    {status} --> [*]" for status in sorted(TERMINAL)]
    return "\n".join(["stateDiagram-v2", *lines, *ends])
