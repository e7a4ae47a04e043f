"""Differences of two versions, as people read them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from duly.features.audit.diff import compare, mask_secrets

Version = dict[str, Any]


def texts(before: Version, after: Version, **options: Any) -> list[str]:
    return [change.text for change in compare(before, after, **options).changes]


CASES: dict[str, tuple[Version, Version, list[str], list[str]]] = {
    "a number": (
        {"price": 1234.5},
        {"price": 99999},
        ["price: 1,234.5 → 99,999"],
        ["price: 1.234,5 → 99.999"],
    ),
    "a date": (
        {"due_on": "2026-11-05"},
        {"due_on": None},
        ["due on: 5 Nov 2026 → (empty)"],
        ["due on: 05.11.2026 → (leer)"],
    ),
    "a moment": (
        {"at": "2026-11-15T10:00:00Z"},
        {"at": "2026-11-15T11:30:00+01:00"},
        ["at: 15 Nov 2026, 10:00 UTC → 15 Nov 2026, 11:30 +01:00"],
        ["at: 15.11.2026, 10:00 UTC → 15.11.2026, 11:30 +01:00"],
    ),
    "one is not yes": ({"done": 1}, {"done": True}, ["done: 1 → yes"], ["done: 1 → ja"]),
    "inner fields": (
        {"address": {"city": "Bonn", "zip": "1"}},
        {"address": {"city": "Berlin", "floor": 2}},
        ["address / city: “Bonn” → “Berlin”", "address / zip: removed “1”", "address / floor: added 2"],
        [
            "address / city: „Bonn“ → „Berlin“",
            "address / zip: „1“ entfernt",
            "address / floor: 2 hinzugefügt",
        ],
    ),
    "items with ids": (
        {"items": [{"id": 1, "name": "Nut", "n": 1}, {"id": 2, "name": "Nail"}, {"id": 3, "name": "Glue"}]},
        {"items": [{"id": 3, "name": "Glue"}, {"id": 1, "name": "Nut", "n": 5}, {"id": 4, "name": "Tape"}]},
        [
            "items: removed “Nail”",
            "items / “Nut” / n: 1 → 5",
            "items: added “Tape”",
            "items: “Glue” moved from place 3 to 1",
        ],
        [
            "items: „Nail“ entfernt",
            "items / „Nut“ / n: 1 → 5",
            "items: „Tape“ hinzugefügt",
            "items: „Glue“ von Stelle 3 nach Stelle 1 verschoben",
        ],
    ),
    "plain items": (
        {"tags": ["a", "b", "c"]},
        {"tags": ["c", "a", "d"]},
        ["tags: removed “b”", "tags: added “d”", "tags: “c” moved from place 3 to 1"],
        ["tags: „b“ entfernt", "tags: „d“ hinzugefügt", "tags: „c“ von Stelle 3 nach Stelle 1 verschoben"],
    ),
    "items that only their places tell apart": (
        {"grid": [[1], [1]]},
        {"grid": [[1], [2], [3]]},
        ["grid / #2: removed 1", "grid / #2: added 2", "grid: added #3"],
        ["grid / #2: 1 entfernt", "grid / #2: 2 hinzugefügt", "grid: #3 hinzugefügt"],
    ),
    "a field becomes an object": (
        {"who": "Ada"},
        {"who": {"first": "Ada"}},
        ['who: “Ada” → {"first": "Ada"}'],
        ['who: „Ada“ → {"first": "Ada"}'],
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_differences_are_described_in_english_and_german(what: str) -> None:
    before, after, english, german = CASES[what]
    assert texts(before, after) == english
    assert texts(before, after, locale="de-AT") == german
    assert texts(after, after) == texts(before, before) == []


def test_a_difference_has_path_and_values_and_fields_have_custom_labels() -> None:
    names = {"price": "Preis", "items.price": "Stückpreis"}
    before = {"price": 1, "items": [{"id": "a", "price": 2}]}
    after = {"price": 1.5, "items": [{"id": "a", "price": 3}]}
    found = compare(before, after, locale="de", names=names)
    assert [(c.path, c.kind, c.before, c.after) for c in found.changes] == [
        ("price", "changed", 1, 1.5),
        ("items[a].price", "changed", 2, 3),
    ]
    assert [c.text for c in found.changes] == ["Preis: 1 → 1,5", "items / „a“ / Stückpreis: 2 → 3"]
    assert found.summary == "2 Änderungen: Preis, items"
    assert compare(before, before).summary == "nothing changed"
    assert compare({"a": 1}, {"a": 2}).summary == "a: 1 → 2"


WORDS = [f"w{n}" for n in range(200)]


def test_a_long_text_is_described_by_its_changed_passages() -> None:
    changed = [*WORDS]
    changed[50] = "new"
    changed[150:153] = []
    [text] = texts({"body": " ".join(WORDS)}, {"body": " ".join(changed)})
    assert text == (
        "body: “… w47 w48 w49 w50 w51 w52 w53 …” → “… w47 w48 w49 new w51 w52 w53 …”; "
        "“… w147 w148 w149 w150 w151 w152 w153 w154 w155 …” → “… w147 w148 w149 w153 w154 w155 …”"
    )
    every_tenth = ["x" if n % 10 == 0 else word for n, word in enumerate(WORDS)]
    [text] = texts({"body": " ".join(WORDS)}, {"body": " ".join(every_tenth)}, locale="de")
    assert text.endswith("; und 17 weitere")


def test_secrets_and_personal_data_are_reported_as_changed_without_values() -> None:
    before = {
        "password": "hunter2", "api_token": "t", "birthday": "1990-01-01", "mail": "ada@example.com",
        "note": "call +49 30 1234567 about it", "hook": "https://u:geheim@example.com",
        "same_secret": "s3cr3t",
        "people": ["ada@example.com", "bob@example.com"], "by": {"eve@example.com": 1},
    }  # fmt: skip
    after = {
        **before,
        "password": "hunter3", "birthday": "1991-01-01", "mail": "bob@example.com", "api_token": "",
        "note": "call +49 30 7654321 about it", "hook": "https://u:heimlich@example.com",
        "people": ["bob@example.com"], "by": {"eve@example.com": 2},
    }  # fmt: skip
    versions = mask_secrets(before, after, hide=["birthday"])
    assert not any(
        secret in json.dumps(versions) for secret in ("hunter", "1990", "geheim", "heimlich", "s3cr3t")
    )
    found = compare(*versions)
    assert {c.path for c in found.changes} == set(before) - {"same_secret", "people", "by"} | {
        "people[[email]]",
        "by.[email]",
    }
    everything = json.dumps(found.detail())
    for secret in ("hunter", "199", "ada@", "bob@", "eve@", "12345", "76543", "geheim", "heimlich"):
        assert secret not in everything, secret
    assert "password: changed (not shown)" in everything


def test_the_result_is_bounded_however_much_was_changed() -> None:
    many = {f"field_{n}": n for n in range(5_000)}
    found = compare(many, {name: n + 1 for name, n in many.items()})
    assert (len(found.changes), found.more) == (100, 4_900)
    assert found.summary.endswith("field 4, and 4995 more")
    long = {"text": "word " * 40_000, "list": [{"x": "y" * 5_000}] * 20, "k" * 5_000: 1}
    began = time.perf_counter()
    found = compare(long, {"text": "other " * 40_000, "list": []})
    assert time.perf_counter() - began < 5
    assert len(json.dumps(found.detail())) < 200_000
    assert found.changes[0].text.startswith("text: text changed, 40,000 → 40,000 words: “word word")


@pytest.mark.timeout(20)
def test_texts_made_to_be_slow_are_compared_within_bounds() -> None:
    """Each of these took minutes: words that match nearly everywhere, and long names of many fields."""
    was, now = " ".join(["a", "x"] * 950), " ".join(["a", "y"] * 950)
    [change] = compare({"f": f"same {was}"}, {"f": f"same {now}"}).changes
    assert change.text == (
        f"f: text changed, 1,901 → 1,901 words: “same{' a x' * 5} a …” → “same{' a y' * 5} a …”"
    )
    short, changed = " ".join(["a", "x"] * 90), " ".join(["a", "y"] * 90)
    many = compare(dict.fromkeys(map(str, range(100)), short), dict.fromkeys(map(str, range(100)), changed))
    assert [change.text.partition(":")[2][:5] for change in many.changes] == [" “a x"] * 11 + [" text"] * 89
    long = "-----BEGIN A " * 2_400
    fields = dict.fromkeys(map(str, range(9_000)), 1)
    found = compare({long: {long: {long: {long: fields}}}}, {long: {long: {long: {long: {}}}}})
    assert (len(found.changes), found.more) == (100, 8_900)
    [space] = texts({"f": "a \n b"}, {"f": "a\nb"})
    assert space == "f: text changed, 2 → 2 words: “a b” → “a b”"
