"""The options of imports, set by the operator: endpoints of the providers, and limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from duly.apps.documents.imports.secrets import SecretStore
from duly.core.errors import ConfigurationError

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that may be reached without TLS."""
_MICROSOFT_DOWNLOADS = (".sharepoint.com", ".1drv.com", ".microsoftpersonalcontent.com", ".svc.ms")


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """The URLs of a provider, and the OAuth client of the installation. Tenants cannot change them."""

    api: str
    tokens: str
    content: str = ""
    """The URL for downloads, if it differs from the API."""
    client_id: str | None = None
    """For secrets that do not name the OAuth client that their tokens were issued to."""
    client_secret: str | None = field(default=None, repr=False)
    downloads: tuple[str, ...] = ()
    """Hosts that a download may be redirected to: a name, or all that end with `.sharepoint.com`."""

    def __post_init__(self) -> None:
        for url in filter(None, (self.api, self.tokens, self.content)):
            parts = urlsplit(url)
            if parts.scheme != "https" and parts.hostname not in LOCAL_HOSTS:
                raise ConfigurationError(
                    "tokens would be sent without encryption", field="imports", fix="use https://"
                )


DROPBOX = ProviderEndpoint(
    "https://api.dropboxapi.com", "https://api.dropboxapi.com/oauth2/token", "https://content.dropboxapi.com"
)
ONEDRIVE = ProviderEndpoint(
    "https://graph.microsoft.com/v1.0",
    "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    downloads=_MICROSOFT_DOWNLOADS,
)
GDRIVE = ProviderEndpoint("https://www.googleapis.com/drive/v3", "https://oauth2.googleapis.com/token")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Secrets, endpoints and limits of imports."""

    secrets: SecretStore = field(default_factory=SecretStore)
    dropbox: ProviderEndpoint = DROPBOX
    onedrive: ProviderEndpoint = ONEDRIVE
    gdrive: ProviderEndpoint = GDRIVE
    max_batch_files: int = 10_000
    """Files of a listing that are imported before the listing continues."""
    max_pages: int = 100_000
    """Pages of a listing."""
    max_file_size: int = 512 * 2**20
    max_downloads: int = 3
    """Downloads of a file that does not match its announced size or checksum."""
    file_timeout: timedelta = timedelta(minutes=15)
    answer_timeout: timedelta = timedelta(minutes=1)
