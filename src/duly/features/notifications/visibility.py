"""Nobody is told of what they may no longer see: asked when it is told, not only when they asked for it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from uuid import UUID

from duly.core.job import Actor, ActorType
from duly.core.principal import Principal
from duly.features.notifications.store import Due
from duly.jobs.application import App


async def veiled(app: App, due: Sequence[Due]) -> list[Due]:
    """The same, of which those say so that are about what whoever asked for them may not see."""
    asked: dict[tuple[UUID, str], set[str]] = {}
    for one in due:
        if one.about is not None:
            asked.setdefault((one.org_id, one.created_by), set()).add(one.about)
    seen = {key: await _seen(app, *key, subjects) for key, subjects in asked.items()}
    return [
        one
        if one.about is None or one.about in seen[one.org_id, one.created_by]
        else one.model_copy(update={"hidden": True})
        for one in due
    ]


async def _seen(app: App, org_id: UUID, by: str, subjects: Set[str]) -> Set[str]:
    kind, _, name = by.partition(":")
    actor = Actor(ActorType(kind), name) if kind in {*ActorType} else Actor.user(by)
    who = Principal(org_id, actor, frozenset())
    for rule in app.subject_rules:
        if subjects:
            subjects = subjects & await rule(who, subjects, "read")
    return subjects
