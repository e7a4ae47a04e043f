"""`duly docs`: all its commands, in the order of its help."""

from duly.apps.documents.command_group import docs

from duly.apps.documents.uploads import commands as uploads  # isort: skip
from duly.apps.documents.library import commands as library  # isort: skip
from duly.apps.documents.folders import commands as folders  # isort: skip
from duly.apps.documents.search import commands as search  # isort: skip
from duly.apps.documents.extraction import commands as extraction  # isort: skip
from duly.apps.documents.classification import commands as classification  # isort: skip
from duly.apps.documents.imports import commands as imports  # isort: skip
from duly.apps.documents.exports import commands as exports  # isort: skip

__all__ = [
    "classification",
    "docs",
    "exports",
    "extraction",
    "folders",
    "imports",
    "library",
    "search",
    "uploads",
]
