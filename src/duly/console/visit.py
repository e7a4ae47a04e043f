"""Somebody who looks at a page of the console: who they are, whose data they see, and in which language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.core.errors import DulyError, NotFound
from duly.core.job import Actor
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service

if TYPE_CHECKING:
    from duly.console.form import Form
    from duly.console.render import Renderer

PREFIX = "/console"


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows: a template and its values."""

    template: str
    title: str
    values: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One look at a page, or one change from there."""

    service: Service
    request: Request
    caller: Requester
    renderer: Renderer = field(repr=False)
    language: str
    org_id: UUID
    """Whose data is shown: the visitor's own, or the org that an operator of the installation has chosen."""
    org_name: str
    everywhere: bool
    """Whether an operator of the installation looks at all orgs; `org_id` is the system's then."""
    form: Form | None = None
    """What was typed, when a change was refused."""
    problem: DulyError | None = None
    """Why it was refused."""

    @property
    def platform(self) -> bool:
        """Whether they operate the installation."""
        return self.caller.may(Scope.PLATFORM)

    @property
    def actor(self) -> Actor:
        """Who changes are put down to."""
        return self.caller.actor

    @property
    def params(self) -> Mapping[str, str]:
        """The variable parts of the path, by their names."""
        return self.request.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """What is behind the ? of the address."""
        return {key: text.replace("\0", "") for key, text in self.request.query_params.items()}

    def may(self, scope: Scope | str) -> bool:
        """Whether they may do it here."""
        return self.caller.may(Scope(scope))

    def t(self, key: str, **values: object) -> str:
        """A text in their language."""
        return self.renderer.text(self.language, key, values)

    def link(self, path: str, **query: object) -> str:
        """An address in the console, of the org that is looked at; without what is None or empty."""
        chosen = {"org": self.org_id} if self.platform and not self.everywhere else {}
        asked = {key: value for key, value in {**chosen, **query}.items() if value not in (None, "")}
        base = self.service.path(self.request) + PREFIX
        return f"{base}{quote(path)}{'?' if asked else ''}{urlencode(asked, doseq=True)}"

    def here(self, **query: object) -> str:
        """This page again, with other values behind the ?; None or empty takes one away."""
        asked = {**self.request.query_params, **query}
        return "?" + urlencode({key: value for key, value in asked.items() if value not in (None, "")})

    def outside(self, path: str) -> str:
        """An address of the service that is not of the console."""
        return self.service.path(self.request) + path

    async def sees(self, subject_id: str | None, action: str = "read") -> bool:
        """Whether they may see jobs about this subject."""
        return await self.service.is_visible(self.caller, subject_id, action)

    async def seen(self, subject_ids: Iterable[str | None], action: str = "read") -> Set[str | None]:
        """Those of the subjects that they may see jobs about, and None."""
        return await self.service.visible_subjects(self.caller, subject_ids, action)

    def page(self, template: str, *, title: str, status: int = 200, **values: Any) -> Page:
        """A page from a template; `title` is a text, not a key."""
        return Page(template, title, values, status)

    def fill(self, template: str, **values: Any) -> Markup:
        """A template alone."""
        return self.renderer.fill(self, template, values)

    def done(
        self, said: str, *, to: str, query: Mapping[str, object] | None = None, **values: object
    ) -> Response:
        """It is done: they go to a page, which says so once. `said` is the key of the text."""
        return self.renderer.done(self, said, self.link(to, **(query or {})), values)


def as_id(text: str) -> UUID:
    """An id from an address; what is none is not found."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("no such id") from None
