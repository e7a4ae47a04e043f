"""Recipients: channel and address, as in `email:anna@example.com`, `in_app:u-17`, `webhook:<endpoint>`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from duly.core.errors import ContractError, UnknownWebhook
from duly.core.job import Actor, ActorType
from duly.db.pool import Connection
from duly.features.arguments import required_text
from duly.features.webhooks import store as webhooks

EMAIL, IN_APP, WEBHOOK = "email", "in_app", "webhook"
MAX_ADDRESS_BYTES = 320
"""Addresses are part of an index."""
_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,49}")
# Less than RFC 5322 allows: `%` and `!` request relaying, `=?` starts encoded text, `-` an option.
_MAILBOX = re.compile(r"(?!-)(?!.*=\?)[A-Za-z0-9#$&'*+/=?^_`{}~-]+(\.[A-Za-z0-9#$&'*+/=?^_`{}~-]+)*")
_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))+")


class Recipient(NamedTuple):
    """An address on a channel."""

    channel: str
    address: str

    @classmethod
    def parse(cls, to: Recipient | str) -> Recipient:
        """Return a valid recipient in canonical form: mail addresses are in lower case."""
        if isinstance(to, Recipient):
            channel, address = to
        else:
            channel, _, address = required_text("to", to).partition(":")
        parse_address = {EMAIL: _parse_mail_address, WEBHOOK: _parse_endpoint}.get(channel, _parse_other)
        return cls(checked_channel(channel), parse_address(address))

    def __str__(self) -> str:
        return f"{self.channel}:{self.address}"


def checked_channel(name: str) -> str:
    """Return a valid name of a channel."""
    if not _CHANNEL.fullmatch(required_text("channel", name)):
        raise _invalid(
            f"{name!r} is not a channel", "use channel:address, as in email:anna@example.com or in_app:u-17"
        )
    return name


def in_app_address(actor: Actor) -> str:
    """Return the in-app address of an actor: the id of a user; of other actors their type and id."""
    if actor.type is ActorType.USER and actor.id.partition(":")[0] not in {*ActorType}:
        return actor.id
    return f"{actor.type}:{actor.id}"


def mask_recipient(channel: str, address: str) -> str:
    """Return a recipient without its address, for the audit trail and the console; ids stay."""
    if channel in (IN_APP, WEBHOOK):
        return f"{channel}:{address}"
    _, at, host = address.rpartition("@")
    return f"{channel}:{address[:1]}***{at}{host if at else ''}"


def checked_bytes(field: str, value: str, max_bytes: int) -> str:
    """Return a text of limited length in bytes."""
    if len(value.encode()) > max_bytes:
        raise ContractError(f"longer than {max_bytes} bytes", field=field, fix="shorten it")
    return value


async def check_endpoints(conn: Connection, org_id: UUID, recipients: Iterable[Recipient]) -> None:
    """Raise if one of the recipients is a webhook that the org does not have."""
    for channel, address in recipients:
        if channel == WEBHOOK and await webhooks.read(conn, org_id, UUID(address)) is None:
            raise UnknownWebhook(
                f"no webhook {address} in this org", field="to", fix="check the id and the org"
            )


def _parse_other(address: str) -> str:
    return checked_bytes("to", required_text("to", address), MAX_ADDRESS_BYTES)


def _parse_mail_address(address: str) -> str:
    mailbox, _, host = required_text("to", address).strip().lower().rpartition("@")
    try:
        host = host.encode("idna").decode()
    except UnicodeError:
        host = ""
    if not _MAILBOX.fullmatch(mailbox) or not _HOST.fullmatch(host) or len(mailbox) > 64 or len(host) > 253:
        raise _invalid("not a mail address", "use one like anna@example.com")
    return f"{mailbox}@{host}"


def _parse_endpoint(address: str) -> str:
    try:
        return str(UUID(address))
    except (ValueError, AttributeError, TypeError):
        raise _invalid("not an endpoint", "use the id of a webhook endpoint of the org") from None


def _invalid(message: str, fix: str) -> ContractError:
    return ContractError(message, field="to", fix=fix)
