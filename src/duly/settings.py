"""Every setting, in one frozen object: a TOML file, then the environment, then arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from email.utils import parseaddr
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from duly.model.alerts import WAITS, Thresholds
from duly.model.errors import ConfigurationError
from duly.model.policy import DEADLETTER, QUEUES
from duly.model.retention import Retention
from duly.sources import from_environment, from_file

_NUMBER = re.compile(r"\d+(\.\d+)?")
# A first look, so that what cannot be meant is refused at the start; who uses them reads them closely.
_MAIL_SERVER = re.compile(r"smtps?://[^\s/]+")
_MAILBOX = re.compile(r"[^\s@]+@[^\s@]+")
_RECIPIENT = re.compile(r"[a-z][a-z0-9_]*:.*\S")
# The last part of a name is no number: 10.0.0.300 is a wrong address.
_HOST = re.compile(r"([\w-]+\.)*(?!\d+\.?$)[\w-]+\.?")


def _kept(kind: str) -> Any:
    """A setting for how long things of a kind are kept."""
    field = Retention.model_fields[kind]
    return Field(default=field.default, description=field.description)


class Settings(BaseModel):
    """What an installation can set. Each field is `DULY_<NAME>` in the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str | None = Field(
        default=None,
        repr=False,  # may hold a password
        description="PostgreSQL 15 to 18; may be a transaction pooler. Without it the embedded server runs.",
    )
    database_direct_url: str | None = Field(
        default=None,
        repr=False,
        description="The same database without the pooler: for migrations. "
        "Setting it says that `database_url` is pooled, so that no prepared statements are used.",
    )
    home: Path | None = Field(
        default=None,
        description="Where the embedded server and local blobs live; by default the user's data folder.",
    )
    blobs_url: str | None = Field(
        default=None,
        description="Blob store: a folder, `s3://`, `gs://` or `az://`; by default `blobs` below `home`.",
    )
    pool_min: int = Field(default=1, ge=0, description="Connections a process keeps open.")
    pool_max: int = Field(
        default=10, ge=1, validate_default=True, description="Connections a process may open."
    )
    pool_patience: float = Field(default=30.0, gt=0, description="Seconds to wait for a free connection.")
    payload_inline_max: int = Field(
        default=32 * 1024,
        ge=0,
        description="Bytes up to which a payload lies in its row; larger ones go to the blobs.",
    )

    worker_queues: tuple[str, ...] = Field(
        default=tuple(queue for queue in QUEUES if queue != DEADLETTER),
        description="Queues a worker takes jobs from; separated by commas in the environment.",
    )
    worker_slots: int = Field(default=100, ge=1, description="Jobs a worker runs at a time.")
    worker_threads: int = Field(
        default=32, ge=1, description="Threads for handlers that are not async, at a time."
    )
    worker_isolated: int = Field(
        default=2, ge=1, description='Processes for handlers with `isolation="process"`, at a time.'
    )
    worker_lease: timedelta = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long a worker may be silent before its jobs go to others, "
        "as long as its connection is not closed.",
    )
    worker_heartbeat: timedelta = Field(
        default=timedelta(seconds=2), gt=timedelta(0), description="How often it says that it lives."
    )
    worker_poll: timedelta = Field(
        default=timedelta(seconds=1),
        gt=timedelta(0),
        description="How often it looks for jobs when nobody tells it of any.",
    )
    worker_drain: timedelta = Field(
        default=timedelta(seconds=30),
        ge=timedelta(0),
        description="How long it waits for its jobs when it is told to stop; the rest is given back.",
    )
    cancel_grace: timedelta = Field(
        default=timedelta(seconds=10),
        ge=timedelta(0),
        description="How long a handler may go on after a cancel before it is stopped.",
    )
    retries_per_second: float = Field(
        default=10.0, gt=0, description="Retries of one org against one dependency, once the burst is spent."
    )
    retry_burst: int = Field(default=100, ge=1, description="Retries that may come at once.")
    result_max: int = Field(
        default=64 * 2**20, ge=1024, description="Bytes a result may have; larger ones fail the job."
    )

    upkeep: bool = Field(
        default=True,
        description="Whether workers also do the chores: lost leases, schedules, maintenance. Some should.",
    )

    log_format: Literal["console", "json"] = Field(
        default="console", description="Lines for people, or JSON lines; `--json` asks for these too."
    )
    log_level: Literal["debug", "info", "warning", "error"] | None = Field(
        default=None,
        description="How much is written on stderr; by default `info`, of `duly up` `warning`. "
        "`--log-level` wins.",
    )
    job_log_level: Literal["debug", "info", "warning", "error", "critical", "off"] = Field(
        default="info", description="Lines of `ctx.log` from this level on are kept with the job, and shown."
    )
    traces: Literal["otlp", "global"] | None = Field(
        default=None,
        description="Where spans go: `otlp` to the collector that the `OTEL_*` variables name, `global` to "
        "the tracer provider of your program. Without it there are none. Needs `duly[traces]`.",
    )

    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Where `duly worker` tells `/metrics`, `/livez` and `/readyz`; without it, nowhere.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="The address of that port; nobody has to log in there."
    )

    reconcile_every: timedelta = Field(
        default=timedelta(seconds=10),
        gt=timedelta(0),
        description="How often workers look for jobs that cannot be believed any more.",
    )

    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s/]+(/[^\s]*[^\s/])?)?$",
        description="Where callers find the HTTP service, with no slash at the end; else links are paths.",
    )
    http_requests_per_second: float = Field(
        default=100.0, gt=0, description="Requests of one org to one process, once the burst is spent."
    )
    http_burst: int = Field(default=500, ge=1, description="Requests that may come at once.")
    token_issuer: str | None = Field(
        default=None,
        description="Whose tokens are believed, as in `iss`; their keys come by OpenID discovery.",
    )
    token_audience: str = Field(
        default="duly", min_length=1, description="For whom they must be, as in `aud`."
    )
    token_org_claim: str = Field(default="org_id", min_length=1, description="The claim that names the org.")
    token_platform_claim: str | None = Field(
        default=None, description="The claim that is true for those who look after the installation."
    )

    sign_in_client_id: str | None = Field(
        default=None, min_length=1, description="Who we are to the issuer: people can log in there then."
    )
    sign_in_client_secret: str | None = Field(default=None, repr=False, description="Our secret, if any.")
    sign_in_scopes: str = Field(
        default="openid", pattern=r"^openid( \S+)*$", description="What is asked for there, with spaces."
    )
    sign_in_label: str = Field(default="SSO", min_length=1, description="What it is called on the button.")

    webhook_allow: tuple[str, ...] = Field(
        default=(),
        description="Host names, addresses and networks that webhooks may be at although they are not "
        "public, also without TLS; separated by commas in the environment.",
    )
    webhook_timeout: timedelta = Field(
        default=timedelta(seconds=15),
        gt=timedelta(0),
        le=timedelta(minutes=1),
        description="What one try to deliver a webhook may take.",
    )
    webhook_disable_after: timedelta = Field(
        default=timedelta(days=3),
        gt=timedelta(0),
        description="How long a webhook may fail, with nothing delivered, before it is disabled.",
    )

    smtp_url: str | None = Field(
        default=None,
        repr=False,  # may hold a password
        description="The mail server: `smtp://user:password@host:587`, always encrypted unless it says "
        "`?starttls=never`; or `smtps://`. Without it, no mail is sent.",
    )
    mail_from: str = Field(
        default="",
        description="In whose name mail is sent: `Duly <duly@example.com>`. Needed with `smtp_url`.",
    )

    unstructured_url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="The Unstructured service that reads documents for those who agree to it; else nobody.",
    )
    unstructured_key: str | None = Field(default=None, repr=False, description="The key to it.")
    unstructured_cents: float = Field(default=1.0, ge=0, description="What it takes for a page at hi_res.")
    unstructured_fast_cents: float = Field(default=0.1, ge=0, description="What it takes for a page at fast.")

    secrets_dir: Path | None = Field(
        default=None, description="Where orgs' secrets are kept, a folder for each: `<org_id>/dropbox`."
    )

    alert_recipients: tuple[str, ...] = Field(
        default=(),
        description="Who is told what is wrong with the installation, and when it is over: "
        "`email:ops@example.com`, `in_app:anna`, `webhook:` and the id of an endpoint of the org `Duly`; "
        "separated by commas in the environment.",
    )
    alert_locale: str = Field(default="en", min_length=2, description="In which language they are told.")
    alert_queue_depth: int = Field(
        default=Thresholds().queue_depth, ge=1, description="More waiting jobs in a queue are an alert."
    )
    alert_wait: timedelta = Field(
        default=Thresholds().wait, gt=timedelta(0), description="A longer wait in a queue is an alert."
    )
    alert_waits: dict[str, timedelta] = Field(
        default={**WAITS},
        description="The same for single queues, as `q:critical=30,q:default=300` in the environment.",
    )
    alert_dead_per_hour: int = Field(
        default=Thresholds().dead_per_hour, ge=0, description="More dead jobs within an hour are an alert."
    )
    alert_no_worker: timedelta = Field(
        default=Thresholds().no_worker,
        gt=timedelta(0),
        description="No living worker for longer than that is an alert, and fails `/healthz`.",
    )
    alert_relay_lag: timedelta = Field(
        default=Thresholds().relay_lag,
        gt=timedelta(0),
        description="Events that are passed on later than that are an alert.",
    )

    keep_events: timedelta = _kept("events")
    keep_partial_results: timedelta = _kept("partial_results")
    keep_final_results: timedelta = _kept("final_results")
    keep_jobs: timedelta = _kept("jobs")
    keep_schedule_ticks: timedelta = _kept("schedule_ticks")
    keep_audit: timedelta | None = _kept("audit")
    keep_stopped_workers: timedelta = _kept("stopped_workers")
    keep_notifications: timedelta = _kept("notifications")

    @property
    def retention(self) -> Retention:
        """How long things are kept."""
        try:
            return Retention(**{name: getattr(self, f"keep_{name}") for name in Retention.model_fields})
        except ValidationError as error:
            first = error.errors()[0]
            field = f"keep_{first['loc'][0]}"
            raise ConfigurationError(
                first["msg"], field=field, fix=f"set DULY_{field.upper()} rightly"
            ) from None

    @field_validator("*", mode="before")
    @classmethod
    def _in_seconds(cls, value: Any, info: ValidationInfo) -> Any:
        """A duration may be a plain number of seconds; pydantic takes ISO 8601 by itself."""
        hint = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, str) and hint in (timedelta, timedelta | None) and _NUMBER.fullmatch(value):
            return float(value)
        return value

    @field_validator("alert_waits", mode="before")
    @classmethod
    def _by_queue(cls, value: Any) -> Any:
        """Pairs of a queue and its seconds; those that are not named keep their own."""
        if isinstance(value, str):
            pairs = [part.strip().rpartition("=") for part in value.split(",")]
            if not all(queue for queue, _, _ in pairs):
                raise ValueError("no queues with their seconds; write q:critical=30,q:default=300")
            value = {queue: float(said) if _NUMBER.fullmatch(said) else said for queue, _, said in pairs}
        return {**WAITS, **value} if isinstance(value, dict) else value

    @field_validator("worker_queues", "webhook_allow", "alert_recipients", mode="before")
    @classmethod
    def _by_commas(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("database_url", "database_direct_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        try:
            conninfo_to_dict(value or "")
        except ProgrammingError:
            # What it says may hold the password.
            raise ValueError("no address of PostgreSQL; write postgresql://user@host/database") from None
        return value

    @field_validator("smtp_url")
    @classmethod
    def _is_a_mail_server(cls, value: str | None) -> str | None:
        # Not shown: it may hold a password.
        if value is not None and not _MAIL_SERVER.match(value):
            raise ValueError("no address of a mail server; write smtp://user:password@host:587, or smtps://")
        return value

    @field_validator("mail_from")
    @classmethod
    def _is_a_mailbox(cls, value: str) -> str:
        if value and not _MAILBOX.fullmatch(parseaddr(value)[1]):
            raise ValueError("no address of mail; write Duly <duly@example.com>")
        return value

    @field_validator("webhook_allow")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not _HOST.fullmatch(one) and not _is_network(one):
                raise ValueError(f"{one!r} is no host, address or network; write intranet.example,10.0.0.0/8")
        return value

    @field_validator("alert_recipients")
    @classmethod
    def _are_recipients(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not _RECIPIENT.fullmatch(one):
                raise ValueError(f"{one!r} names no channel and whom; write email:ops@example.com")
        return value

    @field_validator("home", "secrets_dir")
    @classmethod
    def _of_this_user(cls, value: Path | None) -> Path | None:
        return value and value.expanduser()

    @field_validator("pool_max")
    @classmethod
    def _holds_the_minimum(cls, value: int, info: ValidationInfo) -> int:
        least = info.data.get("pool_min", 0)
        if value < least:
            raise ValueError(f"{value} is below pool_min, which is {least}")
        return value

    @classmethod
    def load(
        cls, *, file: Path | None = None, environ: Mapping[str, str] | None = None, **arguments: Any
    ) -> Self:
        """Read the file, the environment and the arguments; the later ones win."""
        environ = os.environ if environ is None else environ
        file = file or (Path(environ["DULY_CONFIG"]) if "DULY_CONFIG" in environ else None)
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return cls.model_validate(
                {**from_file(file), **from_environment(cls.model_fields, environ), **given}
            )
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            known = f"set DULY_{field.upper()} rightly"
            fix = f"one of {sorted(cls.model_fields)}" if first["type"] == "extra_forbidden" else known
            raise ConfigurationError(first["msg"], field=field, fix=fix) from None


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
