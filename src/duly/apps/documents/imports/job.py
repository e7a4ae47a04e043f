"""The job types `import_dropbox`, `import_onedrive` and `import_gdrive`: each file is a chunk."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field

from duly.apps.documents.errors import QuotaExceeded
from duly.apps.documents.folders.access import DocumentPrincipal, check_folder_writable
from duly.apps.documents.folders.job_subjects import check_subject, private_subject, subject_from_actor
from duly.apps.documents.imports.batches import ImportBatch, batches
from duly.apps.documents.imports.importer import Importer, ImportTarget
from duly.apps.documents.imports.models import (
    JOB_TYPES,
    Connector,
    FolderMode,
    ImportedFile,
    ImportResult,
    summarize,
)
from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.imports.providers.remote import (
    DownloadDamaged,
    FileRefused,
    FolderUnavailable,
    Provider,
    ProviderBusy,
    ProviderError,
    ProviderUnreachable,
    RemoteCursorExpired,
    RemoteFile,
    RemoteNotFound,
    RemoteUnauthorized,
)
from duly.apps.documents.imports.records import FileRecord, ImportRecords
from duly.apps.documents.imports.remote_paths import parse_file, parse_folder
from duly.apps.documents.imports.secrets import UnknownSecret
from duly.apps.documents.imports.service import read_connector
from duly.apps.documents.imports.target_folders import TargetFolders
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.options import options_of
from duly.core.errors import Forbidden, NotFound
from duly.core.outcome import Fail, HandlerSignal, Retry, Snooze
from duly.core.policy import Category
from duly.jobs.application import App
from duly.worker.context.context import Context

_TIMEOUT = timedelta(hours=6)
_BUSY_PAUSE = timedelta(minutes=1)
"""The pause for a provider that does not ask for a certain one."""
Files = Annotated[tuple[str, ...], Field(max_length=1_000)]


def declare(app: App, options: ImportOptions | None = None) -> None:
    """Add the job types to an application. Idempotent."""
    for provider, job_type in JOB_TYPES.items():
        if job_type not in app.registry:
            _declare(app, provider, options or ImportOptions())


def _declare(app: App, provider: Provider, options: ImportOptions) -> None:
    async def import_files(
        ctx: Context,
        connector_id: UUID,
        remote_path: str = "",
        files: Files = (),
        folders: FolderMode = "keep",
    ) -> ImportResult:
        """Import the changed files of a remote folder, or the named files."""
        attempt = _ImportAttempt(app, options, ctx, provider, parse_folder(remote_path), folders)
        return await attempt.run(connector_id, [parse_file(name) for name in files])

    name = import_files.__name__ = JOB_TYPES[provider]
    declare_job = app.job(
        name, category=Category.DOCUMENT, timeout=_TIMEOUT, allows_partial=True, subject=subject_from_actor
    )
    declare_job(import_files)


class _FileToImport(NamedTuple):
    """A file to import; by its name alone if it was not looked up yet."""

    name: str
    file: RemoteFile | None = None

    @property
    def key(self) -> str:
        """The key of its chunk: a hash, as remote ids and names have any length."""
        parts = [self.name] if self.file is None else [self.file.remote_id, self.file.revision]
        return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


class _ImportAttempt:
    def __init__(
        self,
        app: App,
        options: ImportOptions,
        ctx: Context,
        provider: Provider,
        path: str,
        folder_mode: FolderMode,
    ) -> None:
        self._app = app
        self._options = options
        self._ctx = ctx
        self._provider = provider
        self._path = path
        self._folder_mode = folder_mode
        self._principal = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
        self._imported = 0
        self._failed = 0
        self._skipped = 0
        self._removed = 0

    async def run(self, connector_id: UUID, files: list[str]) -> ImportResult:
        """Import the files, or the whole folder if none are named."""
        try:
            connector = await self._connector(connector_id)
            async with self._importer(connector) as (importer, records):
                if files:
                    await self._import(importer, [_FileToImport(name) for name in dict.fromkeys(files)])
                else:
                    await self._import_folder(importer, records)
                await records.record_import()
        except ProviderError as error:
            raise self._signal(error) from None
        except (UnknownSecret, QuotaExceeded) as error:
            raise Fail(error.message, code=error.code, blocked=True) from None
        results = (await self._ctx.results()).values()
        result = summarize(results, skipped=self._skipped, failed=self._failed, removed=self._removed)
        self._ctx.count(
            imported=result.imported_count,
            skipped=result.skipped_count,
            deleted=result.removed_count,
            warnings=len(result.failures),
        )
        return result

    async def _connector(self, connector_id: UUID) -> Connector:
        """Return the connector; fail if the requester may not use it."""
        check_subject(self._ctx.job.subject_id, private_subject(self._principal))
        try:
            async with self._ctx.session() as conn:
                connector = await read_connector(conn, self._principal, connector_id)
                await check_folder_writable(conn, self._principal, connector.node_id)
        except (NotFound, Forbidden) as error:
            raise Fail(str(error), code=error.code, blocked=True) from None
        if connector.provider != self._provider:
            raise Fail(f"the connector is for {connector.provider}", code="connector.provider")
        if connector.disabled_at is not None:
            raise Fail("the connector is disabled", code="connector.disabled", blocked=True)
        return connector

    @asynccontextmanager
    async def _importer(self, connector: Connector) -> AsyncIterator[tuple[Importer, ImportRecords]]:
        from duly.apps.documents.imports.providers.account import open_account

        job, session = self._ctx.job, self._ctx.session
        records = ImportRecords(job.org_id, connector.connector_id, job.job_id, session)
        target = ImportTarget(
            self._app,
            self._principal,
            connector,
            FileStore((await self._app.resources()).blobs, job.org_id),
            records,
            TargetFolders(self._app, self._principal, connector.node_id, self._folder_mode),
            options_of(self._app).quotas,
        )
        async with open_account(connector, job.org_id, session, self._options) as remote:
            yield Importer(remote, target, self._options), records

    async def _import_folder(self, importer: Importer, records: ImportRecords) -> None:
        """Import batch by batch; the cursor moves when every file before it is imported."""
        saved = cursor = await records.read_cursor(self._path)
        while True:
            try:
                changes = importer.remote.changes(self._path, cursor)
                async for batch in batches(changes, self._options):
                    await self._import_batch(batch, importer, records)
                    if batch.cursor is not None and not self._failed:
                        await records.save_cursor(self._path, saved, batch.cursor)
                        saved = cursor = batch.cursor
                return
            except RemoteCursorExpired:
                if cursor is None:
                    raise ProviderUnreachable("the provider rejected its own cursor") from None
                cursor = None

    async def _import_batch(self, batch: ImportBatch, importer: Importer, records: ImportRecords) -> None:
        self._removed += await records.mark_removed(batch.removed)
        known = await records.read_files(batch.files)
        files = [
            file for file in batch.files.values() if not self._is_current(known.get(file.remote_id), file)
        ]
        self._skipped += batch.skipped + len(batch.files) - len(files)
        await self._import(importer, [_FileToImport(file.path, file) for file in files])

    async def _import(self, importer: Importer, files: Iterable[_FileToImport]) -> None:
        async for chunk in self._ctx.chunks(files, key=lambda file: file.key):
            # Outside of the chunk: any other error fails the attempt, which is retried.
            outcome = await self._import_file(importer, chunk.item)
            async with chunk:
                if not isinstance(outcome, ImportedFile):
                    self._failed += 1
                    raise outcome
                self._imported += 1
                chunk.result = outcome.model_dump(mode="json")

    async def _import_file(
        self, importer: Importer, item: _FileToImport
    ) -> ImportedFile | DownloadDamaged | FolderUnavailable:
        try:
            file = item.file or await importer.remote.find(self._path, item.name)
            return await importer.import_file(file)
        except (DownloadDamaged, FolderUnavailable) as error:
            # A later import, or another principal, may succeed: the cursor does not move.
            return error
        except (RemoteNotFound, FileRefused) as error:
            # Every further attempt would end like this, so it is the result of the chunk.
            self._ctx.log.warning("file not imported: %s", error.code)
            remote_id = None if item.file is None else item.file.remote_id
            return ImportedFile.refused(item.name, remote_id, error.code)

    def _is_current(self, record: FileRecord | None, file: RemoteFile) -> bool:
        """Return whether the file needs no import. Files of this very job go through their chunks again."""
        if record is None or record.revision != file.revision or record.removed:
            return False
        return record.job_id != self._ctx.job.job_id

    def _signal(self, error: ProviderError) -> HandlerSignal:
        match error:
            case ProviderBusy() | ProviderUnreachable() if self._imported:
                # The import makes progress, if slowly: do not count an attempt.
                return Snooze(error.retry_after or _BUSY_PAUSE, str(error))
            case ProviderBusy() | ProviderUnreachable():
                return Retry(str(error), after=error.retry_after, code=error.code)
        return Fail(str(error), code=error.code, blocked=isinstance(error, RemoteUnauthorized))
