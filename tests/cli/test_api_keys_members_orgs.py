"""`duly api-keys`, `duly members` and `duly orgs`."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from duly import Duly
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from tests.cli.conftest import Run

WHY = ("--reason", "because")


@pytest.fixture(autouse=True)
def _here(org: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ORG", str(org))


async def test_an_api_key_is_shown_once_and_rotated_without_a_gap(
    duly: Run, app: Duly, org: uuid.UUID
) -> None:
    scopes, end = ("--scope", "jobs:read", "--scope", "jobs:write"), datetime.now(UTC) + timedelta(days=30)
    made = await duly("api-keys", "create", "ci", *scopes, "--expires-at", end.isoformat(), *WHY)
    old = made.out.removesuffix("\n")
    key_id = old.split("_")[2]
    new = (await duly("api-keys", "rotate", key_id, "--overlap-hours", "0.5", *WHY, "--json")).document[
        "text"
    ]
    for text in (old, new):
        who = await app.api_keys.authenticate(text)
        assert (who.org_id, who.scopes) == (org, {Scope.READ, Scope.WRITE})
    said = [await duly("api-keys", "revoke", old, *WHY), await duly("api-keys", "revoke", key_id, *WHY)]
    said += [
        await duly("api-keys", "list"),
        await duly("api-keys", "list", "--json"),
        await duly("audit", "list"),
    ]
    assert [ended.code for ended in said] == [3, 0, 0, 0, 0]
    for text in (old, new):
        assert text.split("_")[2] in said[2].out
        assert not any(text.split("_")[3] in ended.out + ended.err for ended in said)
    assert {key["key_id"]: key["alive"] for key in said[3].document["keys"]} == {
        key_id: False,
        new.split("_")[2]: True,
    }


async def test_keys_of_the_installation_belong_to_the_platform(
    duly: Run, app: Duly, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await duly("api-keys", "create", "ops", "--org", "platform", "--scope", "platform", *WHY)
    assert (await app.api_keys.authenticate(made.out.strip())).scopes == {Scope.PLATFORM}
    monkeypatch.setenv("DULY_ORG", "platform")
    [key] = (await duly("api-keys", "list", "--json")).document["keys"]
    assert (key["org_id"], key["scopes"]) == (str(SYSTEM_ORG), ["platform"])


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("api-keys", "create", "ci", "--scope", "platform", *WHY), 4, "scopes: 'platform'"),
        (("api-keys", "create", "ci", "--scope", "everything", *WHY), 2, "--scope"),
        (("api-keys", "create", "ci", *WHY), 2, "--scope"),
        (
            ("api-keys", "create", "ci", "--scope", "jobs:read", "--expires-at", "2026-11-15T12:00", *WHY),
            2,
            "zone",
        ),
        (
            ("api-keys", "create", "ci", "--scope", "jobs:read", "--expires-at", "2020-01-01T00:00Z", *WHY),
            4,
            "past",
        ),
        (("api-keys", "list", "--org", "nobody"), 2, "platform"),
        (("api-keys", "revoke", "0" * 20, *WHY), 3, "no key"),
        (("members", "set", "eve", "owner", *WHY), 2, "viewer"),
        (("members", "remove", "eve", *WHY), 3, "eve"),
        (("orgs", "show", uuid.UUID(int=7)), 3, "no org"),
        (("orgs", "suspend", SYSTEM_ORG, *WHY), 4, "this id is reserved"),
    ],
)
async def test_an_error_is_one_line(duly: Run, words: tuple[object, ...], code: int, part: str) -> None:
    ended = await duly(*words)
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (code, "", 1)
    assert part in ended.err
