"""From a connector to the account it stands for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.imports.options import ImportOptions, Place
from duly.apps.documents.imports.providers import dropbox, gdrive, onedrive
from duly.apps.documents.imports.providers.http_client import Explain, Web
from duly.apps.documents.imports.providers.remote import Provider, Remote
from duly.apps.documents.imports.providers.tokens import Owner, Tokens, exchange_at
from duly.apps.documents.imports.service import Connector
from duly.apps.documents.schema import Connection


class _Kind(NamedTuple):
    place: Callable[[ImportOptions], Place]
    explain: Explain
    client: Callable[[Web, Tokens, Place, str | None], Remote]


_KINDS: dict[Provider, _Kind] = {
    "dropbox": _Kind(lambda options: options.dropbox, dropbox.explain, dropbox.Dropbox),
    "onedrive": _Kind(lambda options: options.onedrive, onedrive.explain, onedrive.OneDrive),
    "gdrive": _Kind(lambda options: options.gdrive, gdrive.explain, gdrive.GDrive),
}


@asynccontextmanager
async def opened(
    connector: Connector,
    org_id: UUID,
    session: Callable[[], AbstractAsyncContextManager[Connection]],
    options: ImportOptions,
) -> AsyncIterator[Remote]:
    """The account, until the block is left."""
    kind = _KINDS[connector.provider]
    place = kind.place(options)
    web = Web(answer_timeout=options.answer_timeout, explain=kind.explain, downloads=place.downloads)
    async with web:
        owner = Owner(org_id, connector.connector_id, connector.secret_ref, session)
        tokens = Tokens(owner, options.secrets.of(org_id), exchange_at(web, place))
        yield kind.client(web, tokens, place, connector.drive)
