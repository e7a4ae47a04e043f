"""Reads files of all kinds into pages of elements, each file in a process of its own.

`open_file` is the door. `inside` is what runs in that process; it knows nothing of the rest of Duly.
"""

from duly.documents.engines.codes import CODES, WARNINGS, sentence
from duly.documents.engines.limits import Limits
from duly.documents.engines.opening import open_file
from duly.documents.engines.reader import Reader
from duly.documents.engines.remote import Unavailable, Unstructured

__all__ = ["CODES", "WARNINGS", "Limits", "Reader", "Unavailable", "Unstructured", "open_file", "sentence"]
