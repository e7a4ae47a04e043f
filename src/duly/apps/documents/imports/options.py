"""What the operator says about imports: where providers are, and how much is taken from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from duly.apps.documents.imports.secrets import SecretStore
from duly.core.errors import ConfigurationError

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that may be spoken to in the clear."""
_DOWNLOADS = (".sharepoint.com", ".1drv.com", ".microsoftpersonalcontent.com", ".svc.ms")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider is, and as which application we come. Never a tenant's choice."""

    api: str
    tokens: str
    content: str = ""
    """Where files are, if not where the rest is."""
    client_id: str | None = None
    """For tokens whose secret does not name the application that they were given to."""
    client_secret: str | None = field(default=None, repr=False)
    downloads: tuple[str, ...] = ()
    """Hosts that a download may be sent on to: one by its name, or all that end so (`.sharepoint.com`)."""

    def __post_init__(self) -> None:
        for url in filter(None, (self.api, self.tokens, self.content)):
            said = urlsplit(url)
            if said.scheme != "https" and said.hostname not in LOCAL:
                raise ConfigurationError(
                    "tokens would go over the network in the clear", field="imports", fix="use https://"
                )


DROPBOX = Place(
    "https://api.dropboxapi.com", "https://api.dropboxapi.com/oauth2/token", "https://content.dropboxapi.com"
)
ONEDRIVE = Place(
    "https://graph.microsoft.com/v1.0",
    "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    downloads=_DOWNLOADS,
)
GDRIVE = Place("https://www.googleapis.com/drive/v3", "https://oauth2.googleapis.com/token")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Everything that imports go by."""

    secrets: SecretStore = field(default_factory=SecretStore)
    dropbox: Place = DROPBOX
    onedrive: Place = ONEDRIVE
    gdrive: Place = GDRIVE
    most_files: int = 10_000
    """Held at a time; what comes after them is listed when they are in."""
    most_pages: int = 100_000
    """Of a list, which has an end somewhere."""
    largest: int = 512 * 2**20
    """Bytes of a file."""
    tries: int = 3
    """For a file that does not come as it was announced."""
    file_timeout: timedelta = timedelta(minutes=15)
    answer_timeout: timedelta = timedelta(minutes=1)
