"""Dates, amounts, percentages, email addresses and IBANs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.apps.analyze.modules.figures import MAX_FIGURES_PER_KIND, Figure, find_figures
from duly.apps.analyze.modules.ibans import checksum, iban_problem
from tests.apps.analyze.samples import sample

MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"


def values(found: Sequence[Figure]) -> list[str]:
    return [one.value for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("am 2026-03-17 und 2026-03-17T10:00", ["2026-03-17", "2026-03-17"]),
        ("bis 17.03.2026.", ["2026-03-17"]),
        ("vom 1. 3. 2026", ["2026-03-01"]),
        ("01.01.2026-31.12.2026", ["2026-01-01", "2026-12-31"]),
        ("am 17.03.26, am 5.4.69, am 28.2.70", ["2026-03-17", "2069-04-05", "1970-02-28"]),
        ("Vom 3. bis 5. Juni 2026; vom 3.6. bis 5.6.26", ["2026-06-03", "2026-06-05"] * 2),
        (
            "28.12. bis 3.1.2027, June 30 to July 2, 2026",
            ["2026-12-28", "2027-01-03", "2026-06-30", "2026-07-02"],
        ),
        ("June 3\u20135, 2026 or 3 to 5 June 2026", ["2026-06-03", "2026-06-05"] * 2),
        ("Seite 3 bis 5. Juni 2026, Room 4 - 5 June 2026, 7. bis 5. Juni 2026", ["2026-06-05"] * 3),
        ("Version vom 1.2.2024, v. 1.2.2024", ["2024-02-01"] * 2),
        (
            "Version 1.2.2024, Kapitel 3.4.2026, Ziffern 3.4.2026, Section: 1.2.2024, v 1.2.2024, 1.2.24-rc1",
            [],
        ),
        ("den 17. März 2026", ["2026-03-17"]),
        ("17.\nMärz 2026", ["2026-03-17"]),
        ("1. Jänner 2026, 3. Mrz. 2026, 5. Okt 2026", ["2026-01-01", "2026-03-03", "2026-10-05"]),
        ("17 March 2026 and the 3rd of May 2026", ["2026-03-17", "2026-05-03"]),
        ("March 17, 2026; Sept. 3rd 2026; DEC 1, 2026", ["2026-03-17", "2026-09-03", "2026-12-01"]),
        ("im März 2026, in May 2026", ["2026-03", "2026-05"]),
        ("03/17/2026 or 17/03/2026", ["2026-03-17", "2026-03-17"]),
        ("29.02.2024", ["2024-02-29"]),
        ("Version 1.2.34, 10.12.20.1, v17.03.2026, 99.99.2026, 17.3., 2026-13-40, Nr. 1-2026-03-17", []),
    ],
)
def test_dates_are_found_and_normalized(text: str, expected: list[str]) -> None:
    assert values(find_figures(text).dates.items) == expected


def test_impossible_and_ambiguous_dates_have_a_problem() -> None:
    impossible, either, same = find_figures("31.02.2026, 03/04/2026, 05/05/2026").dates.items
    assert (impossible.value, impossible.problem) == ("2026-02-31", "no calendar has this day")
    assert (either.value, either.problem) == ("2026-04-03", "day and month may be the other way round")
    assert same.problem is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234,56 €", ["1234.56 EUR"]),
        ("EUR 1,234.56", ["1234.56 EUR"]),
        ("EUR1.234,56", ["1234.56 EUR"]),
        ("$ 99 und US$5.50, 7 US-Dollar", ["99 USD", "5.50 USD", "7 USD"]),
        ("CHF 1'234.50, £12, 3 pounds, ¥500", ["1234.50 CHF", "12 GBP", "3 GBP", "500 JPY"]),
        ("1 234 567,89 €", ["1234567.89 EUR"]),
        ("im Jahr 2026 100 €", ["100 EUR"]),
        ("1.234 €, 1,234 €, 0,125 €, 12,5 Euro", ["1234 EUR", "1234 EUR", "0.125 EUR", "12.5 EUR"]),
        ("99,- €, 99,\u2013 €", ["99 EUR", "99 EUR"]),
        (
            "£1.2m, $3M, €4mn, $2bn, €3k",
            ["1200000 GBP", "3000000 USD", "4000000 EUR", "2000000000 USD", "3000 EUR"],
        ),
        ("Das sind 1 Billion Euro", ["1000000000000 EUR"]),
        ("this is 1 Billion euros", ["1000000000 EUR"]),
        ("2 Billionen Euro, 7 Mia. Franken", ["2000000000000 EUR", "7000000000 CHF"]),
        (
            "2,5 Mill. Euro, 3 TEUR, T€ 4, Mio. EUR 3,5",
            ["2500000 EUR", "3000 EUR", "4000 EUR", "3500000 EUR"],
        ),
        ("10 Cent, 5 Euro-Cent, 50 pence", ["0.10 EUR", "0.05 EUR", "0.50 GBP"]),
        ("$3-4m, 5-Millionen-Euro-Projekt, $5-million", ["3000000 USD", "5000000 EUR", "5000000 USD"]),
        (
            "2,5 Mio. €, € 1.2 million, 3 Mrd. Euro, $5k",
            ["2500000 EUR", "1200000 EUR", "3000000000 EUR", "5000 USD"],
        ),
        ("-5 €, \u22125,10 €, € -7, -$3, 10-20 €", ["-5 EUR", "-5.10 EUR", "-7 EUR", "-3 USD", "20 EUR"]),
        ("5 € 3 Stück", ["5 EUR"]),
        ("17.03.2026 €, 1.2.3.4 €, 5 Europäer, 7 Dollarkurse, §3", []),
    ],
)
def test_amounts_are_decimals_with_their_currency(text: str, expected: list[str]) -> None:
    assert [f"{one.value} {one.currency}" for one in find_figures(text).money.items] == expected


@pytest.mark.parametrize(
    ("text", "value", "problem"),
    [
        ("$3x", "3", "the letters behind it are not understood"),
        ("für € 3 M. Müller", "3000000", "the letters behind it are not understood"),
        ("1 Billion Euro", "1000000000000", "German and English mean different numbers by this word"),
        ("a fee of 10 cents", "0.10", "the currency is not stated"),
        ("Das kostet 1,500 EUR", "1500", "the mark may be for thousands or for decimals"),
        ("this is 1.500 EUR", "1500", "the mark may be for thousands or for decimals"),
        ("Das kostet 1.500 EUR", "1500", None),
        ("Der Preis ist so.\n\nAnd this is 1,500 EUR", "1500", None),
    ],
)
def test_ambiguous_amounts_have_a_problem(text: str, value: str, problem: str | None) -> None:
    [found] = find_figures(text).money.items
    assert (found.value, found.problem) == (value, problem)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("19 %, 2,5%, 8 percent, 4,5 Prozent", ["19", "2.5", "8", "4.5"]),
        ("1,234 % und -3 % und 5‰", ["1.234", "-3", "0.5"]),
        ("3 v. H., 7 per cent", ["3", "7"]),
        ("5 Prozentpunkte", []),
    ],
)
def test_percentages_are_decimals(text: str, expected: list[str]) -> None:
    assert values(find_figures(text).percentages.items) == expected


def test_email_addresses_are_found_completely() -> None:
    text = (
        "Mail an Max.Muster+x@Firma-Süd.Example.COM, <info@müller.de>; nicht @home, a@b, a@b.c1 oder x@-y.de"
    )
    assert values(find_figures(text).emails.items) == ["Max.Muster+x@firma-süd.example.com", "info@müller.de"]


@pytest.mark.parametrize(
    ("text", "value", "wrong"),
    [
        ("DE89 3704 0044 0532 0130 00 BIC COBADEFF", "DE89370400440532013000", None),
        ("IBAN:DE89370400440532013000.", "DE89370400440532013000", None),
        ("GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819", None),
        ("iban: gb29 nwbk 6016 1331 9268 19", "GB29NWBK60161331926819", None),
        ("NO93 8601 1117 947", "NO9386011117947", None),
        ("DE89 3704 0044 0532 0130 01", "DE89370400440532013001", "the check digits are wrong"),
        ("DE89 3704 0044 0532 0130", "DE893704004405320130", "20 characters, DE has 22"),
        ("XX89 3704 0044 0532 0130 00", "XX89370400440532013000", "no country has this code"),
    ],
)
def test_ibans_are_checked_and_invalid_ones_have_a_problem(text: str, value: str, wrong: str | None) -> None:
    [found] = find_figures(text).ibans.items
    assert (found.value, found.problem) == (value, wrong)
    assert (
        find_figures("Auftrag AB12 3456, Raum DE12, PO12 AB, de89 3704 0044 0532 0130 01").ibans.items == ()
    )


@given(
    st.sampled_from(["DE", "AT", "GB", "NO", "MT"]),
    st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=40),
)
def test_exactly_one_pair_of_check_digits_is_valid(country: str, account: str) -> None:
    length = {"DE": 22, "AT": 20, "GB": 22, "NO": 15, "MT": 31}[country]
    account = account[: length - 4]
    right = 98 - checksum(f"{country}00{account}")
    good = f"{country}{right:02}{account}"
    assert iban_problem(good) is None
    assert values(find_figures(f"Konto {good}, bitte").ibans.items) == [good]
    for other in range(2, 99):
        assert (iban_problem(f"{country}{other:02}{account}") is None) == (other == right)


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2199, 12, 31)))
def test_all_notations_of_a_date_give_the_same_value(day: date) -> None:
    months = MONTHS.split()
    written = [
        day.isoformat(),
        f"{day.day}.{day.month}.{day.year}",
        f"{day.day}. {months[day.month - 1]} {day.year}",
        f"{day.strftime('%B')} {day.day}, {day.year}",
    ]
    found = find_figures("; ".join(written))
    assert values(found.dates.items) == [day.isoformat()] * 4
    assert found.money.total == found.percentages.total == 0


@given(st.decimals(min_value=0, max_value=10**9, places=2))
def test_german_and_english_notations_of_an_amount_give_the_same_value(amount: Decimal) -> None:
    english = f"{amount:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert values(find_figures(f"{german} € oder EUR {english}").money.items) == [f"{amount:.2f}"] * 2


def test_a_figure_has_its_offset_and_context() -> None:
    text = sample("rechnung-mail.txt")
    found = find_figures(text)
    for kind, listed in found:
        for one in listed.items:
            assert " ".join(text[one.offset :].split()).startswith(one.text), kind
            assert one.text in one.around
            assert len(one.around) < 140
    due = next(one for one in found.dates.items if one.value == "2026-03-26")
    assert due.around == "… Sie den Rechnungsbetrag bis zum 26.03.2026 auf unser Konto DE02 1203 0000 0000 …"
    assert [one.problem for one in found.ibans.items] == [None, "the check digits are wrong"]


def test_figures_above_the_limit_are_counted() -> None:
    found = find_figures("5 % " * 1000).percentages
    assert (len(found.items), found.left_out, found.total) == (
        MAX_FIGURES_PER_KIND,
        1000 - MAX_FIGURES_PER_KIND,
        1000,
    )
