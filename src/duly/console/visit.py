"""A request to the console: its principal, the org whose data it shows, and its language."""

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
_GERMAN_SEPARATORS = str.maketrans(",.", ".,")


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """A page to render: a template and its values."""

    template: str
    title: str
    values: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request for a page or a change."""

    service: Service
    request: Request
    requester: Requester
    renderer: Renderer = field(repr=False)
    language: str
    org_id: UUID
    """The org whose data is shown: the own one, or the one that an operator of the installation chose."""
    org_name: str
    all_orgs: bool
    """Whether an operator of the installation sees all orgs; `org_id` is then that of the system."""
    form: Form | None = None
    """The typed values of a rejected change."""
    problem: DulyError | None = None
    """The error of a rejected change."""

    @property
    def platform(self) -> bool:
        """Whether the principal operates the installation."""
        return self.requester.may(Scope.PLATFORM)

    @property
    def actor(self) -> Actor:
        """The actor that changes are recorded under."""
        return self.requester.actor

    @property
    def params(self) -> Mapping[str, str]:
        """The path parameters."""
        return self.request.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters."""
        return {key: text.replace("\0", "") for key, text in self.request.query_params.items()}

    def may(self, scope: Scope | str) -> bool:
        """Return whether the principal has the scope in this org."""
        return self.requester.may(Scope(scope))

    def t(self, message_id: str, **values: object) -> str:
        """Return a text in the language of the visit."""
        return self.renderer.text(self.language, message_id, values)

    def number(self, value: float, digits: int = 0) -> str:
        """Format a number in the language of the visit, as in 1,234.5 or 1.234,5."""
        text = f"{value:,.{digits}f}"
        return text.translate(_GERMAN_SEPARATORS) if self.language == "de" else text

    def link(self, path: str, **query: object) -> str:
        """Return the URL of a console page for the chosen org; query values None and "" are left out."""
        chosen = {"org": self.org_id} if self.platform and not self.all_orgs else {}
        params = {key: value for key, value in {**chosen, **query}.items() if value not in (None, "")}
        base = self.service.path(self.request) + PREFIX
        return f"{base}{quote(path)}{'?' if params else ''}{urlencode(params, doseq=True)}"

    def here(self, **query: object) -> str:
        """Return the URL of this page with changed query parameters; None or "" removes one."""
        params = {**self.request.query_params, **query}
        return "?" + urlencode({key: value for key, value in params.items() if value not in (None, "")})

    def outside(self, path: str) -> str:
        """Return the URL of a path of the service outside of the console."""
        return self.service.path(self.request) + path

    async def is_visible(self, subject_id: str | None, action: str = "read") -> bool:
        """Return whether the principal may access jobs of this subject."""
        return await self.service.is_visible(self.requester, subject_id, action)

    async def visible_subjects(
        self, subject_ids: Iterable[str | None], action: str = "read"
    ) -> Set[str | None]:
        """Return the subjects whose jobs the principal may access; None is always one of them."""
        return await self.service.visible_subjects(self.requester, subject_ids, action)

    def page(self, template: str, *, title: str, status: int = 200, **values: Any) -> ConsolePage:
        """Return a page from a template; `title` is a text, not a message id."""
        return ConsolePage(template, title, values, status)

    def fill(self, template: str, **values: Any) -> Markup:
        """Render a template without the frame around it."""
        return self.renderer.fill(self, template, values)

    def done(
        self, message_id: str, *, to: str, query: Mapping[str, object] | None = None, **values: object
    ) -> Response:
        """Redirect to a page that shows the message once: the change was applied."""
        return self.renderer.done(self, message_id, self.link(to, **(query or {})), values)


def as_id(text: str) -> UUID:
    """Parse an id of a URL; an invalid one is not found."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("page not found") from None
