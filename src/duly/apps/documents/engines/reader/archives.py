"""Office files are ZIP archives of XML. They are looked through before anything unpacks them in earnest."""

from __future__ import annotations

import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from xml.parsers import expat

from duly.apps.documents.engines.reader import media_types as kinds
from duly.apps.documents.engines.reader.models import Task, Trouble

_PIECE = 256 * 1024
_RATIO = 400
"""How many times its size an archive may unpack to; tables of numbers come to about 50."""
_HARMLESS = 16 * 1024 * 1024
"""Bytes that an archive may unpack to whatever its size is."""
_SLIDE = re.compile(r"ppt/slides/_rels/slide(\d{1,5})\.xml\.rels")
_IMAGE = b"relationships/image"
_MEDIA = ("word/media/", "xl/media/", "Pictures/")
_FOLDERS = (("word/", kinds.DOCX), ("xl/", kinds.XLSX), ("ppt/", kinds.PPTX))


def checked(task: Task, size: int) -> str:
    """Its kind, if it is one that we read and does no harm."""
    try:
        with zipfile.ZipFile(task.path) as archive:
            _check_entries(archive, task, size)
            kind = _kind(archive)
            _check_parts(archive, task, size)
            return kind
    except NotImplementedError:
        raise Trouble("document.unsupported", "it is packed in a way that is not read") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, UnicodeError):
        raise Trouble("document.broken", "it is no whole archive") from None


def _check_entries(archive: zipfile.ZipFile, task: Task, size: int) -> None:
    entries = archive.infolist()
    if len(entries) > task.limit("entries_max"):
        raise Trouble("document.bomb", f"it packs {len(entries):,} files")
    if sum(entry.file_size for entry in entries) > _most(task, size):
        raise Trouble("document.bomb", "it unpacks to far more than it is")
    if any(entry.flag_bits & 1 for entry in entries):
        raise Trouble("document.encrypted", "it asks for a password")
    for entry in entries:
        parts = entry.orig_filename.replace("\\", "/").split("/")
        if ".." in parts or not parts[0] or "\0" in entry.orig_filename or ":" in parts[0]:
            raise Trouble("document.hostile", "a name within it leads out of the archive")


def _most(task: Task, size: int) -> int:
    return min(task.limit("unpacked_max"), max(_HARMLESS, _RATIO * size))


def _kind(archive: zipfile.ZipFile) -> str:
    names = set(archive.namelist())
    if "mimetype" in names:
        kind = archive.open("mimetype").read(200).decode("ascii", "replace").strip().removesuffix("-template")
        if kind in (kinds.ODT, kinds.ODS, kinds.ODP):
            return kind
    if "[Content_Types].xml" in names:
        for folder, kind in _FOLDERS:
            if any(name.startswith(folder) for name in names):
                return kind
    raise Trouble("document.unsupported", "it is an archive, but no document")


def pictured(path: str, kind: str) -> frozenset[int]:
    """The pages with pictures on them, as far as the archive tells: slides, or the first page of another."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if kind == kinds.PPTX:
            slides = ((name, _SLIDE.fullmatch(name)) for name in names)
            return frozenset(int(n[1]) for name, n in slides if n and _IMAGE in archive.read(name))
    return frozenset({1} if any(name.startswith(_MEDIA) for name in names) else ())


def _check_parts(archive: zipfile.ZipFile, task: Task, size: int) -> None:
    """Unpack all of it, piece by piece: what an archive says of its sizes need not be true."""
    left = _most(task, size)
    for entry in archive.infolist():
        look = Look(task.limit("depth_max")) if entry.filename.lower().endswith((".xml", ".rels")) else None
        for piece in _pieces(archive, entry):
            left -= len(piece)
            if left < 0:
                raise Trouble("document.bomb", "it unpacks to far more than it is")
            if look:
                look.feed(piece)
        if look and look.locked:
            raise Trouble("document.encrypted", "it asks for a password")


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    entry.file_size = sys.maxsize  # or else it stops where the archive says that it ends
    with archive.open(entry) as file:
        while piece := file.read(_PIECE):
            yield piece


class Look:
    """Looks through XML as it comes: no entities, and not too deep. What is malformed is left to others."""

    def __init__(self, depth: int) -> None:
        self.locked = False
        """Whether it says that something is encrypted, as OpenDocument does."""
        self._depth = depth
        self._at = 0
        self._parser: expat.XMLParserType | None = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity

    def feed(self, piece: bytes) -> None:
        """The next piece of it."""
        if self._parser:
            try:
                self._parser.Parse(piece, False)
            except expat.ExpatError:
                self._parser = None

    def _start(self, name: str, _: object) -> None:
        self._at += 1
        self.locked = self.locked or name == "manifest:encryption-data"
        if self._at > self._depth:
            raise Trouble("document.too_deep", "its parts lie too deep within one another")

    def _end(self, _: str) -> None:
        self._at -= 1

    def _entity(self, *_: object) -> None:
        raise Trouble("document.bomb", "it declares entities, which a document does not need")
