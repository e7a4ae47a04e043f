"""Extraction engines: read files of many formats into pages of elements.

`open_file` opens a file with an engine. A child process reads each file: the package `reader` runs in it, and
`reader_process` starts, limits and kills it. `unstructured` is the client of the one remote engine.
"""

from duly.apps.documents.engines.error_codes import CODES, WARNINGS
from duly.apps.documents.engines.file_reader import FileReader
from duly.apps.documents.engines.limits import ReaderLimits
from duly.apps.documents.engines.open import open_file
from duly.apps.documents.engines.unstructured import RemoteUnavailable, Unstructured

__all__ = [
    "CODES",
    "WARNINGS",
    "FileReader",
    "ReaderLimits",
    "RemoteUnavailable",
    "Unstructured",
    "open_file",
]
