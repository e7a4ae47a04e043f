"""Generated files: PDF with text, with images, and empty."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas


def pdf(pages: Sequence[str | None]) -> bytes:
    """A page for each text; None is a page that has only a picture."""
    made = io.BytesIO()
    canvas = Canvas(made, pagesize=A4, invariant=1)
    for text in pages:
        if text is None:
            canvas.drawImage(ImageReader(Image.new("RGB", (200, 200), "grey")), 50, 400)
        else:
            for line, words in enumerate(text.split("\n")):
                canvas.drawString(60, 780 - 16 * line, words)
        canvas.showPage()
    canvas.save()
    return made.getvalue()
