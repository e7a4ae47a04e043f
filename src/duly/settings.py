"""Every setting with its default and its description, from a TOML file, the environment and arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from email.utils import parseaddr
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from duly.core.errors import ConfigurationError
from duly.core.policy import DEAD_LETTER_QUEUE, QUEUES, Retention
from duly.features.alerts.thresholds import QUEUE_WAITS, Thresholds
from duly.settings_sources import SettingArguments, read_environment, read_file, with_current_names

_NUMBER = re.compile(r"\d+(\.\d+)?")
# Checks of the shape only, so that mistakes are refused at the start; features check the details.
_MAIL_SERVER = re.compile(r"smtps?://[^\s/]+")
_MAILBOX = re.compile(r"[^\s@]+@[^\s@]+")
_RECIPIENT = re.compile(r"[a-z][a-z0-9_]*:.*\S")
# The last part of a host name is not a number: 10.0.0.300 is an invalid address.
_HOST = re.compile(r"([\w-]+\.)*(?!\d+\.?$)[\w-]+\.?")


def _retention(kind: str) -> Any:
    """Return the setting for a retention period, with the default and the description of the policy."""
    field = Retention.model_fields[kind]
    return Field(default=field.default, description=field.description)


class Settings(BaseModel):
    """The settings of an installation. Each field is `DULY_<NAME>` in the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str | None = Field(
        default=None,
        repr=False,  # may hold a password
        description="URL of PostgreSQL 15 to 18, or of a transaction pooler; by default the embedded server.",
    )
    database_direct_url: str | None = Field(
        default=None,
        repr=False,
        description="URL of the same database without the pooler, for migrations and LISTEN. "
        "It declares `database_url` as pooled, so that no prepared statements are used.",
    )
    home: Path | None = Field(
        default=None,
        description="Folder of the embedded server and local blobs; by default the user's data folder.",
    )
    blobs_url: str | None = Field(
        default=None,
        description="Blob store: a folder, `s3://`, `gs://` or `az://`; by default `blobs` below `home`.",
    )
    pool_min: int = Field(default=1, ge=0, description="Connections that a process keeps open.")
    pool_max: int = Field(
        default=10, ge=1, validate_default=True, description="Connections that a process may open."
    )
    pool_timeout: float = Field(default=30.0, gt=0, description="Seconds to wait for a free connection.")
    payload_inline_max: int = Field(
        default=32 * 1024,
        ge=0,
        description="Bytes up to which a payload is stored in its row; larger ones are stored as blobs.",
    )

    worker_queues: tuple[str, ...] = Field(
        default=tuple(queue for queue in QUEUES if queue != DEAD_LETTER_QUEUE),
        description="Queues from which a worker claims jobs; separated by commas in the environment.",
    )
    worker_slots: int = Field(default=100, ge=1, description="Jobs that a worker runs at a time.")
    worker_threads: int = Field(
        default=32, ge=1, description="Threads for handlers that are not async, at a time."
    )
    worker_isolated: int = Field(
        default=2, ge=1, description='Processes for handlers with `isolation="process"`, at a time.'
    )
    worker_lease: timedelta = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="Time without a heartbeat after which the jobs of a worker are claimed by others, "
        "unless its connection is closed before.",
    )
    worker_heartbeat: timedelta = Field(
        default=timedelta(seconds=2), gt=timedelta(0), description="Interval of its heartbeats."
    )
    worker_poll: timedelta = Field(
        default=timedelta(seconds=1),
        gt=timedelta(0),
        description="Interval in which a worker polls for jobs when no notification arrives.",
    )
    worker_drain: timedelta = Field(
        default=timedelta(seconds=30),
        ge=timedelta(0),
        description="Time to finish running jobs when a worker stops; the rest is given back.",
    )
    cancel_grace: timedelta = Field(
        default=timedelta(seconds=10),
        ge=timedelta(0),
        description="Time that a handler may run after a cancel request before it is stopped.",
    )
    retries_per_second: float = Field(
        default=10.0, gt=0, description="Retries per second of one org and dependency, after the burst."
    )
    retry_burst: int = Field(default=100, ge=1, description="Retries of one org and dependency at once.")
    result_max: int = Field(
        default=64 * 2**20,
        ge=1024,
        description="Largest size of a result in bytes; larger ones fail the job.",
    )

    maintenance: bool = Field(
        default=True,
        description="Whether workers also run the background services: lost leases, schedules, maintenance. "
        "At least one worker should.",
    )

    log_format: Literal["console", "json"] = Field(
        default="console", description="Log lines for people, or JSON lines; also by `--json`."
    )
    log_level: Literal["debug", "info", "warning", "error"] | None = Field(
        default=None,
        description="Log level on stderr; by default `info`, for `duly up` `warning`. `--log-level` wins.",
    )
    job_log_level: Literal["debug", "info", "warning", "error", "critical", "off"] = Field(
        default="info", description="Level from which lines of `ctx.log` are stored with the job."
    )
    traces: Literal["otlp", "global"] | None = Field(
        default=None,
        description="Export of OpenTelemetry spans: `otlp` to the collector of `OTEL_*`, `global` "
        "to the tracer provider of your program; by default none. Needs `duly[traces]`.",
    )

    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of `/metrics`, `/livez` and `/readyz` of `duly worker`; by default none.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="Address of that port; it needs no credential."
    )

    reconcile_every: timedelta = Field(
        default=timedelta(seconds=10),
        gt=timedelta(0),
        description="Interval in which workers look for stale jobs.",
    )

    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s/]+(/[^\s]*[^\s/])?)?$",
        description="URL of the HTTP service, without a slash at the end; by default links are paths.",
    )
    http_requests_per_second: float = Field(
        default=100.0, gt=0, description="Requests per second of one org to one process, after the burst."
    )
    http_burst: int = Field(default=500, ge=1, description="Requests of one org at once.")
    token_issuer: str | None = Field(
        default=None,
        description="Issuer (`iss`) of accepted tokens; their keys come from OpenID discovery.",
    )
    token_audience: str = Field(
        default="duly", min_length=1, description="Audience (`aud`) of accepted tokens."
    )
    token_org_claim: str = Field(default="org_id", min_length=1, description="Claim with the id of the org.")
    token_platform_claim: str | None = Field(
        default=None, description="Claim that is true for operators of the installation."
    )

    sign_in_client_id: str | None = Field(
        default=None, min_length=1, description="Client id at the issuer; enables signing in there."
    )
    sign_in_client_secret: str | None = Field(default=None, repr=False, description="Client secret, if any.")
    sign_in_scopes: str = Field(
        default="openid", pattern=r"^openid( \S+)*$", description="Requested scopes, separated by spaces."
    )
    sign_in_label: str = Field(default="SSO", min_length=1, description="Label of the button.")

    webhook_allow: tuple[str, ...] = Field(
        default=(),
        description="Private hosts, addresses and networks that webhooks may reach, also without TLS; "
        "separated by commas in the environment.",
    )
    webhook_timeout: timedelta = Field(
        default=timedelta(seconds=15),
        gt=timedelta(0),
        le=timedelta(minutes=1),
        description="Timeout of one attempt to deliver a webhook.",
    )
    webhook_disable_after: timedelta = Field(
        default=timedelta(days=3),
        gt=timedelta(0),
        description="Time after which a webhook is disabled when every delivery fails.",
    )

    smtp_url: str | None = Field(
        default=None,
        repr=False,  # may hold a password
        description="URL of the mail server: `smtp://user:password@host:587`, encrypted unless "
        "`?starttls=never`; or `smtps://`. By default no mail is sent.",
    )
    mail_from: str = Field(
        default="",
        description="Sender of mail: `Duly <duly@example.com>`. Required with `smtp_url`.",
    )

    unstructured_url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="URL of the Unstructured service, for orgs that consent to it; by default none.",
    )
    unstructured_key: str | None = Field(
        default=None, repr=False, description="API key of the Unstructured service."
    )
    unstructured_cents: float = Field(
        default=1.0, ge=0, description="Its price of a page with hi_res, in cents."
    )
    unstructured_fast_cents: float = Field(
        default=0.1, ge=0, description="Its price of a page with fast, in cents."
    )

    secrets_dir: Path | None = Field(
        default=None, description="Folder of the secrets of orgs, one folder for each: `<org_id>/dropbox`."
    )

    alert_recipients: tuple[str, ...] = Field(
        default=(),
        description="Recipients of alerts of the installation: "
        "`email:ops@example.com`, `in_app:anna`, `webhook:` and the id of an endpoint of the org `Duly`; "
        "separated by commas in the environment.",
    )
    alert_locale: str = Field(default="en", min_length=2, description="Language of these alerts.")
    alert_queue_depth: int = Field(
        default=Thresholds().queue_depth,
        ge=1,
        description="Queued jobs in a queue above which an alert fires.",
    )
    alert_wait: timedelta = Field(
        default=Thresholds().wait, gt=timedelta(0), description="Wait in a queue above which an alert fires."
    )
    alert_waits: dict[str, timedelta] = Field(
        default={**QUEUE_WAITS},
        description="The same for single queues, as `q:critical=30,q:default=300` in the environment.",
    )
    alert_dead_per_hour: int = Field(
        default=Thresholds().dead_per_hour,
        ge=0,
        description="Dead letters per hour above which an alert fires.",
    )
    alert_no_worker: timedelta = Field(
        default=Thresholds().no_worker,
        gt=timedelta(0),
        description="Time without a live worker after which an alert fires, and `/healthz` fails.",
    )
    alert_relay_lag: timedelta = Field(
        default=Thresholds().relay_lag,
        gt=timedelta(0),
        description="Delay of the event relay above which an alert fires.",
    )

    keep_events: timedelta = _retention("events")
    keep_partial_results: timedelta = _retention("partial_results")
    keep_final_results: timedelta = _retention("final_results")
    keep_jobs: timedelta = _retention("jobs")
    keep_schedule_ticks: timedelta = _retention("schedule_ticks")
    keep_audit: timedelta | None = _retention("audit")
    keep_stopped_workers: timedelta = _retention("stopped_workers")
    keep_notifications: timedelta = _retention("notifications")

    @property
    def retention(self) -> Retention:
        """The retention policy."""
        try:
            return Retention(**{name: getattr(self, f"keep_{name}") for name in Retention.model_fields})
        except ValidationError as error:
            first = error.errors()[0]
            field = f"keep_{first['loc'][0]}"
            raise ConfigurationError(first["msg"], field=field, fix=f"correct DULY_{field.upper()}") from None

    @field_validator("*", mode="before")
    @classmethod
    def _parse_seconds(cls, value: Any, info: ValidationInfo) -> Any:
        """Accept a plain number of seconds as a duration; pydantic accepts ISO 8601 itself."""
        hint = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, str) and hint in (timedelta, timedelta | None) and _NUMBER.fullmatch(value):
            return float(value)
        return value

    @field_validator("alert_waits", mode="before")
    @classmethod
    def _parse_waits(cls, value: Any) -> Any:
        """Parse pairs of a queue and its seconds; other queues keep their defaults."""
        if isinstance(value, str):
            pairs = [part.strip().rpartition("=") for part in value.split(",")]
            if not all(queue for queue, _, _ in pairs):
                raise ValueError("not a list of queues with seconds; write q:critical=30,q:default=300")
            value = {queue: float(wait) if _NUMBER.fullmatch(wait) else wait for queue, _, wait in pairs}
        return {**QUEUE_WAITS, **value} if isinstance(value, dict) else value

    @field_validator("worker_queues", "webhook_allow", "alert_recipients", mode="before")
    @classmethod
    def _split_commas(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("database_url", "database_direct_url")
    @classmethod
    def _check_database_url(cls, value: str | None) -> str | None:
        try:
            conninfo_to_dict(value or "")
        except ProgrammingError:
            # The error may contain the password.
            raise ValueError("not a URL of PostgreSQL; write postgresql://user@host/database") from None
        return value

    @field_validator("smtp_url")
    @classmethod
    def _check_smtp_url(cls, value: str | None) -> str | None:
        # Without the value: it may contain a password.
        if value is not None and not _MAIL_SERVER.match(value):
            raise ValueError("not a URL of a mail server; write smtp://user:password@host:587, or smtps://")
        return value

    @field_validator("mail_from")
    @classmethod
    def _check_mail_from(cls, value: str) -> str:
        if value and not _MAILBOX.fullmatch(parseaddr(value)[1]):
            raise ValueError("not a mail address; write Duly <duly@example.com>")
        return value

    @field_validator("webhook_allow")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not _HOST.fullmatch(one) and not _is_network(one):
                raise ValueError(
                    f"{one!r} is not a host, address or network; write intranet.example,10.0.0.0/8"
                )
        return value

    @field_validator("alert_recipients")
    @classmethod
    def _check_recipients(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not _RECIPIENT.fullmatch(one):
                raise ValueError(f"{one!r} is not a channel with a recipient; write email:ops@example.com")
        return value

    @field_validator("home", "secrets_dir")
    @classmethod
    def _expand_user(cls, value: Path | None) -> Path | None:
        return value and value.expanduser()

    @field_validator("pool_max")
    @classmethod
    def _check_pool_max(cls, value: int, info: ValidationInfo) -> int:
        minimum = info.data.get("pool_min", 0)
        if value < minimum:
            raise ValueError(f"{value} is below pool_min, which is {minimum}")
        return value

    @classmethod
    def load(
        cls,
        *,
        file: Path | None = None,
        environ: Mapping[str, str] | None = None,
        **arguments: Unpack[SettingArguments],
    ) -> Self:
        """Read the file, the environment and the arguments; the later ones win."""
        environ = os.environ if environ is None else environ
        file = file or (Path(environ["DULY_CONFIG"]) if "DULY_CONFIG" in environ else None)
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            sources = (read_file(file), read_environment(cls.model_fields, environ), given)
            return cls.model_validate(
                {name: value for values in sources for name, value in with_current_names(values).items()}
            )
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            unknown = first["type"] == "extra_forbidden"
            fix = f"use one of {sorted(cls.model_fields)}" if unknown else f"correct DULY_{field.upper()}"
            raise ConfigurationError(first["msg"], field=field, fix=fix) from None


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
