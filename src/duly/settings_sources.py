"""The sources of settings: keyword arguments, the environment, and a table of a TOML file."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict

from duly.core.errors import ConfigurationError

_RENAMED = {"pool_patience": "pool_timeout", "upkeep": "maintenance"}
"""Names of 0.9, which work for one more release."""
Seconds = timedelta | float
"""A duration, also as a number of seconds."""


class SettingArguments(TypedDict, total=False):
    """The settings as keyword arguments of `Duly(...)` and `Settings.load(...)`; see `Settings`."""

    database_url: str | None
    database_direct_url: str | None
    home: Path | str | None
    blobs_url: str | None
    pool_min: int | None
    pool_max: int | None
    pool_timeout: float | None
    payload_inline_max: int | None
    worker_queues: Sequence[str] | None
    worker_slots: int | None
    worker_threads: int | None
    worker_isolated: int | None
    worker_lease: Seconds | None
    worker_heartbeat: Seconds | None
    worker_poll: Seconds | None
    worker_drain: Seconds | None
    cancel_grace: Seconds | None
    retries_per_second: float | None
    retry_burst: int | None
    result_max: int | None
    maintenance: bool | None
    log_format: Literal["console", "json"] | None
    log_level: Literal["debug", "info", "warning", "error"] | None
    job_log_level: Literal["debug", "info", "warning", "error", "critical", "off"] | None
    traces: Literal["otlp", "global"] | None
    metrics_port: int | None
    metrics_host: str | None
    reconcile_every: Seconds | None
    public_url: str | None
    http_requests_per_second: float | None
    http_burst: int | None
    token_issuer: str | None
    token_audience: str | None
    token_org_claim: str | None
    token_platform_claim: str | None
    sign_in_client_id: str | None
    sign_in_client_secret: str | None
    sign_in_scopes: str | None
    sign_in_label: str | None
    webhook_allow: Sequence[str] | None
    webhook_timeout: Seconds | None
    webhook_disable_after: Seconds | None
    smtp_url: str | None
    mail_from: str | None
    unstructured_url: str | None
    unstructured_key: str | None
    unstructured_cents: float | None
    unstructured_fast_cents: float | None
    secrets_dir: Path | str | None
    alert_recipients: Sequence[str] | None
    alert_locale: str | None
    alert_queue_depth: int | None
    alert_wait: Seconds | None
    alert_waits: Mapping[str, Seconds] | None
    alert_dead_per_hour: int | None
    alert_no_worker: Seconds | None
    alert_relay_lag: Seconds | None
    keep_events: Seconds | None
    keep_partial_results: Seconds | None
    keep_final_results: Seconds | None
    keep_jobs: Seconds | None
    keep_schedule_ticks: Seconds | None
    keep_audit: Seconds | None
    keep_stopped_workers: Seconds | None
    keep_notifications: Seconds | None


def read_file(file: Path | None) -> dict[str, Any]:
    """Return the table `[duly]` of a TOML file."""
    if file is None:
        return {}
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("duly", {})
    except (OSError, ValueError) as error:  # missing, not UTF-8, not TOML
        raise ConfigurationError(f"{file}: {error}", field="DULY_CONFIG", fix="name a TOML file") from None
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: duly is not a table", field="DULY_CONFIG", fix="write [duly]")
    return table


def read_environment(fields: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of these fields from the environment, also by their former names."""
    names = {name: f"DULY_{name.upper()}" for name in (*fields, *_RENAMED)}
    # An empty variable counts as not set.
    return {name: environ[variable] for name, variable in names.items() if environ.get(variable)}


def with_current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by their current names; former names are deprecated."""
    for name in _RENAMED.keys() & values.keys():
        warnings.warn(
            f"the setting {name} is deprecated: use {_RENAMED[name]}", DeprecationWarning, stacklevel=3
        )
    return {_RENAMED.get(name, name): value for name, value in values.items()}
