"""The report, its Markdown form and its summary."""

from __future__ import annotations

import uuid

import pytest

from duly import errors
from duly.apps.analyze import AnalyzeRequest, Part, Source, SourceReader, analyze_now
from duly.apps.analyze.aggregate import build_report, summarize
from duly.apps.analyze.analysis import analyze_source
from duly.apps.analyze.markdown import to_markdown
from duly.apps.analyze.sources import SourceText
from duly.blobs import BlobStore
from tests.apps.analyze.samples import samples


def parts_of(request: AnalyzeRequest) -> list[Part]:
    return [
        analyze_source(
            SourceText(chunk.source.name, chunk.source.text or "", requested_language=request.language),
            chunk.module,
        )
        for chunk in request.chunks
    ]


async def test_the_summary_of_the_samples() -> None:
    request = AnalyzeRequest.read({"sources": samples()})
    summary = await analyze_now(request)
    assert summary == summarize(build_report(request, reversed(parts_of(request)))), "in any order"
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


async def test_only_the_requested_modules_run() -> None:
    request = AnalyzeRequest.read({"sources": samples()[:2], "modules": ["figures"]})
    summary = await analyze_now(request)
    assert summary.figures.dates > 0
    assert (summary.terms, summary.languages) == ((), ())
    assert (summary.totals.sources, summary.totals.words, summary.totals.reading_minutes) == (2, None, None)
    assert summary.sources.items[0].language is None


def test_a_summary_has_a_maximum_size() -> None:
    names = [f'{n:03}"{"ß" * 96}' for n in range(200)]
    text = "Am 17. März 2026 zahlt Müller 5 € an a@example.com. " * 40
    request = AnalyzeRequest(sources=tuple(Source(name=name, text="x") for name in names))
    of_each = [
        analyze_source(SourceText("", text, requested_language="de"), module) for module in request.modules
    ]
    parts = [part.model_copy(update={"source": name}) for name in names for part in of_each]
    report = build_report(request, parts)
    summary = summarize(report)
    assert 40_000 < len(summary.model_dump_json().encode()) < 64_000
    assert summary.sources.total == 200
    assert summary.listed_figures.total == 200 * 40 * 3
    assert summary.timeline.total == report.timeline.total == 200 * 40
    assert summary.duplicates.total == report.duplicates.total == 200 * 199 / 2
    assert summary.duplicates.items[0].identical


def test_failed_chunks_are_listed() -> None:
    request = AnalyzeRequest.read({"sources": samples()[:2], "modules": ["size", "terms"]})
    report = build_report(request, parts_of(request)[:-1])
    assert report.failed == (f"{samples()[1]['name']}/terms",)


def test_markup_in_sources_is_escaped() -> None:
    text = "Am 17.03.2026 <script>alert(1)</script> | [x](javascript:y) zahlt *wer* 5 €."
    request = AnalyzeRequest.read({"sources": [{"name": "<b>|böse|</b>", "text": text}], "language": "de"})
    page = to_markdown(build_report(request, parts_of(request)))
    assert "\n### \\<b\\>\\|böse\\|\\</b\\>\n" in page
    assert "\n| dates | 2026-03-17 |  |  | Am 17.03.2026 \\<script\\>alert(1)\\</script\\> \\| … |\n" in page
    assert "](" not in page.replace("\\]", "")


def test_the_markdown_is_in_the_main_language_of_the_sources() -> None:
    texts = ["Das ist ein Satz mit Wörtern für alle, die ihn lesen.", "This is it, on one line for you."]
    request = AnalyzeRequest(sources=tuple(Source(name=str(n), text=text) for n, text in enumerate(texts)))
    report = build_report(request, parts_of(request))
    german, english = to_markdown(report), to_markdown(report, "en")
    assert german.startswith("# Bericht\n\nTexte: 2. Wörter: 19. ")
    assert "- Umfang: 11 Wörter in 1 Satz\n" in german
    assert "- size: 11 words in 1 sentence\n" in english


async def test_uploads_of_other_orgs_are_unknown(tmp_path: object) -> None:
    blobs, ours, theirs = BlobStore(str(tmp_path)), uuid.uuid4(), uuid.uuid4()
    good = str(await blobs.put(ours, "Größe und Länge".encode("cp1252")))
    bad = str(await blobs.put(ours, b"%PDF-1.7 ..."))
    foreign = await blobs.put(theirs, b"geheim")
    reader = SourceReader(blobs, ours)
    request = AnalyzeRequest.read({"sources": [{"name": "a", "blob": good}, {"name": "b", "blob": bad}]})
    summary = await analyze_now(request, reader)
    first, second = summary.sources.items
    assert (first.words, first.unreadable) == (3, None)
    assert (second.words, second.unreadable) == (None, "a PDF file")
    assert (summary.totals.unreadable, summary.failed.total) == (1, 0)
    messages = []
    for blob in (str(foreign), str(foreign).replace(str(theirs), str(ours)), good.replace("/15", "/16")):
        with pytest.raises(errors.ContractError) as refused:
            request = AnalyzeRequest.read(
                {"sources": [{"name": "x", "text": ""}, {"name": "y", "blob": blob}]}
            )
            await analyze_now(request, reader)
        messages.append((str(refused.value), refused.value.field))
    assert messages == [messages[0]] * 3
    assert messages[0][1] == "sources.1.blob"
    with pytest.raises(errors.ContractError):
        await analyze_now(request)
