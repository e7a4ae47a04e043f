"""What has changed there, in batches: as much of it as is held at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.imports.providers.remote import Gone, Page, RemoteFile
from duly.core.outcome import Fail


@dataclass(slots=True)
class Batch:
    """Files that are taken before the cursor moves."""

    files: dict[str, RemoteFile] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)
    passed_over: int = 0
    cursor: str | None = None

    def add(self, page: Page) -> None:
        """A page more. What is told later counts."""
        for entry in page.entries:
            if isinstance(entry, RemoteFile):
                self.files[entry.remote_id] = entry
            else:
                self.gone.append(entry)
                self._drop(entry)
        self.passed_over += page.passed_over
        self.cursor = page.cursor

    def _drop(self, gone: Gone) -> None:
        if gone.remote_id:
            self.files.pop(gone.remote_id, None)
        if gone.path:
            self.files = {key: file for key, file in self.files.items() if not _is_below(file, gone.path)}


async def batches(pages: AsyncIterator[Page], options: ImportOptions) -> AsyncIterator[Batch]:
    """All pages; the last batch may be empty, but has the cursor that they end with."""
    batch, count = Batch(), 0
    async for page in pages:
        batch.add(page)
        count += 1
        if count > options.most_pages:
            raise Fail("the provider's list has no end", code="import.endless")
        if len(batch.files) >= options.most_files:
            yield batch
            batch = Batch()
    if batch.cursor is not None or batch.files:
        yield batch


def _is_below(file: RemoteFile, path: str) -> bool:
    return file.path == path or file.path.startswith(f"{path}/")
