"""Turn the settings, and the arguments of the application's methods, into the options of each component."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack

from duly import app_resources as resources
from duly.settings import Settings
from duly.worker.job_log import OFF
from duly.worker.options import WorkerOptions

if TYPE_CHECKING:
    from duly.apps.documents.classification.remote_classifier import Classifier
    from duly.apps.documents.elements import Engine
    from duly.apps.documents.engines import ReaderLimits
    from duly.apps.documents.imports.options import ImportOptions
    from duly.apps.documents.library.quotas import Quotas
    from duly.apps.documents.options import DocumentOptions
    from duly.http.options import HttpOptions, May

_LEVELS = logging.getLevelNamesMapping()


class WorkerArguments(TypedDict, total=False):
    """The keyword arguments of `app.worker(...)`; see `WorkerOptions`. Each wins over its setting."""

    name: str
    queues: tuple[str, ...]
    slots: int
    threads: int
    isolated: int
    lease: timedelta
    heartbeat: timedelta
    poll: timedelta
    drain: timedelta
    cancel_grace: timedelta
    stop_grace: timedelta
    retries_per_second: float
    retry_burst: int
    result_max: int
    metrics: bool
    job_log_level: int


class DocumentArguments(TypedDict, total=False):
    """The keyword arguments of `app.include_documents(...)`; see `DocumentOptions`."""

    limits: ReaderLimits
    unstructured_url: str | None
    unstructured_key: str | None
    classifier: Classifier | None
    imports: ImportOptions
    quotas: Quotas
    cents_per_page: Mapping[Engine, float]


def worker_options(settings: Settings, **arguments: Unpack[WorkerArguments]) -> WorkerOptions:
    """Return the options of a worker."""
    level = settings.job_log_level
    options = WorkerOptions(
        queues=settings.worker_queues,
        slots=settings.worker_slots,
        threads=settings.worker_threads,
        isolated=settings.worker_isolated,
        lease=settings.worker_lease,
        heartbeat=settings.worker_heartbeat,
        poll=settings.worker_poll,
        drain=settings.worker_drain,
        cancel_grace=settings.cancel_grace,
        retries_per_second=settings.retries_per_second,
        retry_burst=settings.retry_burst,
        result_max=settings.result_max,
        job_log_level=OFF if level == "off" else _LEVELS[level.upper()],
    )
    return replace(options, **arguments)


def document_options(settings: Settings, **arguments: Unpack[DocumentArguments]) -> DocumentOptions:
    """Return the options of the documents application."""
    from duly.apps.documents.imports.options import ImportOptions
    from duly.apps.documents.imports.secrets import SecretStore
    from duly.apps.documents.options import DocumentOptions

    options = DocumentOptions(
        imports=ImportOptions(SecretStore(settings.secrets_dir)),
        unstructured_url=settings.unstructured_url,
        unstructured_key=settings.unstructured_key,
        cents_per_page={
            "unstructured_fast": settings.unstructured_fast_cents,
            "unstructured_hires": settings.unstructured_cents,
        },
    )
    return replace(options, **arguments)


def http_options(settings: Settings, may: May | None) -> HttpOptions:
    """Return the options of the HTTP service."""
    from duly.http.authentication.jwt import Issuer, OidcClient
    from duly.http.options import HttpOptions

    issuers = (
        ()
        if settings.token_issuer is None
        else (
            Issuer(
                settings.token_issuer,
                settings.token_audience,
                org_claim=settings.token_org_claim,
                platform_claim=settings.token_platform_claim,
            ),
        )
    )
    sign_in = None
    if settings.sign_in_client_id is not None:
        sign_in = OidcClient(
            settings.sign_in_client_id,
            settings.sign_in_client_secret,
            label=settings.sign_in_label,
            scopes=settings.sign_in_scopes,
        )
    return HttpOptions(
        public_url=settings.public_url,
        issuers=issuers,
        sign_in=sign_in,
        may=may,
        keep=settings.retention,
        no_worker=settings.alert_no_worker,
        webhook_allow=settings.webhook_allow,
        requests_per_second=settings.http_requests_per_second,
        burst=settings.http_burst,
        traces=resources.traces_of(settings),
    )
