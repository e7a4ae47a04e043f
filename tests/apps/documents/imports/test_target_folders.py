"""Remote folders become folders: once, under safe names, where the requester may write."""

from __future__ import annotations

import pytest

from duly import Actor
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.folders.service import Folders
from duly.apps.documents.models import Grant
from tests.apps.documents.imports.importing import SYSTEM, Site
from tests.worker.working import run_until_ended


def move(site: Site, path: str, to: str) -> None:
    """The file lies elsewhere from now on."""
    file = site.fake.at(path)
    if site.connector.provider == "dropbox":
        site.fake.remove(path)
        moved = site.fake.put(to, file.data)
        site.fake.stored.pop(moved.remote_id)
        site.fake.journal.remove(moved.remote_id)
        gone = type(file)("id:gone", path, removed=True)
        site.fake.stored[gone.remote_id] = gone
        site.fake.journal[-1] = gone.remote_id
        file.removed = False
    else:
        site.fake.put(to.rpartition("/")[0], kind="folder")
    file.path = to
    site.fake.journal.append(file.remote_id)


async def test_remote_folders_are_recreated_once_below_the_connectors_folder(site: Site) -> None:
    site.fake.put("/Post/a.txt", b"alpha")
    site.fake.put("/Post/2026/Mai/b.txt", b"beta")
    await Folders(site.app).create(site.who, "2026")
    await site.bring("/Post")
    assert await site.paths() == ["2026/Mai/b.txt", "a.txt"]
    site.fake.put("/Post/2026/Mai/c.txt", b"gamma")
    site.fake.put("/Post/2026/Mai/b.txt", b"beta, changed")
    await site.bring("/Post")
    await site.bring("/Post", "2026/Mai/c.txt")
    assert await site.paths() == ["2026/Mai/b.txt", "2026/Mai/c.txt", "a.txt"]
    site.fake.put("/Post/Flach/d.txt", b"delta")
    await site.bring("/Post", folders="flat")
    assert await site.paths() == ["2026/Mai/b.txt", "2026/Mai/c.txt", "a.txt", "d.txt"]
    assert [one.path for one in await Folders(site.app).list(site.who)] == ["2026", "2026/Mai"]


async def test_a_folder_or_a_file_may_be_named_by_its_id(site: Site) -> None:
    site.fake.put("/Post/2026/Mai/b.txt", b"beta")
    site.fake.put("/Privat/c.txt", b"gamma")
    inner = site.fake.at("/Post/2026").remote_id.removeprefix("id:")
    files = [
        site.fake.at(path).remote_id.removeprefix("id:") for path in ("/Post/2026/Mai/b.txt", "/Privat/c.txt")
    ]
    await site.bring(f"id:{inner}", *[f"id:{one}" for one in files])
    assert await site.paths() == ["Mai/b.txt", "c.txt"], "what does not lie below it lies at the top"


async def test_a_file_moved_at_the_provider_stays_in_its_folder(site: Site) -> None:
    site.fake.put("/Post/Alt/a.txt", b"alpha")
    await site.bring("/Post")
    move(site, "/Post/Alt/a.txt", "/Post/Neu/a.txt")
    _, said = await site.bring("/Post")
    assert (said.imported_count, await site.paths()) == (0, ["Alt/a.txt"])
    site.fake.put("/Post/Neu/a.txt", b"alpha, changed")
    await site.bring("/Post")
    assert [one.path for one in await Folders(site.app).list(site.who)] == ["Alt"], "none is made for nothing"
    site.fake.put("/Post/Neu/b.txt", b"beta")
    await site.bring("/Post")
    assert await site.paths() == ["Alt/a.txt", "Neu/b.txt"]
    assert ("a.txt", 2) in site.documents()


@pytest.mark.parametrize("provider", ["dropbox"])
async def test_a_changed_copy_of_a_shared_document_gets_its_own_folder(site: Site) -> None:
    site.fake.put("/Eins/a.txt", b"the same")
    site.fake.put("/Zwei/b.txt", b"the same")
    await site.bring()
    assert len(await site.paths()) == 1
    site.fake.put("/Zwei/b.txt", b"not the same")
    await site.bring()
    assert await site.paths() == ["Eins/a.txt", "Zwei/b.txt"]


@pytest.mark.parametrize("provider", ["gdrive"])
async def test_names_of_folders_are_only_names(site: Site) -> None:
    site.fake.put("/P/Ha\u0308user/a.txt", b"1")
    site.fake.put("/P/../b.txt", b"2")
    site.fake.put("/P/a\u202eb\\c/c.txt", b"3")
    site.fake.put("/P/" + "x" * 300 + "/d.txt", b"4")
    await Folders(site.app).create(site.who, "H\u00e4user")
    await site.bring("/P")
    assert await site.paths() == [
        "H\u00e4user/a.txt", "a_b_c/c.txt", "unnamed/b.txt", "x" * 255 + "/d.txt",
    ]  # fmt: skip


@pytest.mark.parametrize("provider", ["gdrive"])
async def test_files_of_too_deep_folders_go_to_the_deepest_allowed_one(site: Site) -> None:
    site.fake.put("/" + "/".join(map(str, range(25))) + "/a.txt", b"alpha")
    await site.bring()
    [path] = await site.paths()
    assert path == "/".join(map(str, range(20))) + "/a.txt"


@pytest.mark.parametrize("provider", ["dropbox"])
async def test_files_for_a_hidden_folder_are_imported_when_it_becomes_visible(site: Site) -> None:
    folders, admin = Folders(site.app), DocumentPrincipal(site.org, SYSTEM)
    for name, level in (("Boss", None), ("Lesen", "read"), ("Offen", "write")):
        made = await folders.create(admin, name)
        grants = [Grant(principal="user:boss", level="manage")]
        grants += [Grant(principal="user:u1", level=level)] if level else []  # type: ignore[arg-type]
        await folders.set_grants(admin, made.node_id, grants)
        site.fake.put(f"/{name}/Unten/{name}.txt", name.encode())
    site.fake.put("/Boss/oben.txt", b"top")
    job, said = await site.bring()
    assert (job.outcome, said.imported_count, said.failed_count) == ("partially_succeeded", 1, 3)
    assert {one["error_code"] for one in job.failure_summary} == {"import.no_folder"}
    assert await site.paths() == ["Offen/Unten/Offen.txt"]
    assert [name for name in site.fake.downloads if "Offen" not in name] == [], "nothing is even fetched"
    boss = DocumentPrincipal(site.org, Actor.user("boss"))
    assert (await run_until_ended(site.app, await site.ask(who=boss))).outcome == "succeeded"
    assert await site.paths() == [
        "Boss/Unten/Boss.txt", "Boss/oben.txt", "Lesen/Unten/Lesen.txt", "Offen/Unten/Offen.txt",
    ]  # fmt: skip
