"""Open the account of a connector."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.imports.models import Connector
from duly.apps.documents.imports.options import ImportOptions, ProviderEndpoint
from duly.apps.documents.imports.providers import dropbox, gdrive, onedrive
from duly.apps.documents.imports.providers.http_client import AuthenticatedClient, ErrorMapper, HttpClient
from duly.apps.documents.imports.providers.remote import Provider, Remote
from duly.apps.documents.imports.providers.tokens import TokenOwner, Tokens, exchange_at
from duly.apps.documents.schema import Connection


class _ProviderClient(NamedTuple):
    endpoint: Callable[[ImportOptions], ProviderEndpoint]
    map_error: ErrorMapper
    open: Callable[[AuthenticatedClient, ProviderEndpoint, str | None], Remote]


_PROVIDERS: dict[Provider, _ProviderClient] = {
    "dropbox": _ProviderClient(lambda options: options.dropbox, dropbox.map_error, dropbox.Dropbox),
    "onedrive": _ProviderClient(lambda options: options.onedrive, onedrive.map_error, onedrive.OneDrive),
    "gdrive": _ProviderClient(lambda options: options.gdrive, gdrive.map_error, gdrive.GDrive),
}


@asynccontextmanager
async def open_account(
    connector: Connector,
    org_id: UUID,
    session: Callable[[], AbstractAsyncContextManager[Connection]],
    options: ImportOptions,
) -> AsyncIterator[Remote]:
    """Open the account of a connector until the block is left."""
    provider = _PROVIDERS[connector.provider]
    endpoint = provider.endpoint(options)
    http = HttpClient(
        response_timeout=options.answer_timeout,
        map_error=provider.map_error,
        download_hosts=endpoint.downloads,
    )
    async with http:
        owner = TokenOwner(org_id, connector.connector_id, connector.secret_ref, session)
        tokens = Tokens(owner, options.secrets.of(org_id), exchange_at(http, endpoint))
        yield provider.open(AuthenticatedClient(http, tokens), endpoint, connector.drive)
