"""How much a file may cost before it is given up."""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1024 * 1024


@dataclass(frozen=True)
class ReaderLimits:
    """What reading one file may take. Whatever a file asks beyond it, it ends with a code that says which."""

    memory: int = 1024 * _MB
    """Bytes that the process which reads it may hold."""
    seconds_open: float = 120.0
    """Until its pages are counted; what has no pages is read whole in this time."""
    seconds_page: float = 60.0
    """From one page to the next."""
    bytes_max: int = 256 * _MB
    unpacked_max: int = 512 * _MB
    """Bytes of all that is packed within it."""
    entries_max: int = 10_000
    """Files that are packed within it."""
    pages_max: int = 5_000
    text_max: int = 10_000_000
    """Characters of a page, and of a file that has no pages."""
    whole_text_max: int = 30_000_000
    """Characters of all pages together."""
    pixels_max: int = 120_000_000
    """Of one picture."""
    depth_max: int = 400
    """How deep its parts may lie within one another."""
    deaths_max: int = 6
    """How often the process may die before the file is at fault, not a page of it."""
