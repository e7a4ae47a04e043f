"""The protocol of a provider's account, and the errors of providers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from duly.apps.documents.imports.providers.checksums import Checksum

Provider = Literal["dropbox", "onedrive", "gdrive"]
FolderNames = tuple[str, ...]
"""The names of nested folders, outermost first; a name may contain slashes."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at a provider, at one revision."""

    remote_id: str
    revision: str
    name: str
    path: str
    size: int | None = None
    """None if only the download tells."""
    checksum: str | None = None
    """In the provider's own format; None if the provider has none."""
    export: str | None = None
    """The media type to export as, if the provider has no file but a document of its own."""
    folders: FolderNames = ()
    """The folders that it is in, from the imported folder down."""


class RemovedFile(NamedTuple):
    """A file that was removed at the provider; a path includes everything below it."""

    remote_id: str | None = None
    path: str | None = None


class RemotePage(NamedTuple):
    """A page of changes, in order."""

    entries: list[RemoteFile | RemovedFile]
    cursor: str | None
    """The cursor to continue from when all entries so far are imported; None if there is none."""
    skipped: int = 0
    """The number of entries that cannot be downloaded as files."""


class Remote(Protocol):
    """An account at a provider."""

    def changes(self, path: str, cursor: str | None) -> AsyncIterator[RemotePage]:
        """Yield the changes in a folder since the cursor; without one, all its files."""

    async def find(self, path: str, name: str) -> RemoteFile:
        """Return a file by its path below the folder, or by `id:<id>`."""

    async def refresh(self, file: RemoteFile) -> RemoteFile:
        """Return the file at its current revision."""

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download the current content of a file."""

    def checksum(self) -> Checksum:
        """Return a new checksum in the provider's format."""


class ProviderError(Exception):
    """An error at a provider. Messages are Duly's own: those of a provider may contain anything."""

    code = "import.trouble"
    default_message = "the provider failed"
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.default_message)


class ProviderBusy(ProviderError):
    """The provider limits the rate of requests."""

    code = "provider.busy"
    default_message = "the provider asks to retry later"

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__()
        self.retry_after = retry_after


class ProviderUnreachable(ProviderError):
    """The provider sent no response, or an invalid one."""

    code = "provider.unreachable"


class RemoteUnauthorized(ProviderError):
    """The provider rejected the token, and issued no new one."""

    code = "connector.unauthorized"
    default_message = "the provider does not accept the connector's token"


class RemoteNotFound(ProviderError):
    """The provider has no such file or folder."""

    code = "import.not_found"
    default_message = "the provider has nothing of that name"


class FileRefused(ProviderError):
    """The provider refuses a file, or the import does; retrying does not help."""

    def __init__(self, message: str, code: str = "import.refused") -> None:
        super().__init__(message)
        self.code = code


class RemoteCursorExpired(ProviderError):
    """The provider no longer knows the cursor: everything has to be listed again."""

    code = "import.cursor_expired"
    default_message = "the provider no longer knows the cursor"


class FolderUnavailable(ProviderError):
    """The requester may not see or write to the folder for a file."""

    code = "import.no_folder"
    default_message = "the requester may not write to the folder of this file"


class DownloadDamaged(ProviderError):
    """The download does not match the announced file, or broke off."""

    code = "import.damaged"


def not_downloadable() -> RemoteNotFound:
    """Return the error for an entry that is no file to download."""
    return RemoteNotFound("this is not a file that can be downloaded")


def restricted() -> FileRefused:
    """Return the error for a file that the provider does not hand out."""
    return FileRefused("the provider does not hand out this file", "import.restricted")
