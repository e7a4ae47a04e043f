"""What can be wrong with a request for documents."""

from __future__ import annotations

from duly.core.errors import Conflict, LimitExceeded, NotFound


class UnknownDocument(NotFound):
    """No document of that id that they may see."""

    code = "document.unknown"


class UnknownFolder(NotFound):
    """No folder of that id that they may see."""

    code = "folder.unknown"


class UnknownUpload(NotFound):
    """No upload of that id by them, or one that is finished."""

    code = "upload.unknown"


class UnknownFile(NotFound):
    """The document has no such version, or no such derived file."""

    code = "document.no_file"


class NameTaken(Conflict):
    """The folder has one of that name."""

    code = "folder.name_taken"


class FolderNotEmpty(Conflict):
    """There is still something in it."""

    code = "folder.not_empty"


class UploadIncomplete(Conflict):
    """Parts are missing, or what came is not what was announced."""

    code = "upload.incomplete"


class QuotaExceeded(LimitExceeded):
    """The org keeps as much as it may, or the document has as many versions."""

    code = "document.quota"


def unknown_document() -> UnknownDocument:
    """The same for an unknown one, another org's, and one in a folder that is closed to them."""
    return UnknownDocument("no such document", field="document_id", fix="check the id, or ask for access")


def unknown_folder(field: str = "node_id") -> UnknownFolder:
    """The same for an unknown one, another org's, and one that is closed to them."""
    return UnknownFolder("no such folder", field=field, fix="check the id, or ask for access")
