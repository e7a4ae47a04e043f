"""An org with a connector to a fake, and imports through it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from duly import Actor, Duly, Handle, JobSnapshot
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.folders.service import Folders
from duly.apps.documents.imports.job import declare
from duly.apps.documents.imports.models import Connector, FolderMode, ImportResult
from duly.apps.documents.imports.options import ImportOptions, ProviderEndpoint
from duly.apps.documents.imports.providers.remote import Provider
from duly.apps.documents.imports.secrets import SecretStore
from duly.apps.documents.imports.service import Connectors
from duly.apps.documents.library.file_store import FileStore
from tests.apps.documents.imports.fakes.dropbox import FakeDropbox
from tests.apps.documents.imports.fakes.gdrive import FakeGDrive
from tests.apps.documents.imports.fakes.onedrive import FakeOneDrive
from tests.apps.documents.imports.fakes.server import Fake
from tests.worker.working import run_until_ended

FAKES: dict[Provider, type[Fake]] = {
    "dropbox": FakeDropbox,
    "onedrive": FakeOneDrive,
    "gdrive": FakeGDrive,
}
GRANT = {
    "access_token": "access-0",
    "refresh_token": "refresh-0",
    "client_id": "app",
    "client_secret": "hush",
}
SYSTEM = Actor.system("test")


@dataclass
class Site:
    """What a test of imports works with."""

    app: Duly
    sql: psycopg.Connection[Any]
    org: UUID
    fake: Any
    connector: Connector
    secrets: SecretStore

    @property
    def who(self) -> DocumentPrincipal:
        return DocumentPrincipal(self.org, Actor.user("u1"))

    async def ask(
        self,
        remote_path: str = "",
        *files: str,
        folders: FolderMode = "keep",
        who: DocumentPrincipal | None = None,
    ) -> Handle[ImportResult]:
        asking = Connectors(self.app)
        return await asking.begin_import(
            who or self.who,
            self.connector.connector_id,
            remote_path=remote_path,
            files=files,
            folders=folders,
        )

    async def bring(self, remote_path: str = "", *files: str, **how: Any) -> tuple[JobSnapshot, ImportResult]:
        """Import, and what came of it."""
        handle = await self.ask(remote_path, *files, **how)
        job = await run_until_ended(self.app, handle)
        assert job.status == "completed", (job.error_code, job.error_message)
        return job, await handle.result()

    def documents(self) -> list[tuple[str, int]]:
        """Names and versions of all documents, by name."""
        found = self.sql.execute("select name, version from documents.documents order by name, document_id")
        return [(row[0], row[1]) for row in found.fetchall()]

    async def paths(self) -> list[str]:
        """All documents by the folders that they lie in."""
        admin = DocumentPrincipal(self.org, SYSTEM)
        folders = {one.node_id: f"{one.path}/" for one in await Folders(self.app).list(admin)}
        found = self.sql.execute("select node_id, name from documents.documents").fetchall()
        return sorted(folders.get(node_id, "") + name for node_id, name in found)

    async def content(self, name: str) -> bytes:
        found = self.sql.execute("select sha256 from documents.documents where name = %s", [name]).fetchone()
        assert found
        file_store = FileStore((await self.app.resources()).blobs, self.org)
        return b"".join([part async for part in file_store.read_original(found[0])])

    def now(self) -> None:
        """What was to come later comes now."""
        self.sql.execute("update duly.scheduled set run_at = now() - interval '1 second'")


@asynccontextmanager
async def site_of(
    provider: Provider, app: Duly, sql: psycopg.Connection[Any], org: UUID, folder: Path, **limits: Any
) -> AsyncIterator[Site]:
    async with FAKES[provider]() as fake:
        secrets = SecretStore(folder, {})
        await secrets.of(org).put("file:account", json.dumps(GRANT))
        declare(app, ImportOptions(secrets, **{provider: place_of(provider, fake), **limits}))
        who = DocumentPrincipal(org, SYSTEM)
        connector = await Connectors(app).create(who, provider, "Archive", "file:account")
        yield Site(app, sql, org, fake, connector, secrets)


def place_of(provider: Provider, fake: Fake) -> ProviderEndpoint:
    match provider:
        case "dropbox":
            return ProviderEndpoint(fake.url, f"{fake.url}/oauth2/token", fake.url)
        case "onedrive":
            tokens = f"{fake.url}/common/oauth2/v2.0/token"
            return ProviderEndpoint(f"{fake.url}/v1.0", tokens, downloads=("localhost",))
        case _:
            return ProviderEndpoint(f"{fake.url}/drive/v3", f"{fake.url}/token")
