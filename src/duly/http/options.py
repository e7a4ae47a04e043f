"""Options of the HTTP service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from duly.apps.documents.options import DocumentOptions
from duly.core.errors import ConfigurationError
from duly.core.policy import Retention
from duly.core.principal import Principal
from duly.features.alerts.thresholds import Thresholds
from duly.http.authentication.jwt import Issuer, OidcClient

if TYPE_CHECKING:
    from duly.observability.traces import Traces

EVERY_SUBJECT = "*"
"""The subject of `may` where jobs are not told apart: the feed, groups of dead letters, bulk changes."""
May = Callable[[Principal, str, str], Awaitable[bool]]
"""`await may(principal, subject_id, action)`: whether they may `submit`, `read` or `change` its jobs."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Limits, authentication and URLs of one service."""

    public_url: str = ""
    """The URL at which clients reach the service; without it, links are paths."""
    issuers: tuple[Issuer, ...] = ()
    """The issuers whose tokens are accepted."""
    sign_in: OidcClient | None = None
    """The client at the issuer, if users sign in there; else they sign in with keys and tokens."""
    may: May | None = None
    """Called for every job with a subject; without it, every reader of the org sees all of its jobs."""
    keep: Retention = Retention()  # noqa: RUF009 - frozen
    """The retention; results say when they expire."""
    body_max: int = 2 * 2**20
    upload_max: int = 32 * 2**20
    webhook_allow: tuple[str, ...] = ()
    """Private hosts and networks at which webhooks may be."""
    no_worker: timedelta = Thresholds().no_worker
    """How long the installation may be without a living worker before `/healthz` reports it."""
    requests_per_second: float = 100.0
    """Of an org, in one process, once the burst is spent."""
    burst: int = 500
    streams_max: int = 1_000
    """Open streams of an org, in one process."""
    wait_max: timedelta = timedelta(seconds=60)
    """The longest `Prefer: wait` of a poll."""
    stream_heartbeat: timedelta = timedelta(seconds=15)
    authentication_ttl: timedelta = timedelta(seconds=5)
    """How long the result of an authentication is cached: how long a revoked credential still works."""

    documents: DocumentOptions | None = None
    """How documents are read; by default as the application included them."""
    traces: Traces | None = None
    """Where the spans of requests go, if anywhere."""

    def __post_init__(self) -> None:
        if len(self.issuers) > 1:
            # Members are known by the `sub` of their tokens: two issuers could give it to two people.
            raise ConfigurationError("more than one issuer", field="issuers", fix="trust one issuer")
        if self.sign_in is not None and not self.issuers:
            raise ConfigurationError(
                "sign-in needs an issuer", field="sign_in", fix="configure the issuer of the tokens"
            )
        if self.requests_per_second <= 0 or self.burst < 1:
            raise ConfigurationError(
                f"rate {self.requests_per_second} with burst {self.burst} admits no request",
                field="requests_per_second",
                fix="use a rate above 0 and a burst of at least 1",
            )
