"""Folders are a tree with grants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from duly import Actor, Duly, errors
from duly.apps.documents.errors import FolderNotEmpty, NameTaken, UnknownDocument, UnknownFolder
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.models import Grant
from duly.apps.documents.schema import Connection, fetch_one
from duly.apps.documents.search.models import Filters
from tests.apps.documents.stage import add, visitor


@pytest.fixture
def boss(anna: DocumentPrincipal, sql: psycopg.Connection) -> DocumentPrincipal:
    """An admin of the org."""
    sql.execute(
        "insert into duly.members (org_id, user_id, role) values (%s, 'boss', 'admin')", [anna.org_id]
    )
    return visitor(anna.org_id, "boss")


async def test_folders_are_a_tree_with_paths(library: Duly, anna: DocumentPrincipal) -> None:
    folders = library.documents.folders
    top = await folders.create(anna, "Haus")
    inner = await folders.create(anna, "2026", top.node_id)
    assert [one.path for one in await folders.list(anna)] == ["Haus", "Haus/2026"]
    with pytest.raises(NameTaken):
        await folders.create(anna, "2026", top.node_id)
    with pytest.raises(errors.ContractError, match="into itself"):
        await folders.change(anna, top.node_id, moves=True, move_to=inner.node_id)
    moved = await folders.change(anna, inner.node_id, name="2027", moves=True)
    assert moved.path == "2027"


async def test_a_folder_with_something_in_it_is_not_removed(library: Duly, anna: DocumentPrincipal) -> None:
    folders = library.documents.folders
    folder = await folders.create(anna, "Haus")
    filed = await add(library, anna, "text", node_id=folder.node_id)
    with pytest.raises(FolderNotEmpty):
        await folders.remove(anna, folder.node_id)
    await library.documents.remove(anna, filed.document_id)
    await folders.remove(anna, folder.node_id)
    assert list(await folders.list(anna)) == []


async def test_a_restricted_folder_is_hidden_with_everything_below_it(
    library: Duly, anna: DocumentPrincipal, boss: DocumentPrincipal
) -> None:
    docs, ben = library.documents, visitor(anna.org_id, "ben")
    closed = await docs.folders.create(anna, "Personal")
    below = await docs.folders.create(anna, "Gehalt", closed.node_id)
    filed = await add(library, anna, "salary", node_id=below.node_id)
    await docs.folders.set_grants(boss, closed.node_id, [Grant(principal="user:ben", level="read")])

    for seen in (ben, boss):
        assert (await docs.get(seen, filed.document_id)).name == "brief.txt"
    with pytest.raises(UnknownDocument):
        await docs.get(anna, filed.document_id)
    assert (await docs.list(anna)).documents == []
    assert list(await docs.folders.list(anna)) == []
    with pytest.raises(UnknownFolder):
        await docs.folders.get(anna, below.node_id)

    with pytest.raises(errors.Forbidden):  # read is not write
        await add(library, ben, "more", node_id=below.node_id)
    again = await add(library, anna, "salary")
    assert again.created, "what is hidden must not be told by its content either"


async def test_only_principals_that_manage_a_folder_change_its_grants(
    library: Duly, anna: DocumentPrincipal, boss: DocumentPrincipal
) -> None:
    folders, ben = library.documents.folders, visitor(anna.org_id, "ben")
    folder = await folders.create(anna, "Personal")
    with pytest.raises(errors.Forbidden):
        await folders.set_grants(anna, folder.node_id, [Grant(principal="user:anna", level="manage")])
    await folders.set_grants(boss, folder.node_id, [Grant(principal="user:anna", level="manage")])
    await folders.set_grants(
        anna,
        folder.node_id,
        [Grant(principal="user:anna", level="manage"), Grant(principal="user:ben", level="write")],
    )
    with pytest.raises(errors.Forbidden):
        await folders.set_grants(ben, folder.node_id, [])
    assert [(one.principal, one.level) for one in await folders.grants(ben, folder.node_id)] == [
        ("user:anna", "manage"),
        ("user:ben", "write"),
    ]
    for bad in ("is not a principal", "role:admin", "user:"):
        with pytest.raises(errors.ContractError, match="is not a principal"):
            await folders.set_grants(boss, folder.node_id, [Grant(principal=bad, level="read")])


async def test_changes_of_folders_are_audited(
    library: Duly, anna: DocumentPrincipal, boss: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    folder = await library.documents.folders.create(anna, "Haus")
    await library.documents.folders.set_grants(
        boss, folder.node_id, [Grant(principal="user:ben", level="read")], reason="personal"
    )
    page = await library.audit.list(anna.org_id)
    assert [(one.action, one.actor_id, one.reason) for one in page.entries] == [
        ("folder.granted", "boss", "personal"),
        ("folder.created", "anna", None),
    ]


async def test_system_actors_see_every_folder(
    library: Duly, anna: DocumentPrincipal, boss: DocumentPrincipal
) -> None:
    folder = await library.documents.folders.create(anna, "Personal")
    await library.documents.folders.set_grants(
        boss, folder.node_id, [Grant(principal="user:ben", level="read")]
    )
    software = DocumentPrincipal(anna.org_id, Actor.system("import"))
    assert [one.name for one in await library.documents.folders.list(software)] == ["Personal"]


async def test_moving_a_folder_does_not_circumvent_its_grants(
    library: Duly, anna: DocumentPrincipal, boss: DocumentPrincipal
) -> None:
    folders, ben = library.documents.folders, visitor(anna.org_id, "ben")
    shared, closed = await folders.create(anna, "Gemeinsam"), await folders.create(anna, "Personal")
    below = await folders.create(anna, "Gehalt", closed.node_id)
    grants = [Grant(principal="user:anna", level="manage"), Grant(principal="user:ben", level="write")]
    await folders.set_grants(boss, closed.node_id, grants)
    with pytest.raises(errors.Forbidden):  # it would become theirs
        await folders.change(anna, shared.node_id, moves=True, move_to=closed.node_id)
    with pytest.raises(errors.Forbidden):  # it would be open to everybody
        await folders.change(ben, below.node_id, moves=True)
    moved = await folders.change(boss, below.node_id, moves=True)
    assert moved.path == "Gehalt"


async def test_the_depth_of_folders_is_limited_also_for_moves(library: Duly, anna: DocumentPrincipal) -> None:
    folders = library.documents.folders
    chains = []
    for name in ("a", "b"):
        parent = None
        for level in range(11):
            parent = (await folders.create(anna, f"{name}{level}", parent)).node_id
            chains += [parent] if level in (0, 10) else []
    first_top, first_end, second_top, _ = chains
    with pytest.raises(errors.ContractError, match="more than 20 levels"):
        await folders.change(anna, second_top, moves=True, move_to=first_end)
    assert (await folders.change(anna, second_top, moves=True, move_to=first_top)).path == "a0/b0"


async def test_a_hidden_folder_does_not_reveal_its_existence(
    library: Duly, anna: DocumentPrincipal, boss: DocumentPrincipal
) -> None:
    folders = library.documents.folders
    top, other = await folders.create(anna, "Haus"), await folders.create(anna, "Anderes")
    secret = await folders.create(boss, "Gehalt", top.node_id)
    below = await folders.create(boss, "Alle", secret.node_id)
    await folders.set_grants(boss, secret.node_id, [Grant(principal="user:ben", level="read")])
    await folders.set_grants(boss, below.node_id, [Grant(principal="user:anna", level="write")])

    same = await folders.create(anna, "Gehalt", top.node_id)  # its name is not taken for them
    with pytest.raises(NameTaken):
        await folders.create(anna, "Gehalt", top.node_id)
    with pytest.raises(NameTaken):
        await folders.change(boss, other.node_id, name="Gehalt", moves=True, move_to=top.node_id)
    renamed = await folders.change(anna, same.node_id, name="Gehälter")
    with pytest.raises(NameTaken):
        await folders.change(boss, renamed.node_id, name="Gehalt")
    assert (await folders.change(anna, same.node_id, name="Gehälter")).name == "Gehälter"

    told = []
    for place in (secret.node_id, uuid4()):
        for asked in (
            lambda place=place: folders.create(anna, "Neu", place),
            lambda place=place: folders.change(anna, other.node_id, moves=True, move_to=place),
            lambda place=place: library.documents.list(anna, node_id=place),
            lambda place=place: library.documents.search(anna, "Haus", Filters(nodes=(place,))),
            lambda place=place: library.documents.exports.documents(anna, node_id=place),
            lambda place=place: library.documents.exports.search(anna, "Haus", Filters(nodes=(place,))),
        ):
            with pytest.raises(UnknownFolder) as refused:
                await asked()
            told.append((refused.value.message, refused.value.field))
    assert told[:6] == told[6:]
    assert {field for _, field in told} == {"parent_id", "node_id"}

    seen = await folders.get(anna, below.node_id)
    assert (seen.path, seen.parent_id) == ("Haus/…/Alle", None)
    await folders.remove(anna, same.node_id)
    with pytest.raises(FolderNotEmpty, match="the folder is not empty"):
        await folders.remove(anna, top.node_id)


async def test_folder_access_is_read_once_per_transaction(
    library: Duly, anna: DocumentPrincipal, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await library.documents.folders.create(anna, "Haus")
    filed = await add(library, anna, "text")
    statements = []

    async def counted(conn: Connection, name: str, values: Mapping[str, Any]) -> Any:
        statements.append(name)
        return await fetch_one(conn, name, values)

    monkeypatch.setattr("duly.apps.documents.folders.access.fetch_one", counted)
    await library.documents.change(anna, filed.document_id, moves=True, move_to=folder.node_id)
    # Access is read to change the document, and to return it.
    assert statements == ["nodes/read_access", "nodes/exists", "nodes/list_restricted"]
