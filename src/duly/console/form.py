"""What a form has sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl
from uuid import UUID

from fastapi import Request
from starlette.exceptions import HTTPException

from duly.core.errors import ContractError, MissingField

KIND = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1_000


class Form(Mapping[str, str]):
    """Texts by the names of their fields. Of a name that comes more than once the last; `all` has all."""

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
        """Every text of that name, in their order."""
        return [text for key, text in self._pairs if key == name]

    def text(self, name: str) -> str:
        """A text that must be there; without the blanks around it."""
        found = self.get(name, "").strip()
        if not found:
            raise MissingField("missing", field=name, fix=f"fill in {name}")
        return found

    def number(self, name: str) -> float:
        """A number that must be there."""
        given = self.text(name)
        try:
            return float(given.replace(",", "."))
        except ValueError:
            raise ContractError(f"{given!r} is no number", field=name, fix="use digits, as in 2.5") from None

    def id(self, name: str) -> UUID:
        """An id that must be there."""
        given = self.text(name)
        try:
            return UUID(given)
        except ValueError:
            raise ContractError(
                f"{given!r} is no id", field=name, fix="use an id as the page shows it"
            ) from None

    @property
    def reason(self) -> str:
        """Why they want it; every change is put down with its reason."""
        return self.text("reason")


async def read_form(request: Request) -> Form:
    """The form in the body of a request, and its proof that one of our pages has sent it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind != KIND and body:
        raise HTTPException(415, f"send {KIND}")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise HTTPException(400, "this is no form") from None
    form = Form([(name, text.replace("\0", "")) for name, text in pairs])
    request.scope["duly.csrf"] = form.get("csrf", "")
    return form
