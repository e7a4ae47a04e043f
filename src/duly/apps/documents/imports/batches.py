"""A remote listing in batches, which bound how much of it is held in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.imports.providers.remote import RemoteFile, RemotePage, RemovedFile
from duly.core.outcome import Fail


@dataclass(slots=True)
class ImportBatch:
    """Files that are imported before the cursor moves."""

    files: dict[str, RemoteFile] = field(default_factory=dict)
    removed: list[RemovedFile] = field(default_factory=list)
    skipped: int = 0
    cursor: str | None = None

    def add(self, page: RemotePage) -> None:
        """Add a page of the listing; later entries of a file replace earlier ones."""
        for entry in page.entries:
            if isinstance(entry, RemoteFile):
                self.files[entry.remote_id] = entry
            else:
                self.removed.append(entry)
                self._drop(entry)
        self.skipped += page.skipped
        self.cursor = page.cursor

    def _drop(self, removed: RemovedFile) -> None:
        if removed.remote_id:
            self.files.pop(removed.remote_id, None)
        if removed.path:
            self.files = {key: file for key, file in self.files.items() if not _is_below(file, removed.path)}


async def batches(pages: AsyncIterator[RemotePage], options: ImportOptions) -> AsyncIterator[ImportBatch]:
    """Yield the pages in batches; the last batch may have no files, but has the final cursor."""
    batch, count = ImportBatch(), 0
    async for page in pages:
        batch.add(page)
        count += 1
        if count > options.max_pages:
            raise Fail("the provider's listing does not end", code="import.endless")
        if len(batch.files) >= options.max_batch_files:
            yield batch
            batch = ImportBatch()
    if batch.cursor is not None or batch.files:
        yield batch


def _is_below(file: RemoteFile, path: str) -> bool:
    return file.path == path or file.path.startswith(f"{path}/")
