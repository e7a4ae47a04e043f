"""Content-addressed blobs, each under its organisation's own prefix, on a local disk or in a cloud bucket."""

from duly.blobs.ref import BadBlobRef, BlobCorrupted, BlobError, BlobNotFound, BlobRef
from duly.blobs.store import BlobStore, Kept

__all__ = ["BadBlobRef", "BlobCorrupted", "BlobError", "BlobNotFound", "BlobRef", "BlobStore", "Kept"]
