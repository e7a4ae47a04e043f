"""ReaderLimits on reading one file."""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1024 * 1024


@dataclass(frozen=True)
class ReaderLimits:
    """What reading one file may take. A file that exceeds a limit fails with the error code of that limit."""

    memory: int = 1024 * _MB
    """Bytes of memory of the reader process."""
    seconds_open: float = 120.0
    """Until the pages are counted; a format without pages is read completely in this time."""
    seconds_page: float = 60.0
    """From one page to the next."""
    bytes_max: int = 256 * _MB
    unpacked_max: int = 512 * _MB
    """Bytes of all files in an archive."""
    entries_max: int = 10_000
    """Files in an archive."""
    pages_max: int = 5_000
    text_max: int = 10_000_000
    """Characters of a page, and of a file without pages."""
    whole_text_max: int = 30_000_000
    """Characters of all pages together."""
    pixels_max: int = 120_000_000
    """Pixels of one image."""
    depth_max: int = 400
    """Levels of nested elements."""
    deaths_max: int = 6
    """Crashes of the reader process after which the file fails, not only a page."""
