"""Who may do what with which documents: by the folder they lie in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

from duly.apps.documents.errors import unknown_folder
from duly.apps.documents.schema import Connection, one
from duly.core.job import Actor
from duly.core.outcome import Fail

Level = Literal["read", "write", "manage"]


class Visitor(NamedTuple):
    """Somebody who asks for documents of their org."""

    org_id: UUID
    actor: Actor

    @property
    def principal(self) -> str:
        """As folders name them: `user:u1`, `api_key:k1`, `system:import`."""
        return f"{self.actor.type}:{self.actor.id}"


async def barred(conn: Connection, who: Visitor, level: Level = "read") -> Sequence[UUID]:
    """The folders of the org in which they may not do it; usually none."""
    found = await one(conn, "nodes/barred", {"principal": who.principal, "level": level})
    return list(found[0]) if found else []


class Reach(NamedTuple):
    """How far somebody comes in the folders of the org."""

    closed: Sequence[UUID]
    """Those that they may not see."""
    fixed: Sequence[UUID]
    """Those in which they may change nothing, the closed ones among them."""


async def reach(conn: Connection, who: Visitor) -> Reach:
    """Where they may look, and where they may write: asked once in a transaction."""
    found = await one(conn, "nodes/reach", {"principal": who.principal})
    return Reach(*found) if found else Reach((), ())


async def check_open(conn: Connection, who: Visitor, nodes: Sequence[UUID], field: str = "node_id") -> None:
    """Raise unless all of these are folders that they may see."""
    if nodes:
        asked = {"org_id": who.org_id, "nodes": list(nodes), "barred": await barred(conn, who)}
        found = await one(conn, "nodes/count_open", asked)
        if found is None or found[0] < len(set(nodes)):
            raise unknown_folder(field)


async def is_admin(conn: Connection, who: Visitor) -> bool:
    """Whether no folder is closed to them, whatever it says."""
    found = await one(conn, "nodes/is_admin", {"principal": who.principal})
    return found is not None and bool(found[0])


def about(payload: Mapping[str, Any], actor: Actor) -> str | None:
    """What a job is about that has a document in its payload."""
    return subject_of(payload["document_id"])


def private(payload: Mapping[str, Any], actor: Actor) -> str | None:
    """What a job is about whose results are for whoever asked for it."""
    return f"private:{actor.type}:{actor.id}"


def check_subject(said: str | None, wanted: str) -> None:
    """Refuse a job that others could read: those who may see it are told by what it is about."""
    if said != wanted:
        raise Fail(f"it is about something else: pass subject_id {wanted}", code="document.subject_missing")


def subject_of(document_id: UUID | str) -> str:
    """What jobs about a document are about: who may not see it does not see them either."""
    return f"document:{document_id}"


def private_to(who: Visitor) -> str:
    """What jobs are about whose results are for one person."""
    return f"private:{who.principal}"
