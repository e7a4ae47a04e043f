"""Synthetic documents from the templates of `samples.txt`; every seed gives others."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import NamedTuple

_TEXT = (Path(__file__).parent / "samples.txt").read_text(encoding="utf-8")
_SLOT = re.compile(r"\{([^{}]*)\}")
_WORDS = {
    "person": "Erika Mustermann|Jörg Petersen|Ayşe Yılmaz|Thomas Gärtner|Hannah Price|Oliver Stone",  # noqa: RUF001
    "firm": "Nordlicht Haustechnik GmbH|Bäckerei Öztürk|Elbtal Verwaltung KG|Harbour & Sons Ltd|Kranich AG",
    "street": "Lindenallee 12|Am Alten Markt 3|Kaiserstraße 114|14 Mill Lane|7 Church Road|Gartenweg 5b",
    "town": "20095 Hamburg|01067 Dresden|80331 München|Leeds LS1 4AP|Bristol BS1 5TR|50667 Köln",
    "risk": "Hausrat|Privathaftpflicht|Wohngebäude|Rechtsschutz|Unfall",
    "head": "{firm} · {street} · {town}\n\n{person}\n{street}\n{town}\n\n{date}",
    "bank": "Bank: Sparkasse Elbtal, IBAN DE{number}{number}, BIC OSDDDE81XXX",
    "smalltalk_de": "Bei Fragen erreichen Sie uns montags bis freitags von 9 bis 16 Uhr."
    "|Bitte geben Sie bei Rückfragen stets die oben genannte Nummer an."
    "|Dieses Schreiben wurde maschinell erstellt und ist ohne Unterschrift gültig."
    "|Wir weisen darauf hin, dass sich unsere Telefonnummer geändert hat.",
    "smalltalk_en": "If you have any questions please call us on weekdays between 9 and 5."
    "|Please quote the number above in all correspondence."
    "|Our offices will be closed on public holidays.|You can also reach us online at any time.",
    "money": "{number},{digit}{digit} €",
}


class Sample(NamedTuple):
    doc_type: str
    language: str
    pages: tuple[str, ...]
    name: str = "scan_0042.pdf"


def samples(count: int, seed: int = 1) -> list[Sample]:
    """Return a number of documents of each type and language."""
    templates: dict[tuple[str, str], list[str]] = {}
    for section in _TEXT.removeprefix("## ").split("\n## "):
        title, _, body = section.partition("\n")
        doc_type, language = title.split()
        templates.setdefault((doc_type, language), []).append(body)
    return [
        Sample(*key, tuple(_filled(bodies[number % len(bodies)], Random(f"{seed}/{key}/{number}"))))
        for key, bodies in templates.items()
        for number in range(count)
    ]


def _filled(body: str, random: Random) -> list[str]:
    while _SLOT.search(body):
        body = _SLOT.sub(lambda slot: _choice(slot[1], random), body)
    return body.split("\n---\n")


def _choice(slot: str, random: Random) -> str:
    match slot:
        case "digit":
            return str(random.randint(1, 9))
        case "number":
            return str(random.randint(100, 99_999))
        case "year":
            return str(random.randint(2018, 2026))
        case "date":
            return f"{random.randint(1, 28):02}.{random.randint(1, 12):02}.{random.randint(2018, 2026)}"
    return random.choice(_WORDS.get(slot, slot).split("|"))
