"""Submitted forms: parsing and validation of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl
from uuid import UUID

from fastapi import Request
from starlette.exceptions import HTTPException

from duly.core.errors import ContractError, MissingField

FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
MAX_FIELDS = 1_000


class Form(Mapping[str, str]):
    """The fields of a form by name. A repeated field has its last value; `all` returns every one."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._last = dict(pairs)

    def __getitem__(self, name: str) -> str:
        return self._last[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def all(self, name: str) -> list[str]:
        """Return every value of a field, in order."""
        return [text for key, text in self._pairs if key == name]

    def text(self, name: str) -> str:
        """Return a required text, stripped."""
        text = self.get(name, "").strip()
        if not text:
            raise MissingField("missing", field=name, fix=f"fill in {name}")
        return text

    def number(self, name: str) -> float:
        """Return a required number."""
        text = self.text(name)
        try:
            return float(text.replace(",", "."))
        except ValueError:
            raise ContractError(
                f"{text!r} is not a number", field=name, fix="use digits, as in 2.5"
            ) from None

    def id(self, name: str) -> UUID:
        """Return a required id."""
        text = self.text(name)
        try:
            return UUID(text)
        except ValueError:
            raise ContractError(
                f"{text!r} is not an id", field=name, fix="use an id as the page shows it"
            ) from None

    @property
    def reason(self) -> str:
        """The required reason of a change, which the audit trail records."""
        return self.text("reason")


async def read_form(request: Request) -> Form:
    """Parse the form in a request body; its CSRF token goes to the scope, where authentication reads it."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if media_type != FORM_MEDIA_TYPE and body:
        raise HTTPException(415, f"unsupported content type: send {FORM_MEDIA_TYPE}")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise HTTPException(400, "malformed form") from None
    form = Form([(name, text.replace("\0", "")) for name, text in pairs])
    request.scope["duly.csrf"] = form.get("csrf", "")
    return form
