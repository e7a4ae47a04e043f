"""Reads files of all kinds into pages of elements, each file in a process of its own.

`open_file` is the door. `inside` is what runs in that process; it knows nothing of the rest of Duly.
"""

from duly.apps.documents.engines.error_codes import CODES, WARNINGS, sentence
from duly.apps.documents.engines.file_reader import Reader
from duly.apps.documents.engines.limits import ReaderLimits
from duly.apps.documents.engines.open import open_file
from duly.apps.documents.engines.unstructured import Unavailable, Unstructured

__all__ = [
    "CODES",
    "WARNINGS",
    "Reader",
    "ReaderLimits",
    "Unavailable",
    "Unstructured",
    "open_file",
    "sentence",
]
