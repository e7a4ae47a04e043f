"""References of blobs, and their errors."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self
from uuid import UUID

# One spelling per blob: lowercase hex, canonical UUID, no leading zeros, a size that fits a bigint.
_REF = re.compile(
    r"blob:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([0-9a-f]{64})/(0|[1-9][0-9]{0,17})",
)


@dataclass(frozen=True, slots=True)
class BlobRef:
    """The org, content hash and size of a blob: everything needed to find and to verify it."""

    org_id: UUID
    sha256: str
    size: int

    def __post_init__(self) -> None:
        # The hash becomes part of a storage path, so a malformed one must not exist even briefly.
        if not _REF.fullmatch(str(self)):
            raise BadBlobRef(self)

    def __str__(self) -> str:
        return f"blob:{self.org_id}/{self.sha256}/{self.size}"

    @property
    def key(self) -> str:
        """The key of the blob in the store."""
        return f"org/{self.org_id}/{self.sha256[:2]}/{self.sha256}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `str(ref)`; raise BadBlobRef for any other text."""
        match = _REF.fullmatch(text)
        if match is None:
            raise BadBlobRef(text)
        org_id, sha256, size = match.groups()
        return cls(UUID(org_id), sha256, int(size))


class BlobError(Exception):
    """The base class of the errors of blobs; `args[0]` is the reference as text."""

    explanation: ClassVar[str] = "{ref}: blob storage failed"

    def __init__(self, ref: BlobRef | str) -> None:
        super().__init__(str(ref))

    def __str__(self) -> str:
        return self.explanation.format(ref=self.args[0])


class BadBlobRef(BlobError, ValueError):
    """The text or the parts do not form a blob reference."""

    explanation = (
        "{ref!r} is not a blob reference; pass what str(BlobRef) wrote: "
        "'blob:<organisation uuid>/<sha256 in lowercase hex>/<size in bytes>'"
    )


class BlobNotFound(BlobError):
    """The reader's org has no such blob, whether or not another org has it."""

    explanation = "{ref} was not found; check the reference and the organisation, or put the content again"


class BlobCorrupted(BlobError):
    """The stored bytes do not match the reference."""

    explanation = (
        "{ref} does not match its stored bytes; restore it from a backup, "
        "or delete it and put the original content again"
    )
