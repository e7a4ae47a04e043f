"""Find IBANs, and check their length by country and their check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from duly.apps.analyze.text import scan
from duly.apps.analyze.values import FigureMatch

_MIN_LENGTH = 15
_COUNTRIES = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20
EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30
KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24
PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29
VA22 VG24 XK20 YE30
"""
_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _COUNTRIES.split()}
_HEAD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?=[ \u00a0]?[A-Za-z0-9]{2})")
# Digits in groups of four, as only IBANs are written.
_FOURS = re.compile(
    r"[A-Z]{2}[0-9]{2}(?>(?:[ \u00a0]?[0-9]{4}){2,7}(?:[ \u00a0]?[0-9]{1,3})?)(?![A-Za-z0-9])"
)


def find_ibans(text: str) -> Iterator[FigureMatch]:
    """Yield all IBANs; an invalid one with its problem, if it is written in capitals."""
    end = 0
    for head in scan(_HEAD, text):
        match = _match_iban(text, head) if head.start() >= end else None
        if match is None:
            continue
        end = match.end()
        value = _compact(match[0])
        yield FigureMatch(match.start(), end, value, problem=iban_problem(value))


def _match_iban(text: str, head: re.Match[str]) -> re.Match[str] | None:
    start, country = head.start(), head[0][:2]
    match = _match_length(country, text, start) or _FOURS.match(text, start)
    if match is not None and len(_compact(match[0])) >= _MIN_LENGTH:
        return match
    # Nearly any text could match in small letters: only a valid IBAN is one.
    match = _match_length(country.upper(), text, start, re.IGNORECASE)
    return match if match is not None and iban_problem(_compact(match[0])) is None else None


def iban_problem(iban: str) -> str | None:
    """Return what is wrong with a compact IBAN; None if it is valid."""
    length = _LENGTHS.get(iban[:2])
    if length is None:
        return "no country has this code"
    if len(iban) != length:
        return f"{len(iban)} characters, {iban[:2]} has {length}"
    return None if checksum(iban) == 1 else "the check digits are wrong"


def checksum(iban: str) -> int:
    """Return the remainder of ISO 13616: 1 for a valid IBAN."""
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97


def _match_length(country: str, text: str, start: int, flags: int = 0) -> re.Match[str] | None:
    return _length_pattern(_LENGTHS[country], flags).match(text, start) if country in _LENGTHS else None


@cache
def _length_pattern(length: int, flags: int) -> re.Pattern[str]:
    return re.compile(rf"(?:[A-Z0-9][ \u00a0]?){{{length - 1}}}[A-Z0-9](?![A-Za-z0-9])", flags | re.ASCII)


def _compact(written: str) -> str:
    return written.replace(" ", "").replace("\u00a0", "").upper()
