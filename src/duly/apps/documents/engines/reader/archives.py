"""Check Office archives (ZIP files of XML) for zip bombs and attacks before they are unpacked."""

from __future__ import annotations

import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from xml.parsers import expat

from duly.apps.documents.engines.reader import media_types
from duly.apps.documents.engines.reader.models import ReadError, ReadTask, is_encrypted, nested_too_deeply

_CHUNK_SIZE = 256 * 1024
_MAX_RATIO = 400
"""Unpacked size over packed size; tables of numbers reach about 50."""
_HARMLESS_SIZE = 16 * 1024 * 1024
"""Unpacked bytes that are allowed at any ratio."""
_SLIDE_RELATIONS = re.compile(r"ppt/slides/_rels/slide(\d{1,5})\.xml\.rels")
_IMAGE_RELATION = b"relationships/image"
_IMAGE_FOLDERS = ("word/media/", "xl/media/", "Pictures/")
_OFFICE_FOLDERS = (("word/", media_types.DOCX), ("xl/", media_types.XLSX), ("ppt/", media_types.PPTX))


def check_archive(task: ReadTask, size: int) -> str:
    """Return the media type of an Office archive, or raise if it is unsupported or harmful."""
    try:
        with zipfile.ZipFile(task.path) as archive:
            _check_entries(archive, task, size)
            media_type = _detect_office(archive)
            _check_contents(archive, task, size)
            return media_type
    except NotImplementedError:
        raise ReadError("document.unsupported", "the compression of the archive is not supported") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, UnicodeError):
        raise ReadError("document.broken", "the archive is damaged") from None


def _check_entries(archive: zipfile.ZipFile, task: ReadTask, size: int) -> None:
    entries = archive.infolist()
    if len(entries) > task.limit("entries_max"):
        raise ReadError("document.bomb", f"the archive holds {len(entries):,} files")
    if sum(entry.file_size for entry in entries) > _max_unpacked(task, size):
        raise _unpacks_too_large()
    if any(entry.flag_bits & 1 for entry in entries):
        raise is_encrypted()
    for entry in entries:
        parts = entry.orig_filename.replace("\\", "/").split("/")
        if ".." in parts or not parts[0] or "\0" in entry.orig_filename or ":" in parts[0]:
            raise ReadError("document.hostile", "a file name in the archive points outside of it")


def _max_unpacked(task: ReadTask, size: int) -> int:
    return min(task.limit("unpacked_max"), max(_HARMLESS_SIZE, _MAX_RATIO * size))


def _unpacks_too_large() -> ReadError:
    return ReadError("document.bomb", "the archive unpacks to far more than its size")


def _detect_office(archive: zipfile.ZipFile) -> str:
    names = set(archive.namelist())
    if "mimetype" in names:
        declared = archive.open("mimetype").read(200).decode("ascii", "replace").strip()
        media_type = declared.removesuffix("-template")
        if media_type in (media_types.ODT, media_types.ODS, media_types.ODP):
            return media_type
    if "[Content_Types].xml" in names:
        for folder, media_type in _OFFICE_FOLDERS:
            if any(name.startswith(folder) for name in names):
                return media_type
    raise ReadError("document.unsupported", "the archive is not an Office document")


def pages_with_images(path: str, media_type: str) -> frozenset[int]:
    """Return the slides with images; of other documents page 1, as the archive does not tell the page."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if media_type == media_types.PPTX:
            slides = ((name, _SLIDE_RELATIONS.fullmatch(name)) for name in names)
            return frozenset(int(n[1]) for name, n in slides if n and _IMAGE_RELATION in archive.read(name))
    return frozenset({1} if any(name.startswith(_IMAGE_FOLDERS) for name in names) else ())


def _check_contents(archive: zipfile.ZipFile, task: ReadTask, size: int) -> None:
    """Unpack everything in chunks: the sizes that an archive declares may be wrong."""
    remaining = _max_unpacked(task, size)
    for entry in archive.infolist():
        is_xml = entry.filename.lower().endswith((".xml", ".rels"))
        checker = XmlChecker(task.limit("depth_max")) if is_xml else None
        for chunk in _unpack(archive, entry):
            remaining -= len(chunk)
            if remaining < 0:
                raise _unpacks_too_large()
            if checker:
                checker.feed(chunk)
        if checker and checker.encrypted:
            raise is_encrypted()


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    entry.file_size = sys.maxsize  # or reading stops at the declared size
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK_SIZE):
            yield chunk


class XmlChecker:
    """Rejects entities and deep nesting in streamed XML. Malformed XML is left to the reader."""

    def __init__(self, max_depth: int) -> None:
        self.encrypted = False
        """Whether the manifest of an OpenDocument file declares encryption."""
        self._max_depth = max_depth
        self._depth = 0
        self._parser: expat.XMLParserType | None = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity

    def feed(self, chunk: bytes) -> None:
        """Check the next chunk."""
        if self._parser:
            try:
                self._parser.Parse(chunk, False)
            except expat.ExpatError:
                self._parser = None

    def _start(self, name: str, _: object) -> None:
        self._depth += 1
        self.encrypted = self.encrypted or name == "manifest:encryption-data"
        if self._depth > self._max_depth:
            raise nested_too_deeply()

    def _end(self, _: str) -> None:
        self._depth -= 1

    def _entity(self, *_: object) -> None:
        raise ReadError("document.bomb", "the file declares XML entities")
