"""Errors of requests about documents."""

from __future__ import annotations

from duly.core.errors import Conflict, LimitExceeded, NotFound


class UnknownDocument(NotFound):
    """The document does not exist, or the principal may not see it."""

    code = "document.unknown"


class UnknownFolder(NotFound):
    """The folder does not exist, or the principal may not see it."""

    code = "folder.unknown"


class UnknownUpload(NotFound):
    """The upload does not exist, is finished, or belongs to another principal."""

    code = "upload.unknown"


class UnknownFile(NotFound):
    """The document has no such version or derived file."""

    code = "document.no_file"


class NameTaken(Conflict):
    """The parent folder has a folder of that name."""

    code = "folder.name_taken"


class FolderNotEmpty(Conflict):
    """The folder contains documents or folders."""

    code = "folder.not_empty"


class UploadIncomplete(Conflict):
    """Parts are missing, or the file is not the announced one."""

    code = "upload.incomplete"


class QuotaExceeded(LimitExceeded):
    """The org stores as much as it may, or the document has as many versions as it may."""

    code = "document.quota"


def unknown_document() -> UnknownDocument:
    """Return the same error for a document that does not exist, is another org's, or is hidden."""
    return UnknownDocument("no such document", field="document_id", fix="check the id, or ask for access")


def unknown_folder(field: str = "node_id") -> UnknownFolder:
    """Return the same error for a folder that does not exist, is another org's, or is hidden."""
    return UnknownFolder("no such folder", field=field, fix="check the id, or ask for access")
