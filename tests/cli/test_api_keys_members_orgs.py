"""`duly api-keys`, `duly members` and `duly orgs`."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from duly import Duly
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from tests.cli.conftest import Run

REASON = ("--reason", "because")


pytestmark = pytest.mark.usefixtures("org_environment")


async def test_an_api_key_is_shown_once_and_rotated_without_a_gap(
    duly: Run, app: Duly, org: uuid.UUID
) -> None:
    scopes, end = ("--scope", "jobs:read", "--scope", "jobs:write"), datetime.now(UTC) + timedelta(days=30)
    created = await duly("api-keys", "create", "ci", *scopes, "--expires-at", end.isoformat(), *REASON)
    old = created.out.removesuffix("\n")
    key_id = old.split("_")[2]
    new = (await duly("api-keys", "rotate", key_id, "--overlap-hours", "0.5", *REASON, "--json")).document[
        "text"
    ]
    for text in (old, new):
        principal = await app.api_keys.authenticate(text)
        assert (principal.org_id, principal.scopes) == (org, {Scope.READ, Scope.WRITE})
    results = [
        await duly("api-keys", "revoke", old, *REASON),
        await duly("api-keys", "revoke", key_id, *REASON),
    ]
    results += [
        await duly("api-keys", "list"),
        await duly("api-keys", "list", "--json"),
        await duly("audit", "list"),
    ]
    assert [result.code for result in results] == [3, 0, 0, 0, 0]
    for text in (old, new):
        assert text.split("_")[2] in results[2].out
        assert not any(text.split("_")[3] in result.out + result.err for result in results)
    assert {key["key_id"]: key["alive"] for key in results[3].document["keys"]} == {
        key_id: False,
        new.split("_")[2]: True,
    }


async def test_platform_keys_are_created_and_listed(
    duly: Run, app: Duly, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await duly("api-keys", "create", "ops", "--org", "platform", "--scope", "platform", *REASON)
    assert (await app.api_keys.authenticate(created.out.strip())).scopes == {Scope.PLATFORM}
    monkeypatch.setenv("DULY_ORG", "platform")
    [key] = (await duly("api-keys", "list", "--json")).document["keys"]
    assert (key["org_id"], key["scopes"]) == (str(SYSTEM_ORG), ["platform"])


@pytest.mark.parametrize(
    ("args", "code", "part"),
    [
        (("api-keys", "create", "ci", "--scope", "platform", *REASON), 4, "scopes: 'platform'"),
        (("api-keys", "create", "ci", "--scope", "everything", *REASON), 2, "--scope"),
        (("api-keys", "create", "ci", *REASON), 2, "--scope"),
        (
            ("api-keys", "create", "ci", "--scope", "jobs:read", "--expires-at", "2026-11-15T12:00", *REASON),
            2,
            "zone",
        ),
        (
            (
                "api-keys",
                "create",
                "ci",
                "--scope",
                "jobs:read",
                "--expires-at",
                "2020-01-01T00:00Z",
                *REASON,
            ),
            4,
            "past",
        ),
        (("api-keys", "list", "--org", "unknown"), 2, "platform"),
        (("api-keys", "revoke", "0" * 20, *REASON), 3, "no key"),
        (("members", "set", "eve", "owner", *REASON), 2, "viewer"),
        (("members", "remove", "eve", *REASON), 3, "eve"),
        (("orgs", "show", uuid.UUID(int=7)), 3, "no org"),
        (("orgs", "suspend", SYSTEM_ORG, *REASON), 4, "this id is reserved"),
    ],
)
async def test_an_error_is_one_line_with_its_exit_code(
    duly: Run, args: tuple[object, ...], code: int, part: str
) -> None:
    result = await duly(*args)
    assert (result.code, result.out, len(result.err.splitlines())) == (code, "", 1)
    assert part in result.err
