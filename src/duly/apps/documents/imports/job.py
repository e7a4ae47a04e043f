"""The job types `import_dropbox`, `import_onedrive` and `import_gdrive`: each file a chunk."""

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
from duly.apps.documents.imports import remote_paths as names
from duly.apps.documents.imports import service as connectors
from duly.apps.documents.imports.batches import Batch, batches
from duly.apps.documents.imports.importer import Shelf, Taker
from duly.apps.documents.imports.models import JOB_TYPES, Imported, Taken, summed_up
from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.imports.providers.remote import (
    Busy,
    Damaged,
    Expired,
    Missing,
    NoFolder,
    Provider,
    Refused,
    RemoteFile,
    Trouble,
    Unauthorized,
    Unreachable,
)
from duly.apps.documents.imports.records import Known, Records
from duly.apps.documents.imports.secrets import UnknownSecret
from duly.apps.documents.imports.target_folders import Keeping, Places
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.options import options_of
from duly.core.errors import Forbidden, NotFound
from duly.core.outcome import Fail, HandlerSignal, Retry, Snooze
from duly.core.policy import Category
from duly.jobs.application import App
from duly.worker.context.context import Context

_TIMEOUT = timedelta(hours=6)
Files = Annotated[tuple[str, ...], Field(max_length=1_000)]
_PAUSE = timedelta(minutes=1)
"""For those who do not say how long."""


def declare(app: App, options: ImportOptions | None = None) -> None:
    """Add the job types to an application; again, it changes nothing."""
    chosen = options or ImportOptions()
    for provider in JOB_TYPES:
        if JOB_TYPES[provider] not in app.registry:
            _declare(app, provider, chosen)


def _declare(app: App, provider: Provider, options: ImportOptions) -> None:
    async def bring_in(
        ctx: Context,
        connector_id: UUID,
        remote_path: str = "",
        files: Files = (),
        folders: Keeping = "keep",
    ) -> Imported:
        """Bring in what has changed in a remote folder, or the files that are named."""
        work = _Import(app, options, ctx, provider, names.folder(remote_path), folders)
        return await work.run(connector_id, [names.file(name) for name in files])

    name = bring_in.__name__ = JOB_TYPES[provider]
    app.job(
        name, category=Category.DOCUMENT, timeout=_TIMEOUT, allows_partial=True, subject=subject_from_actor
    )(bring_in)


class _Wanted(NamedTuple):
    """A file that is to be taken, by its name if it was not looked for yet."""

    name: str
    file: RemoteFile | None = None


class _Import:
    """One attempt."""

    def __init__(
        self, app: App, options: ImportOptions, ctx: Context, provider: Provider, path: str, keeping: Keeping
    ) -> None:
        self._app = app
        self._options = options
        self._ctx = ctx
        self._provider = provider
        self._path = path
        self._keeping = keeping
        self._who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
        self._done = 0
        self._failed = 0
        self._skipped = 0
        self._removed = 0

    async def run(self, connector_id: UUID, files: list[str]) -> Imported:
        """See `declare`."""
        try:
            connector = await self._connector(connector_id)
            async with self._opened(connector) as (taker, records):
                if files:
                    await self._chunks(taker, [_Wanted(name) for name in dict.fromkeys(files)])
                else:
                    await self._folder(taker, records)
                await records.note_import()
        except Trouble as trouble:
            raise self._verdict(trouble) from None
        except (UnknownSecret, QuotaExceeded) as refused:
            raise Fail(refused.message, code=refused.code, blocked=True) from None
        results = (await self._ctx.results()).values()
        said = summed_up(results, skipped=self._skipped, failed=self._failed, removed=self._removed)
        self._ctx.count(
            imported=said.imported_count,
            skipped=said.skipped_count,
            deleted=said.removed_count,
            warnings=len(said.failures),
        )
        return said

    async def _connector(self, connector_id: UUID) -> connectors.Connector:
        """The connector, if it may be used by whoever asked."""
        check_subject(self._ctx.job.subject_id, private_subject(self._who))
        try:
            async with self._ctx.session() as conn:
                found = await connectors.read(conn, self._who, connector_id)
                await check_folder_writable(conn, self._who, found.node_id)
        except (NotFound, Forbidden) as refused:
            raise Fail(str(refused), code=refused.code, blocked=True) from None
        if found.provider != self._provider:
            raise Fail(f"the connector is for {found.provider}", code="connector.provider")
        if found.disabled_at is not None:
            raise Fail("the connector is disabled", code="connector.disabled", blocked=True)
        return found

    @asynccontextmanager
    async def _opened(self, connector: connectors.Connector) -> AsyncIterator[tuple[Taker, Records]]:
        from duly.apps.documents.imports.providers.account import opened

        job, session = self._ctx.job, self._ctx.session
        records = Records(job.org_id, connector.connector_id, job.job_id, session)
        file_store = FileStore((await self._app.resources()).blobs, job.org_id)
        async with opened(connector, job.org_id, session, self._options) as remote:
            places = Places(self._app, self._who, connector.node_id, self._keeping)
            quotas = options_of(self._app).quotas
            shelf = Shelf(self._app, self._who, connector, file_store, records, places, quotas)
            yield Taker(remote, shelf, self._options), records

    async def _folder(self, taker: Taker, records: Records) -> None:
        """Batch by batch: the cursor moves when everything before it is in."""
        before = cursor = await records.cursor(self._path)
        while True:
            try:
                async for batch in batches(taker.remote.changes(self._path, cursor), self._options):
                    await self._take(batch, taker, records)
                    if batch.cursor is not None and not self._failed:
                        await records.move(self._path, before, batch.cursor)
                        before = cursor = batch.cursor
                return
            except Expired:
                if cursor is None:
                    raise Unreachable("the provider does not know its own cursor") from None
                cursor = None

    async def _take(self, batch: Batch, taker: Taker, records: Records) -> None:
        self._removed += await records.note_removed(batch.gone)
        known = await records.known(batch.files)
        wanted = [file for file in batch.files.values() if not self._is_in(known.get(file.remote_id), file)]
        self._skipped += batch.passed_over + len(batch.files) - len(wanted)
        await self._chunks(taker, [_Wanted(file.path, file) for file in wanted])

    async def _chunks(self, taker: Taker, wanted: Iterable[_Wanted]) -> None:
        async for chunk in self._ctx.chunks(wanted, key=_key):
            # Outside of the chunk: what else goes wrong is the attempt's trouble, and is tried again.
            taken = await self._taken(taker, chunk.item)
            async with chunk:
                if not isinstance(taken, Taken):
                    self._failed += 1
                    raise taken
                self._done += 1
                chunk.result = taken.model_dump(mode="json")

    async def _taken(self, taker: Taker, wanted: _Wanted) -> Taken | Damaged | NoFolder:
        try:
            return await taker.take(wanted.file or await taker.remote.named(self._path, wanted.name))
        except (Damaged, NoFolder) as held:
            # Another day, or somebody else, may have it: the cursor waits.
            return held
        except (Missing, Refused) as refused:
            # It will be so however often we try: that is what came of it.
            self._ctx.log.warning("a file was not taken: %s", refused.code)
            remote_id = None if wanted.file is None else wanted.file.remote_id
            return Taken.refused(wanted.name, remote_id, refused.code)

    def _is_in(self, known: Known | None, file: RemoteFile) -> bool:
        """Whether nothing is to be done. What this very job has taken goes through its chunk all the same."""
        if known is None or known.revision != file.revision or known.removed:
            return False
        return known.job_id != self._ctx.job.job_id

    def _verdict(self, trouble: Trouble) -> HandlerSignal:
        match trouble:
            case Busy() | Unreachable() if self._done:
                # It gets on, if slowly: that is worth no attempt.
                return Snooze(trouble.after or _PAUSE, str(trouble))
            case Busy() | Unreachable():
                return Retry(str(trouble), after=trouble.after, code=trouble.code)
        return Fail(str(trouble), code=trouble.code, blocked=isinstance(trouble, Unauthorized))


def _key(wanted: _Wanted) -> str:
    """What a file is known by: ids and names of others are as long as they like."""
    file = wanted.file
    parts = [wanted.name] if file is None else [file.remote_id, file.revision]
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]
