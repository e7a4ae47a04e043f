"""Whom to tell, and how: `email:anna@example.com`, `in_app:u-17`, `webhook:<endpoint>`, `sms:+49 …`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from duly.core.errors import ContractError, MissingField, UnknownWebhook
from duly.core.job import Actor, ActorType
from duly.db.pool import Connection
from duly.features.arguments import required_text
from duly.features.webhooks import store as endpoints
from duly.jobs.request_context import as_uuid

EMAIL, IN_APP, WEBHOOK = "email", "in_app", "webhook"
FALLBACK = "en"
"""The language of those for whose own there are no words."""
_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,49}")
_KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_LOCALE = re.compile(r"([A-Za-z]{2,3})(-[A-Za-z0-9]{2,8})?")
# Less than RFC 5322 allows: `%` and `!` ask servers to pass it on, `=?` begins encoded text, `-` an option.
_MAILBOX = re.compile(r"(?!-)(?!.*=\?)[A-Za-z0-9#$&'*+/=?^_`{}~-]+(\.[A-Za-z0-9#$&'*+/=?^_`{}~-]+)*")
_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))+")
_LONGEST = 320
"""Of an address, in bytes: it is part of an index."""


class Recipient(NamedTuple):
    """Somebody, by one way to reach them."""

    channel: str
    address: str

    @classmethod
    def read(cls, said: Recipient | str) -> Recipient:
        """Checked, and written as it is compared: an address of mail in small letters."""
        if isinstance(said, Recipient):
            channel, address = said
        else:
            channel, _, address = required_text("to", said).partition(":")
        return cls(checked_channel(channel), _READ.get(channel, _plain)(address))

    def __str__(self) -> str:
        return f"{self.channel}:{self.address}"


def checked_channel(name: str) -> str:
    """The name of a way to reach people."""
    if not _CHANNEL.fullmatch(required_text("channel", name)):
        raise _wrong(f"{name!r} is no channel", "say how, and whom: email:anna@example.com, in_app:u-17")
    return name


def own_address(actor: Actor) -> str:
    """Where somebody reads what they are told in the product: a user's is their id, a program's is not."""
    if actor.type is ActorType.USER and actor.id.partition(":")[0] not in {*ActorType}:
        return actor.id
    return f"{actor.type}:{actor.id}"


def masked(channel: str, address: str) -> str:
    """Whom it is about, as far as that may be kept for ever, and seen by many: ids, but no address."""
    if channel in (IN_APP, WEBHOOK):
        return f"{channel}:{address}"
    _, at, host = address.rpartition("@")
    return f"{channel}:{address[:1]}***{at}{host if at else ''}"


def bounded(field: str, value: str, longest: int) -> str:
    """A text of so many bytes at most."""
    if len(value.encode()) > longest:
        raise ContractError(f"longer than {longest} bytes", field=field, fix="shorten it")
    return value


def _plain(address: str) -> str:
    return bounded("to", required_text("to", address), _LONGEST)


def _mail(address: str) -> str:
    mailbox, _, host = required_text("to", address).strip().lower().rpartition("@")
    try:
        host = host.encode("idna").decode()
    except UnicodeError:
        host = ""
    if not _MAILBOX.fullmatch(mailbox) or not _HOST.fullmatch(host) or len(mailbox) > 64 or len(host) > 253:
        raise _wrong("no address of mail", "use one like anna@example.com")
    return f"{mailbox}@{host}"


def _endpoint(address: str) -> str:
    try:
        return str(UUID(address))
    except (ValueError, AttributeError, TypeError):
        raise _wrong("no endpoint", "use the id of a webhook endpoint of the org") from None


_READ = {EMAIL: _mail, WEBHOOK: _endpoint}


async def check_endpoints(conn: Connection, org_id: UUID, recipients: Iterable[Recipient]) -> None:
    """Raise if one of them is a webhook that the org does not have."""
    for channel, address in recipients:
        if channel == WEBHOOK and await endpoints.read(conn, org_id, UUID(address)) is None:
            raise UnknownWebhook("no such webhook in this org", field="to", fix="check the id and the org")


def checked_id(field: str, said: UUID | str) -> UUID:
    """An id that is there, also from its text."""
    found = as_uuid(field, said)
    if found is None:
        raise MissingField("missing", field=field, fix=f"pass {field}")
    return found


def checked_key(key: str) -> str:
    """The name of a template."""
    if len(required_text("template_key", key)) > 100 or not _KEY.fullmatch(key):
        raise ContractError("no key", field="template_key", fix="use lower_case.words, 100 at most")
    return key


def checked_locale(locale: str) -> str:
    """A language, with a region if need be: `de`, `de-AT`."""
    found = _LOCALE.fullmatch(required_text("locale", locale))
    if found is None:
        raise ContractError(f"{locale!r} is no locale", field="locale", fix="use one like de, en or de-AT")
    region = found[2] or ""
    return found[1].lower() + (region.upper() if len(region) == 3 else region.title())


def fallbacks(locale: str) -> list[str]:
    """Where words are looked for, in this order: `de-AT`, `de`, `en`."""
    return [*dict.fromkeys((locale, locale.partition("-")[0], FALLBACK))]


def _wrong(message: str, fix: str) -> ContractError:
    return ContractError(message, field="to", fix=fix)
