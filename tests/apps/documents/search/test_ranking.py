"""What is found, and in which order."""

from __future__ import annotations

import pytest

from duly.apps.documents.search import compounds
from duly.apps.documents.search.models import FragmentPart
from tests.apps.documents.search.shelf import Shelf


async def test_rare_words_and_many_of_them_come_first(shelf: Shelf) -> None:
    await shelf.put("a", "Der Vertrag über die Wohnung beginnt im Mai.")
    await shelf.put("b", "Der Vertrag über die Garage beginnt im Juni.")
    await shelf.put("c", "Der Vertrag über das Auto, ein Vertrag auf Zeit.")
    assert await shelf.names("Vertrag Garage") == ["b", "c", "a"]
    found = await shelf.find("Welche Garage?")
    assert [hit.name for hit in found.hits] == ["b"]
    assert (found.total, found.exact, found.more, found.corrected) == (1, True, False, {})
    assert found.hits[0].score > 0
    assert (found.hits[0].page, found.hits[0].chunk_index, found.hits[0].language) == (1, 0, "de")


async def test_stems_of_both_languages_are_found(shelf: Shelf) -> None:
    await shelf.put("de", "Die Häuser der Mieter wurden verkauft und danach neu gestrichen.", language=None)
    await shelf.put(
        "en", "The tenants were paying for the cleaning of all windows of the house.", language=None
    )
    assert [hit.language for hit in (await shelf.find("Haus Fenster")).hits] == ["de"]
    assert await shelf.names("how does a tenant pay") == ["en"]
    assert await shelf.names("verkaufte Haeuser") == ["de"]


async def test_a_word_that_is_nothing_in_the_other_language_is_looked_for(shelf: Shelf) -> None:
    await shelf.put("en", "A history of the war and of those who had to die in it.", language="en")
    await shelf.put("de", "Das war die Geschichte, die er erzählte.", language="de")
    assert await shelf.names("Vietnam war") == ["en"]
    assert await shelf.names("was war die Geschichte") == ["de"]


async def test_umlauts_and_sharp_s_are_found_however_they_are_typed(shelf: Shelf) -> None:
    await shelf.put("a", "Müller wohnt in der Straße am Fluss.")
    await shelf.put("b", "Mueller wohnt in der Gasse am Berg.")
    for query in ("Straße", "Strasse", "strasse", "STRASSE"):
        assert await shelf.names(query) == ["a"], query
    assert sorted(await shelf.names("Müller")) == sorted(await shelf.names("mueller")) == ["a", "b"]


@pytest.mark.skipif(not compounds.installed(), reason="HanTa is not installed")
async def test_compounds_are_found_by_their_parts_and_parts_by_their_compounds(shelf: Shelf) -> None:
    await shelf.put("a", "Die Betriebskostenabrechnung kommt im Herbst.")
    await shelf.put("b", "Die Abrechnung der Kosten für den Betrieb kommt im Winter.")
    assert await shelf.names("Abrechnung") == ["b", "a"]
    found = await shelf.find("Betriebskostenabrechnung")
    assert [hit.name for hit in found.hits] == ["a", "b"]
    assert FragmentPart(text="Betriebskostenabrechnung", hit=True) in found.hits[0].fragments[0]
    assert FragmentPart(text="Abrechnung", hit=True) in found.hits[1].fragments[0]


def test_nouns_are_told_by_their_capitals_unless_nobody_took_the_trouble() -> None:
    assert compounds.nouns(["Welche", "verschiedenen", "Datenbanken", "gibt", "es"]) == [0, 2]
    assert compounds.nouns(["welche", "datenbanken", "gibt", "es"]) == [0, 1, 2, 3]
    assert compounds.nouns(["Datenbanken", "vergleichen"]) == [0, 1], "the first of a sentence says nothing"


async def test_a_slip_of_the_pen_is_forgiven_and_told(shelf: Shelf) -> None:
    await shelf.put("a", "Der Mietvertrag endet.", "Die Kündigungsfrist beträgt drei Monate.")
    for slip in ("Mitvertrag", "Mietvertarg", "Mietvertraag", "Nietvertrag"):
        found = await shelf.find(slip)
        assert found.corrected == {slip: ("Mietvertrag",)}
        assert FragmentPart(text="Mietvertrag", hit=True) in found.hits[0].fragments[0]
    await shelf.put("b", "Die Miete ist gezahlt, die Garage geputzt.")
    for slip, meant in (("Miehte", "Miete"), ("Garge", "Garage"), ("Garagee", "Garage"), ("Grage", "Garage")):
        assert (await shelf.find(slip)).corrected == {slip: (meant,)}
    assert (await shelf.find("Kundigungsfirst")).corrected == {"Kundigungsfirst": ("Kündigungsfrist",)}
    assert await shelf.names("Elefant") == []
    assert (await shelf.find("Mietvertrag")).corrected == {}


async def test_names_are_found_also_of_documents_without_text(shelf: Shelf) -> None:
    await shelf.put("Rechnung_2024-11_Stadtwerke.pdf")
    await shelf.put("scan0001.pdf", "Ein Brief der Stadtwerke über Gas.")
    [first, second] = (await shelf.find("Stadtwerke Rechnung 2024")).hits
    assert (first.name, first.chunk_index, first.page, first.text) == (first.text, None, None, first.name)
    [fragment] = first.fragments
    assert [(part.text, part.hit) for part in fragment] == [
        ("Rechnung", True),
        ("_", False),
        ("2024", True),
        ("-11_", False),
        ("Stadtwerke", True),
        (".pdf", False),
    ]
    assert second.name == "scan0001.pdf"
    assert (await shelf.names("scan0001.pdf"))[0] == "scan0001.pdf"


async def test_numbers_and_words_with_joints_are_found_by_either_part(shelf: Shelf) -> None:
    await shelf.put("a", "Rechnung RE-2024-0815 über Miete/Pacht, IBAN DE89 3704, zu zahlen am 01.02.2024")
    for query in ("0815", "RE-2024-0815", "Pacht", "Miete", "3704", "01.02.2024", "abrech-\nnung zahlen"):
        assert await shelf.names(query) == ["a"], query


async def test_text_that_is_no_text_is_taken(shelf: Shelf) -> None:
    await shelf.put("a", "", "x" * 150_000, "ß" * 3_000 + " Miete", "Miete\n" * 30_000)
    assert await shelf.names("Miete") == ["a", "a"]
    assert (await shelf.find("y" * 500)).total == 0


async def test_markup_in_documents_stays_text(shelf: Shelf) -> None:
    await shelf.put("a", 'Das <script>alert("Vertrag")</script> im Vertrag\x00 und &amp; \ud800 Ende')
    [hit] = (await shelf.find("Vertrag")).hits
    assert [piece.text for piece in hit.fragments[0] if piece.hit] == ["Vertrag", "Vertrag"]
    assert "".join(piece.text for piece in hit.fragments[0]) == hit.text
    assert "<script>" in hit.text
    assert "\x00" not in hit.text


async def test_a_fragment_shows_what_was_found_in_a_long_passage(shelf: Shelf) -> None:
    await shelf.put(
        "a", "Anfang. " + "Nichts davon. " * 60 + "Die Kaution beträgt drei Mieten. " + "Ende. " * 60
    )
    [[*pieces]] = (await shelf.find("Kaution Miete")).hits[0].fragments
    assert [piece.text for piece in pieces if piece.hit] == ["Kaution", "Mieten"]
    assert len("".join(piece.text for piece in pieces)) < 250


async def test_common_words_are_ranked_as_well_as_rare_ones(shelf: Shelf) -> None:
    """More passages have them than are looked at."""
    await shelf.put("many", *["Der Vertrag über die Wohnung gilt."] * 700)
    await shelf.put("often", "Vertrag, Vertrag und noch ein Vertrag über eine Wohnung, eine Wohnung.")
    await shelf.put("rare", "Der Vertrag über die Scheune.")
    found = await shelf.find("Vertrag Wohnung")
    assert found.hits[0].name == "often"
    assert not found.exact
    assert found.total > 500
    assert (await shelf.names("Vertrag"))[0] == "often"
    assert (await shelf.names("Vertrag Scheune"))[0] == "rare"
    pages = [await shelf.find("Vertrag", limit=50, offset=offset) for offset in (0, 50, 100)]
    seen = [(hit.document_id, hit.chunk_index) for page in pages for hit in page.hits]
    assert len(set(seen)) == len(seen) == 150
    assert pages[0].more
