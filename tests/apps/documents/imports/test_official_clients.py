"""The fakes behave like the providers: the providers' own clients work with them."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime
from typing import Any

import dropbox
import httplib2
import pytest
import requests
from dropbox.exceptions import ApiError, AuthError, RateLimitError
from dropbox.files import DeletedMetadata, FileMetadata
from google.auth.exceptions import RefreshError
from google.oauth2.credentials import Credentials
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError
from requests.adapters import HTTPAdapter

from duly.apps.documents.imports.providers.checksums import ContentHash
from tests.apps.documents.imports.fakes.dropbox import FakeDropbox
from tests.apps.documents.imports.fakes.gdrive import FakeGDrive


class Detour(HTTPAdapter):
    """Dropbox's client knows its hosts by heart: what is meant for them goes to the fake."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        assert request.url is not None
        request.url = self._url + "/" + request.url.split("/", 3)[3]
        return super().send(request, *args, **kwargs)


def use_dropbox(fake: FakeDropbox) -> None:
    with requests.Session() as session:
        session.mount("https://", Detour(fake.url))
        client = dropbox.Dropbox(
            oauth2_access_token="access-0",
            oauth2_access_token_expiration=datetime(9999, 1, 1),
            oauth2_refresh_token="refresh-0",
            app_key="app",
            app_secret="hush",
            session=session,
            max_retries_on_rate_limit=0,
        )
        page = client.files_list_folder("/Post", recursive=True)
        entries = list(page.entries)
        while page.has_more:
            page = client.files_list_folder_continue(page.cursor)
            entries += page.entries
        files = [entry for entry in entries if isinstance(entry, FileMetadata)]
        assert [file.name for file in files] == ["a.txt", "b.txt", "c.txt"]
        for file in files:
            metadata, answer = client.files_download(file.id)
            checksum = ContentHash()
            checksum.update(answer.content)
            assert metadata.content_hash == file.content_hash == checksum.text()
        fake.remove("/Post/b.txt")
        assert [type(e) for e in client.files_list_folder_continue(page.cursor).entries] == [DeletedMetadata]
        with pytest.raises(ApiError) as missing:
            client.files_get_metadata("/Post/b.txt")
        assert missing.value.error.get_path().is_not_found()
        fake.expired_cursors = True
        with pytest.raises(ApiError) as reset:
            client.files_list_folder_continue(page.cursor)
        assert reset.value.error.is_reset()
        fake.busy = ["list"]
        with pytest.raises(RateLimitError) as busy:
            client.files_list_folder("")
        assert busy.value.backoff == 7
        fake.tokens = set()
        assert client.files_list_folder("").entries, "it has got itself a new token"
        fake.tokens, fake.revoked = set(), True
        with pytest.raises(AuthError):
            client.files_list_folder("")


async def test_dropboxs_own_client_works_with_the_fake() -> None:
    async with FakeDropbox() as fake:
        fake.page = 2
        for name in "abc":
            fake.put(f"/Post/{name}.txt", name.encode() * 100)
        await asyncio.to_thread(use_dropbox, fake)
        assert fake.renewals == 1


def use_drive(fake: FakeGDrive) -> None:
    credentials = Credentials(  # type: ignore[no-untyped-call]
        "access-0",
        refresh_token="refresh-0",
        token_uri=f"{fake.url}/token",
        client_id="app",
        client_secret="hush",
    )
    http = httplib2.Http()
    drive = build(
        "drive",
        "v3",
        http=AuthorizedHttp(credentials, http=http),
        static_discovery=True,
        client_options={"api_endpoint": f"{fake.url}/drive/v3/"},
    )
    start = drive.changes().getStartPageToken().execute()["startPageToken"]
    folder = fake.at("/Post")
    assert folder is not None
    asked = drive.files().list(q=f"'{folder.remote_id}' in parents and trashed = false")
    found = []
    while asked is not None:
        page = asked.execute()
        found += page["files"]
        asked = drive.files().list_next(asked, page)
    assert [file["name"] for file in found] == ["a.txt", "b.txt", "c.txt", "Brief"]
    for file in found[:3]:
        data = drive.files().get_media(fileId=file["id"]).execute()
        assert hashlib.md5(data).hexdigest() == file["md5Checksum"]
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert drive.files().export(fileId=found[3]["id"], mimeType=kind).execute() == b"PK words"
    fake.remove("/Post/b.txt")
    changes = drive.changes().list(pageToken=start).execute()
    assert [(one["fileId"], one["removed"]) for one in changes["changes"]] == [(found[1]["id"], True)]
    assert int(changes["newStartPageToken"]) == int(start) + 1
    _refused(drive, fake, found)
    http.close()


def _refused(drive: Any, fake: FakeGDrive, found: list[Any]) -> None:
    with pytest.raises(HttpError) as missing:
        drive.files().get(fileId=found[1]["id"]).execute()
    assert missing.value.status_code == 404
    fake.busy = ["list"]
    with pytest.raises(HttpError) as busy:
        drive.files().list(q="'root' in parents and trashed = false").execute()
    assert busy.value.error_details[0]["reason"] == "userRateLimitExceeded"
    fake.tokens = set()
    assert drive.files().get(fileId="root").execute()["name"] == "My Drive", "with a new token"
    fake.tokens, fake.revoked = set(), True
    with pytest.raises(RefreshError):
        drive.files().get(fileId="root").execute()


async def test_googles_own_client_works_with_the_fake() -> None:
    async with FakeGDrive() as fake:
        fake.page = 2
        for name in "abc":
            fake.put(f"/Post/{name}.txt", name.encode() * 100)
        fake.put("/Post/Brief", b"PK words", "document")
        await asyncio.to_thread(use_drive, fake)
        assert fake.renewals == 1
