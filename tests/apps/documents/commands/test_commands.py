"""The commands of `duly docs`."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.uploads.service import PART_SIZE
from duly.cli.options import acting
from tests.apps.documents.files import pdf
from tests.apps.documents.stage import add, pieces
from tests.architecture.pages import commands
from tests.cli.conftest import Run
from tests.worker.working import WAIT_TIMEOUT, working

WHY = ("--reason", "because")
LINES = """
docs upload {file} --folder Contracts --metadata year=2026 --engine none
docs list --folder Contracts --status stored --limit 1
docs show {document}
docs change {document} --name a2.txt --metadata year=2026 --folder Contracts
docs text {read}
docs passages {read}
docs why {read}
docs review
docs models
docs uploads
docs abandon {upload}
docs grants Contracts
docs search Miete --document {document} --element Table --type invoice --metadata year=2026 --folder Contracts
docs move {document} Contracts/2026 --name b.txt
docs download {document} --to {copy}
docs extract {document} --engine hires
docs classify {document}
docs confirm {document} letter
docs train
docs evaluate
docs belongs letter Contracts
docs filing
docs folders
docs mkdir Contracts/2027
docs mvdir Contracts/2027 --name 2028 --into /
docs grant 2028 --to user:eve=write --reason because
docs rmdir 2028 --reason because
docs connect dropbox {name} --secret-ref file:dropbox --folder Contracts
docs connectors
docs import {connector} --path Scans --folders flat
docs disable {connector} --reason because
docs enable {connector} --reason because
docs disconnect {connector} --reason because
docs export {document} --format jsonl
docs delete {document} --reason because
"""

FOR_PEOPLE = {
    *(
        "change",
        "text",
        "passages",
        "why",
        "review",
        "models",
        "uploads",
        "abandon",
        "grants",
        "mvdir",
        "mkdir",
    ),
    *("upload", "list", "show", "search", "move", "download", "extract", "confirm", "belongs", "folders"),
    *("connectors", "disconnect", "delete"),
}
"""Commands that say something of their own."""


@pytest.fixture
async def ids(duly: Run, library: Duly, tmp_path: Path, org: uuid.UUID) -> dict[str, Any]:
    """A document in a folder, another that was read, another file, an upload, and a connector."""
    file, first = tmp_path / "more.txt", tmp_path / "a.txt"
    first.write_text("Die Miete ist fällig.")
    file.write_text("Kündigung")
    await duly("docs", "mkdir", "Contracts/2026")
    sent = (
        await duly("docs", "upload", first, "--folder", "Contracts", "--engine", "none", "--json")
    ).document
    made = await duly("docs", "connect", "gdrive", "Drive", "--secret-ref", "env:DRIVE", "--json")
    found = {"document": sent["documents"][0]["document_id"], "connector": made.document["connector_id"]}
    found |= {"read": await read(library, org), "upload": await begun(library, org)}
    return {**found, "file": file, "copy": tmp_path / "copy.txt", "name": "Scans"}


async def read(library: Duly, org: uuid.UUID) -> uuid.UUID:
    """A document with a page, a passage, and a type that nobody is sure of."""
    who = DocumentPrincipal(org, Actor.operator("root"))
    made = (await add(library, who, "Guten Tag", "gelesen.txt", engine="fast")).document_id
    [extraction] = await library.documents.extractions(who, made)
    assert extraction.job_id is not None
    async with working(library):
        await library.handle(extraction.job_id, org_id=org).wait(WAIT_TIMEOUT)
    return made


async def begun(library: Duly, org: uuid.UUID) -> uuid.UUID | None:
    who = DocumentPrincipal(org, acting(None))
    return (await library.documents.uploads.begin(who, "7" * 64, 9 * 2**20)).upload_id


async def test_every_command_prints_one_json_document(duly: Run, ids: dict[str, Any]) -> None:
    said = {}
    for line in LINES.strip().splitlines():
        done = await duly(*line.format(**ids).split(), "--json")
        assert (done.code, done.err) == (0, ""), (line, done.err)
        said[" ".join(line.split()[:2])] = done.document
    assert set(said) == {path for path in commands() if path.startswith("docs ")}
    assert said["docs list"]["documents"][0]["metadata"] == {"year": 2026}
    assert (said["docs move"]["name"], said["docs confirm"]["doc_type"]) == ("b.txt", "letter")
    assert said["docs folders"]["folders"][-1]["path"] == "Contracts/2026"
    assert said["docs disable"]["disabled_at"]
    assert ids["copy"].read_text() == "Die Miete ist fällig."


async def test_every_command_prints_text_for_people(duly: Run, ids: dict[str, Any]) -> None:
    lines = [line.format(**ids) for line in LINES.strip().splitlines() if line.split()[1] in FOR_PEOPLE]
    assert len(lines) == len(FOR_PEOPLE)
    out = ""
    for line in lines:
        done = await duly(*line.split())
        assert (done.code, done.err, bool(done.out)) == (0, "", True), line
        out += done.out
    for shown in ("a.txt", "b.txt", "Contracts/2026", "letter", "gdrive", "0 found", "removed", "deleted"):
        assert shown in out, shown


async def test_a_large_file_resumes_and_a_refused_file_does_not_stop_the_others(
    duly: Run, library: Duly, org: uuid.UUID, tmp_path: Path
) -> None:
    large, empty, small = tmp_path / "large.bin", tmp_path / "empty.txt", tmp_path / "small.txt"
    large.write_bytes(bytes(PART_SIZE) + b"the rest")
    empty.touch()
    small.write_text("small")
    uploads, who = library.documents.uploads, DocumentPrincipal(org, acting(None))
    hashed = hashlib.sha256(large.read_bytes()).hexdigest()
    first = await uploads.begin(who, hashed, large.stat().st_size)
    assert first.upload_id is not None
    await uploads.put(who, first.upload_id, 2, pieces(b"the rest"))
    [open_one] = (await duly("docs", "uploads", "--json")).document["uploads"]
    assert (open_one["upload_id"], open_one["received"]) == (str(first.upload_id), 1)
    done = await duly("docs", "upload", large, empty, small, "--engine", "none", "--json")
    assert (done.code, "empty.txt" in done.err, len(done.err.splitlines())) == (4, True, 1)
    said = json.loads(done.out)
    assert [one["created"] for one in said["documents"]] == [True, True]
    assert [one["file"] for one in said["refused"]] == [str(empty)]
    shown = (await duly("docs", "show", said["documents"][0]["document_id"], "--json")).document
    assert shown["document"]["sha256"] == hashed
    assert (await duly("docs", "uploads", "--json")).document["uploads"] == []
    again = await duly("docs", "upload", large, "--json")
    assert [one["created"] for one in again.document["documents"]] == [False]


async def test_extract_with_wait_follows_the_job_to_its_end(
    duly: Run, library: Duly, tmp_path: Path, ids: dict[str, Any]
) -> None:
    file = tmp_path / "rechnung.pdf"
    file.write_bytes(pdf(["Rechnung über die Miete im Mai", "Seite zwei"]))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing follows")
    sent = await duly("docs", "upload", file, tmp_path / "broken.pdf", "--engine", "none", "--json")
    good, broken = [one["document_id"] for one in sent.document["documents"]]
    async with working(library):
        read = await duly("docs", "extract", good, "--wait", "--json")
        failed = await duly("docs", "extract", broken, "--wait")
    assert (read.code, read.document["status"], read.document["partial_count"]) == (0, "completed", 2)
    assert (failed.code, "failed" in failed.out) == (1, True)
    shown = (await duly("docs", "show", good, "--json")).document
    assert (shown["document"]["page_count"], shown["extractions"][0]["status"]) == (2, "done")


async def test_commands_show_what_the_actor_may_see(
    duly: Run, ids: dict[str, Any], sql: psycopg.Connection
) -> None:
    await duly("docs", "grant", "Contracts", "--to", "user:eve=read", *WHY)
    for actor, sees in (("user:ben", False), ("user:eve", True), ("anna", True)):
        page = (await duly("docs", "list", "--actor", actor, "--json")).document
        assert (ids["document"] in [one["document_id"] for one in page["documents"]]) is sees, actor
    refused = await duly("docs", "delete", ids["document"], "--actor", "user:ben", *WHY)
    assert (refused.code, "no such document" in refused.err) == (3, True)
    assert (await duly("docs", "delete", ids["document"], "--actor", "user:eve", *WHY)).code == 4
    assert (await duly("docs", "grant", "Contracts", "--as-above", *WHY)).code == 0
    assert (await duly("docs", "delete", ids["document"], "--actor", "user:ben", *WHY)).code == 0
    query = "select actor_id, reason from duly.audit_entries where action = 'document.deleted'"
    assert sql.execute(query).fetchall() == [("ben", "because")]


async def test_errors_are_printed_on_one_line(duly: Run, ids: dict[str, Any], tmp_path: Path) -> None:
    file, document = ids["file"], ids["document"]
    (tmp_path / "taken").write_text("mine")
    for words, code, part in (
        (("upload", tmp_path / "none.txt"), 2, "does not exist"),
        (("upload", file, "--folder", "Nowhere"), 3, "no such folder"),
        (("upload", file, "--metadata", "year"), 2, "NAME=VALUE"),
        (("upload", file, "--engine", "magic"), 2, "magic"),
        (("show", uuid.UUID(int=7)), 3, "no such document"),
        (("download", document, "--version", "9"), 3, "no such version"),
        (("download", document, "--to", tmp_path / "taken"), 2, "exists"),
        (("extract", document, "--engine", "magic"), 2, "magic"),
        (("confirm", document, "No Type"), 4, "doc_type"),
        (("grant", "Contracts", *WHY), 2, "--as-above"),
        (("grant", "Contracts", "--to", "user:eve=own", *WHY), 2, "user:u1=write"),
        (("change", document), 2, "nothing to change"),
        (("change", document, "--folder", "Nowhere"), 3, "no such folder"),
        (("change", document, "--metadata", "a=1", "--no-metadata"), 2, "either"),
        (("mvdir", "Contracts"), 2, "a name or a parent folder"),
        (("mvdir", "Contracts", "--into", "Contracts/2026"), 4, "into itself"),
        (("mvdir", "/", "--name", "x"), 3, "no such folder"),
        (("grants", "Nowhere"), 3, "no such folder"),
        (("text", document), 3, "no extracted text"),
        (("text", ids["read"], "--page", "2"), 3, "the document has 1"),
        (("passages", uuid.UUID(int=7)), 3, "no such document"),
        (("classify", document, "--engine", "remote"), 2, "--consent"),
        (("abandon", uuid.UUID(int=7)), 3, "no such upload"),
        (("search", "x", "--created-from", "yesterday"), 2, "2026-11-15"),
        (("export", "--language", "de"), 2, "belong to a search"),
        (("export", "--folder", "Contracts", "--folder", "/"), 2, "only one"),
        (("rmdir", "/", *WHY), 3, "no such folder"),
        (("rmdir", "Contracts", *WHY), 4, "the folder is not empty"),
        (("mkdir", "/"), 2, "root"),
        (("search", "?!"), 4, "query"),
        (("import", uuid.UUID(int=7)), 3, "no such connector"),
    ):
        ended = await duly("docs", *words)
        assert (ended.code, ended.out, len(ended.err.splitlines())) == (code, "", 1), (words, ended.err)
        assert part in ended.err, words
    assert (tmp_path / "taken").read_text() == "mine"


async def test_search_hits_are_highlighted_on_terminals_only(
    duly: Run, library: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "brief.txt"
    file.write_text("Die Kündigung [bold]kam[/] am Montag \x1b[31m an.")
    sent = (await duly("docs", "upload", file, "--engine", "none", "--json")).document["documents"][0]
    async with working(library):
        await duly("docs", "extract", sent["document_id"], "--wait")
        given = await duly("docs", "export", "--query", "Kündigung", "--to", tmp_path, "--json")
    [table] = given.document["files"]
    assert "Kündigung" in Path(table).read_text()
    plain = await duly("docs", "search", "Kündigung")
    assert f"1. brief.txt, page 1  {sent['document_id']}" in plain.out
    assert "Die Kündigung [bold]kam[/]" in plain.out
    assert "1 found" in plain.out
    assert "\x1b" not in plain.out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "Die \x1b[1mKündigung\x1b[0m [bold]" in (await duly("docs", "search", "Kündigung")).out
    slip = await duly("docs", "search", "Mnotag")
    assert "Mnotag: no match; searched for Montag" in slip.out
