"""Quality of recognized words: F1 over bags of words, against a reference."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import pypdfium2 as pdfium
from PIL import Image, ImageChops

_WORD = re.compile(r"\w+")


def f1(found: str, reference: str) -> float:
    """Return the harmonic mean of precision and recall of the words; 1 if neither text has any."""
    a, b = (Counter(_WORD.findall(normalize("NFC", text).casefold())) for text in (found, reference))
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0


def pdftotext(program: str, path: Path, page: int | None = None) -> str:
    """Return the text that poppler's pdftotext finds in a file, or in one page of it."""
    only = ["-f", str(page), "-l", str(page)] if page else []
    done = subprocess.run([program, *only, "-enc", "UTF-8", path, "-"], capture_output=True, check=False)
    return done.stdout.decode(errors="replace").replace("\f", "\n")


def scans(path: Path, count: int, seed: int = 7) -> Iterator[tuple[int, Image.Image]]:
    """Yield some pages as scans: 200 dpi, slightly rotated, with noise."""
    chance = random.Random(seed)
    with pdfium.PdfDocument(path) as file:
        for number in sorted(chance.sample(range(1, len(file) + 1), min(count, len(file)))):
            picture = file[number - 1].render(scale=200 / 72).to_pil().convert("L")
            yield number, _scanned(picture, chance.uniform(-0.8, 0.8))


def _scanned(picture: Image.Image, angle: float) -> Image.Image:
    turned = picture.rotate(angle, resample=Image.Resampling.BICUBIC, fillcolor=255)
    noise = Image.effect_noise(turned.size, 24)
    return ImageChops.add(turned, noise, scale=1, offset=-128)
