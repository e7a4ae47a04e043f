"""All chunks together: the report, its page and its summary."""

from __future__ import annotations

import uuid

import pytest

from duly import errors
from duly.apps.analyze import AnalyzeRequest, Library, Part, Source, analyze_now
from duly.apps.analyze.aggregate import reported, summed_up
from duly.apps.analyze.documents import Document
from duly.apps.analyze.pages import as_markdown
from duly.apps.analyze.work import part_of
from duly.blobs import BlobStore
from tests.apps.analyze.samples import samples


def parts_of(request: AnalyzeRequest) -> list[Part]:
    return [
        part_of(Document(piece.source.name, piece.source.text or "", asked=request.language), piece.module)
        for piece in request.pieces
    ]


async def test_the_samples_are_summed_up_at_once() -> None:
    request = AnalyzeRequest.read({"sources": samples()})
    summary = await analyze_now(request)
    assert summary == summed_up(reported(request, reversed(parts_of(request)))), "whatever comes first"
    assert (summary.schema_version, summary.totals.sources, summary.totals.unreadable) == (1, 10, 0)
    assert [share.language for share in summary.languages][:2] == ["de", "en"]
    assert [(pair.first[-5:], pair.second[-5:]) for pair in summary.duplicates.items] == [("v1.md", "v2.md")]
    dates = [event.date for event in summary.timeline.items]
    assert dates == sorted(dates)
    assert (dates[0], dates[-1]) == ("2025-01-01", "2031-03-31")
    assert summary.figures.ibans == 5
    assert summary.figures.with_problems == 1
    assert [line.name for line in summary.sources.items] == [one["name"] for one in samples()]
    assert (summary.report, summary.failed.total) == (None, 0)
    wrong, first, *_ = summary.listed_figures.items
    assert (wrong.kind, wrong.source, wrong.problem) == (
        "ibans",
        "rechnung-mail.txt",
        "the check digits are wrong",
    )
    assert (first.kind, first.value, first.source) == ("dates", "2026-03-03", samples()[0]["name"])
    assert len(summary.listed_figures.items) == 50
    counts = summary.figures.model_dump(exclude={"with_problems"})
    assert summary.listed_figures.total == sum(counts.values())
    policy = next(term for term in summary.terms if term.term == "Bildschirm")
    assert (policy.count, policy.sources) == (2, 1), "of two versions one counts"


async def test_only_what_is_asked_for_is_done() -> None:
    request = AnalyzeRequest.read({"sources": samples()[:2], "modules": ["figures"]})
    summary = await analyze_now(request)
    assert summary.figures.dates > 0
    assert (summary.terms, summary.languages) == ((), ())
    assert (summary.totals.sources, summary.totals.words, summary.totals.reading_minutes) == (2, None, None)
    assert summary.sources.items[0].language is None


def test_a_summary_is_small_however_much_there_is() -> None:
    names = [f'{n:03}"{"ß" * 96}' for n in range(200)]
    text = "Am 17. März 2026 zahlt Müller 5 € an a@example.com. " * 40
    request = AnalyzeRequest(sources=tuple(Source(name=name, text="x") for name in names))
    of_each = [part_of(Document("", text, asked="de"), module) for module in request.modules]
    parts = [part.model_copy(update={"source": name}) for name in names for part in of_each]
    report = reported(request, parts)
    summary = summed_up(report)
    assert 40_000 < len(summary.model_dump_json().encode()) < 64_000
    assert summary.sources.total == 200
    assert summary.listed_figures.total == 200 * 40 * 3
    assert summary.timeline.total == report.timeline.total == 200 * 40
    assert summary.duplicates.total == report.duplicates.total == 200 * 199 / 2
    assert summary.duplicates.items[0].identical


def test_a_chunk_that_is_missing_is_named() -> None:
    request = AnalyzeRequest.read({"sources": samples()[:2], "modules": ["size", "terms"]})
    report = reported(request, parts_of(request)[:-1])
    assert report.failed == (f"{samples()[1]['name']}/terms",)


def test_nothing_of_a_text_is_markup_on_the_page() -> None:
    text = "Am 17.03.2026 <script>alert(1)</script> | [x](javascript:y) zahlt *wer* 5 €."
    request = AnalyzeRequest.read({"sources": [{"name": "<b>|böse|</b>", "text": text}], "language": "de"})
    page = as_markdown(reported(request, parts_of(request)))
    assert "\n### \\<b\\>\\|böse\\|\\</b\\>\n" in page
    assert "\n| dates | 2026-03-17 |  |  | Am 17.03.2026 \\<script\\>alert(1)\\</script\\> \\| … |\n" in page
    assert "](" not in page.replace("\\]", "")


def test_the_page_speaks_the_language_of_most_texts() -> None:
    texts = ["Das ist ein Satz mit Wörtern für alle, die ihn lesen.", "This is it, on one line for you."]
    request = AnalyzeRequest(sources=tuple(Source(name=str(n), text=text) for n, text in enumerate(texts)))
    report = reported(request, parts_of(request))
    german, english = as_markdown(report), as_markdown(report, "en")
    assert german.startswith("# Bericht\n\nTexte: 2. Wörter: 19. ")
    assert "- Umfang: 11 Wörter in 1 Satz\n" in german
    assert "- size: 11 words in 1 sentence\n" in english


async def test_uploads_are_read_by_content_and_strangers_are_unknown(tmp_path: object) -> None:
    blobs, ours, theirs = BlobStore(str(tmp_path)), uuid.uuid4(), uuid.uuid4()
    good = str(await blobs.put(ours, "Größe und Länge".encode("cp1252")))
    bad = str(await blobs.put(ours, b"%PDF-1.7 ..."))
    foreign = await blobs.put(theirs, b"geheim")
    library = Library(blobs, ours)
    request = AnalyzeRequest.read({"sources": [{"name": "a", "blob": good}, {"name": "b", "blob": bad}]})
    summary = await analyze_now(request, library)
    first, second = summary.sources.items
    assert (first.words, first.unreadable) == (3, None)
    assert (second.words, second.unreadable) == (None, "a PDF file")
    assert (summary.totals.unreadable, summary.failed.total) == (1, 0)
    said = []
    for blob in (str(foreign), str(foreign).replace(str(theirs), str(ours)), good.replace("/15", "/16")):
        with pytest.raises(errors.ContractError) as refused:
            request = AnalyzeRequest.read(
                {"sources": [{"name": "x", "text": ""}, {"name": "y", "blob": blob}]}
            )
            await analyze_now(request, library)
        said.append((str(refused.value), refused.value.field))
    assert said == [said[0]] * 3
    assert said[0][1] == "sources.1.blob"
    with pytest.raises(errors.ContractError):
        await analyze_now(request)
