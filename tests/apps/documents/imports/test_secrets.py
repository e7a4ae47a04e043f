"""Secrets belong to one org, whatever a reference says; admins manage connectors."""

from __future__ import annotations

import stat
import uuid
from pathlib import Path
from typing import Any

import pytest

from duly import Actor, Duly, errors
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.imports import remote_paths as names
from duly.apps.documents.imports.job import declare
from duly.apps.documents.imports.secrets import ReadOnlySecret, SecretStore, UnknownSecret
from duly.apps.documents.imports.service import Connectors, UnknownConnector

ONE, OTHER = uuid.uuid4(), uuid.uuid4()


async def test_a_variable_is_found_only_under_the_name_of_its_org() -> None:
    named = f"DULY_SECRET_{ONE.hex.upper()}_DROPBOX"
    store = SecretStore(
        environment={named: "s3cret", "HOME": "/root", "DROPBOX": "no", "DULY_SECRET_HOME": "no"}
    )
    assert await store.of(ONE).get("env:DROPBOX") == "s3cret"
    for org, ref in ((OTHER, "env:DROPBOX"), (ONE, "env:HOME"), (OTHER, f"env:{named[:60]}")):
        with pytest.raises(UnknownSecret):
            await store.of(org).get(ref)
    with pytest.raises(ReadOnlySecret):
        await store.of(ONE).put("env:DROPBOX", "another")


async def test_a_secret_file_is_readable_by_its_org_and_owner_only(tmp_path: Path) -> None:
    store = SecretStore(tmp_path, {})
    await store.of(ONE).put("file:account", "first")
    await store.of(ONE).put("file:account", "second")
    assert await store.of(ONE).get("file:account") == "second"
    kept = tmp_path / str(ONE) / "account"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [file.name for file in kept.parent.iterdir()] == ["account"]
    with pytest.raises(UnknownSecret):
        await store.of(OTHER).get("file:account")
    (tmp_path / str(OTHER)).mkdir()
    (tmp_path / str(OTHER) / "account").symlink_to(kept)
    with pytest.raises(UnknownSecret):
        await store.of(OTHER).get("file:account")


@pytest.mark.parametrize("ref", ["file:../x", "file:a/b", "file:.x", "file:", "env:a", "sk-live", "file:a\n"])
async def test_an_invalid_secret_reference_is_refused_and_not_repeated(tmp_path: Path, ref: str) -> None:
    with pytest.raises(errors.ContractError) as refused:
        await SecretStore(tmp_path, {}).of(ONE).get(ref)
    assert refused.value.field == "secret_ref"
    assert "sk-live" not in str(refused.value)


async def test_admins_make_connectors_and_each_step_is_audited(app: Duly, acting: uuid.UUID) -> None:
    declare(app)
    connectors, admin = Connectors(app), DocumentPrincipal(acting, Actor.system("setup"))
    anna = DocumentPrincipal(acting, Actor.user("anna"))
    with pytest.raises(errors.Forbidden):
        await connectors.create(anna, "dropbox", "Mine", "file:a")
    made = await connectors.create(
        admin, "gdrive", "Ours", "env:GOOGLE", account="a@example.com", drive="0AB"
    )
    assert await connectors.list(anna) == [made]
    assert (await connectors.disable(admin, made.connector_id)).disabled_at is not None
    with pytest.raises(errors.Conflict, match="disabled"):
        await connectors.begin_import(anna, made.connector_id)
    assert (await connectors.enable(admin, made.connector_id)).disabled_at is None
    stranger = DocumentPrincipal(uuid.uuid4(), Actor.system("setup"))
    with pytest.raises(UnknownConnector):
        await connectors.get(stranger, made.connector_id)
    with pytest.raises(errors.Forbidden):
        await connectors.remove(anna, made.connector_id)
    await connectors.remove(admin, made.connector_id, reason="moved")
    actions = [entry.action for entry in (await app.audit.list(acting)).entries]
    assert actions == [f"connector.{done}" for done in ("deleted", "enabled", "disabled", "created")]


async def test_a_wrong_connector_is_refused_by_field_with_a_fix(app: Duly, acting: uuid.UUID) -> None:
    wrong = {
        "provider": "box",
        "name": "",
        "secret_ref": "hunter2",
        "drive": "../x",
        "account": "x" * 256,
        "node_id": uuid.uuid4(),
    }
    for field, value in wrong.items():
        given: dict[str, Any] = {"provider": "dropbox", "name": "Ours", "secret_ref": "file:a", field: value}
        with pytest.raises(errors.DulyError) as refused:
            await Connectors(app).create(DocumentPrincipal(acting, Actor.system("x")), **given)
        assert refused.value.field == field
        assert refused.value.fix


@pytest.mark.parametrize("path", ["../x", "/a/../b", "a\0b", "id:", "id:a/b", "x" * 2001])
def test_a_path_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(errors.ContractError, match="remote_path"):
        names.parse_folder(path)
    with pytest.raises(errors.ContractError, match="files"):
        names.parse_file(path)


def test_a_path_is_normalized() -> None:
    assert [names.parse_folder(path) for path in ("", "/", "a/b/", "//a//b", "id:x1")] == [
        *("", "", "/a/b", "/a/b", "id:x1")
    ]
    assert names.parse_file("/a/b c.pdf") == "a/b c.pdf"
