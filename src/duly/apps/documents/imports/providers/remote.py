"""What an import needs of a provider, whoever that is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from duly.apps.documents.imports.providers.checksums import Checksum

Provider = Literal["dropbox", "onedrive", "gdrive"]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file there, at one revision."""

    remote_id: str
    revision: str
    name: str
    path: str
    size: int | None = None
    """None where only the download tells."""
    checksum: str | None = None
    """Of the provider's own kind; None where it has none."""
    export: str | None = None
    """As what it is to be had, if it is no file there."""
    folders: tuple[str, ...] = ()
    """The names of those that it lies in, from the folder that was asked for down."""


class Gone(NamedTuple):
    """Something that is no longer there; of a path, all that was below as well."""

    remote_id: str | None = None
    path: str | None = None


class Page(NamedTuple):
    """A part of what has changed, in its order."""

    entries: list[RemoteFile | Gone]
    cursor: str | None
    """From where to go on when everything so far is done; None where nobody can go on from."""
    passed_over: int = 0
    """What is there, and cannot be had as a file."""


class Remote(Protocol):
    """An account elsewhere."""

    def changes(self, path: str, cursor: str | None) -> AsyncIterator[Page]:
        """What has changed in a folder since the cursor; without one, all that is there."""

    async def named(self, path: str, name: str) -> RemoteFile:
        """A file by its path below the folder, or as `id:<its id>`."""

    async def again(self, file: RemoteFile) -> RemoteFile:
        """The file as it is now."""

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """What is in it now."""

    def checksum(self) -> Checksum:
        """To be compared with the file's."""


class Trouble(Exception):
    """Something is wrong between a provider and us, said in our words: theirs may hold anything."""

    code = "import.trouble"
    after: float | None = None
    """Seconds that they want us to wait."""


class Busy(Trouble):
    """They want to be left alone for a while."""

    code = "provider.busy"

    def __init__(self, after: float | None) -> None:
        super().__init__("the provider asks us to come back later")
        self.after = after


class Unreachable(Trouble):
    """No answer, or none that makes sense."""

    code = "provider.unreachable"


class Unauthorized(Trouble):
    """They do not let us in, nor give us a new token."""

    code = "connector.unauthorized"


class Missing(Trouble):
    """Nothing of that name there."""

    code = "import.not_found"


class Refused(Trouble):
    """They do not give it to us, or we do not take it, however often we try."""

    def __init__(self, message: str, code: str = "import.refused") -> None:
        super().__init__(message)
        self.code = code


class Expired(Trouble):
    """They do not know the cursor any more: everything is to be read again."""

    code = "import.cursor_expired"


class NoFolder(Trouble):
    """Whoever asked may not write where it would go."""

    code = "import.no_folder"


class Damaged(Trouble):
    """What came is not what was announced."""

    code = "import.damaged"
