"""What the service can be told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from duly.documents.options import DocumentOptions
from duly.http.tokens import Issuer, SignIn
from duly.model.access import Principal
from duly.model.alerts import Thresholds
from duly.model.errors import ConfigurationError
from duly.model.retention import Retention

if TYPE_CHECKING:
    from duly.observe.traces import Traces

EVERY_SUBJECT = "*"
"""What `may` is asked about where jobs are not told apart: the feed, kinds of dead letters, many replays."""
May = Callable[[Principal, str, str], Awaitable[bool]]
"""`await may(principal, subject_id, action)`: may they `submit`, `read` or `change` jobs about it?"""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Limits and trust."""

    public_url: str = ""
    """Where callers find the service, as they see it; without it, links are paths."""
    issuers: tuple[Issuer, ...] = ()
    """Whose tokens are believed."""
    sign_in: SignIn | None = None
    """What we are to that issuer, if people are to log in there; else they log in with keys and tokens."""
    may: May | None = None
    """Asked about every job that has a subject. Without it, whoever sees the org's jobs sees all of them."""
    keep: Retention = Retention()  # noqa: RUF009 - frozen
    """How long things are kept: results say when they expire."""
    body_max: int = 2 * 2**20
    upload_max: int = 32 * 2**20
    webhook_allow: tuple[str, ...] = ()
    """Hosts and networks that webhooks may be at although they are not public."""
    no_worker: timedelta = Thresholds().no_worker
    """How long there may be no living worker before the installation is said to be unwell."""
    requests_per_second: float = 100.0
    """Of an org, in one process, once the burst is spent."""
    burst: int = 500
    streams_max: int = 1_000
    """Open streams of an org, in one process."""
    wait_max: timedelta = timedelta(seconds=60)
    """The longest that a poll may wait for news."""
    stream_heartbeat: timedelta = timedelta(seconds=15)
    believed_for: timedelta = timedelta(seconds=5)
    """How long a credential that was checked is believed without asking again: the longest that one which
    was revoked still works."""

    documents: DocumentOptions | None = None
    """How documents are read; without it, as the application was told when it included them."""
    traces: Traces | None = None
    """Where spans of requests are made, if they are wanted."""

    def __post_init__(self) -> None:
        if len(self.issuers) > 1:
            # Members are known by the `sub` of their tokens: two issuers could mean two people by the same.
            raise ConfigurationError("more than one", field="issuers", fix="trust one issuer")
        if self.sign_in is not None and not self.issuers:
            raise ConfigurationError(
                "there is no issuer", field="sign_in", fix="say whose tokens are believed"
            )
        if self.requests_per_second <= 0 or self.burst < 1:
            raise ConfigurationError(
                "nobody could ask anything", field="requests_per_second", fix="use more than 0, and a burst"
            )
