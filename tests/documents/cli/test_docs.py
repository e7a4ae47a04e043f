"""Documents, as somebody with a shell works with them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Duly
from tests.cli.conftest import Run
from tests.documents.files import pdf
from tests.house.pages import commands
from tests.worker.working import working

WHY = ("--reason", "because")
LINES = """
docs upload {file} --folder Contracts --metadata year=2026 --engine none
docs list --folder Contracts --status stored --limit 1
docs show {document}
docs search Miete --type invoice --language de --page-from 1 --metadata year=2026 --folder Contracts
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
docs grant Contracts/2027 --to user:eve=write --reason because
docs rmdir Contracts/2027 --reason because
docs connect dropbox {name} --secret-ref file:dropbox --folder Contracts
docs connectors
docs import {connector} --path Scans
docs disable {connector} --reason because
docs enable {connector} --reason because
docs disconnect {connector} --reason because
docs export {document} --format jsonl
docs delete {document} --reason because
"""

FOR_PEOPLE = {
    *("upload", "list", "show", "search", "move", "download", "extract", "confirm", "belongs", "folders"),
    *("connectors", "disconnect", "delete"),
}
"""Commands that say something of their own."""


@pytest.fixture
async def ids(duly: Run, tmp_path: Path) -> dict[str, Any]:
    """A document in a folder, another file, and a connector."""
    file, first = tmp_path / "more.txt", tmp_path / "a.txt"
    first.write_text("Die Miete ist fällig.")
    file.write_text("Kündigung")
    await duly("docs", "mkdir", "Contracts/2026")
    sent = (
        await duly("docs", "upload", first, "--folder", "Contracts", "--engine", "none", "--json")
    ).document
    made = await duly("docs", "connect", "gdrive", "Drive", "--secret-ref", "env:DRIVE", "--json")
    found = {"document": sent["documents"][0]["document_id"], "connector": made.document["connector_id"]}
    return {**found, "file": file, "copy": tmp_path / "copy.txt", "name": "Scans"}


async def test_every_command_answers_programs_with_one_document(duly: Run, ids: dict[str, Any]) -> None:
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


async def test_commands_answer_people(duly: Run, ids: dict[str, Any]) -> None:
    lines = [line.format(**ids) for line in LINES.strip().splitlines() if line.split()[1] in FOR_PEOPLE]
    assert len(lines) == len(FOR_PEOPLE)
    out = ""
    for line in lines:
        done = await duly(*line.split())
        assert (done.code, done.err, bool(done.out)) == (0, "", True), line
        out += done.out
    for shown in ("a.txt", "b.txt", "Contracts/2026", "letter", "gdrive", "0 found", "removed", "deleted"):
        assert shown in out, shown


async def test_a_document_is_read_while_somebody_waits(
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


async def test_whoever_asks_sees_what_is_open_to_them(
    duly: Run, ids: dict[str, Any], sql: psycopg.Connection
) -> None:
    await duly("docs", "grant", "Contracts", "--to", "user:eve=read", *WHY)
    for actor, seen in (("user:ben", []), ("user:eve", [ids["document"]]), ("anna", [ids["document"]])):
        page = (await duly("docs", "list", "--actor", actor, "--json")).document
        assert [one["document_id"] for one in page["documents"]] == seen, actor
    refused = await duly("docs", "delete", ids["document"], "--actor", "user:ben", *WHY)
    assert (refused.code, "no such document" in refused.err) == (3, True)
    assert (await duly("docs", "delete", ids["document"], "--actor", "user:eve", *WHY)).code == 4
    assert (await duly("docs", "grant", "Contracts", "--as-above", *WHY)).code == 0
    assert (await duly("docs", "delete", ids["document"], "--actor", "user:ben", *WHY)).code == 0
    query = "select actor_id, reason from duly.audit_entries where action = 'document.deleted'"
    assert sql.execute(query).fetchall() == [("ben", "because")]


async def test_what_is_refused_is_said_in_one_line(duly: Run, ids: dict[str, Any], tmp_path: Path) -> None:
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
        (("rmdir", "/", *WHY), 3, "no such folder"),
        (("rmdir", "Contracts", *WHY), 4, "still something in it"),
        (("mkdir", "/"), 2, "root"),
        (("search", "?!"), 4, "query"),
        (("import", uuid.UUID(int=7)), 3, "no such connector"),
        (("export", document, "--query", "Miete"), 2, "either"),
    ):
        ended = await duly("docs", *words)
        assert (ended.code, ended.out, len(ended.err.splitlines())) == (code, "", 1), (words, ended.err)
        assert part in ended.err, words
    assert (tmp_path / "taken").read_text() == "mine"


async def test_what_is_found_is_shown_and_marked_on_terminals_only(
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
    assert "Mnotag: nothing has it; looked for Montag" in slip.out
