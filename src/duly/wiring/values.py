"""What the rooms are told of the settings, as the values they ask for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from duly.settings import Settings
from duly.wiring import ground
from duly.worker.job_log import OFF
from duly.worker.options import WorkerOptions

if TYPE_CHECKING:
    from duly.documents.options import DocumentOptions
    from duly.http.options import HttpOptions, May

_LEVELS = logging.getLevelNamesMapping()


def worker_options(settings: Settings) -> WorkerOptions:
    """How a worker works."""
    return WorkerOptions(
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
        job_log_level=OFF if settings.job_log_level == "off" else _LEVELS[settings.job_log_level.upper()],
    )


def document_options(settings: Settings) -> DocumentOptions:
    """How documents are read, and who is asked for it."""
    from duly.documents.imports.options import ImportOptions
    from duly.documents.options import DocumentOptions
    from duly.documents.secrets import SecretStore

    return DocumentOptions(
        imports=ImportOptions(SecretStore(settings.secrets_dir)),
        unstructured_url=settings.unstructured_url,
        unstructured_key=settings.unstructured_key,
        cents_per_page={
            "unstructured_fast": settings.unstructured_fast_cents,
            "unstructured_hires": settings.unstructured_cents,
        },
    )


def http_options(settings: Settings, may: May | None) -> HttpOptions:
    """How the service serves."""
    from duly.http.options import HttpOptions
    from duly.http.tokens import Issuer, SignIn

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
        sign_in = SignIn(
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
        traces=ground.traces_of(settings),
    )
