"""Content-addressed blobs, each under the prefix of its org, on a local disk or in a cloud bucket."""

from duly.blobs.ref import BadBlobRef, BlobCorrupted, BlobError, BlobNotFound, BlobRef
from duly.blobs.store import BlobStore, TenantFile

__all__ = ["BadBlobRef", "BlobCorrupted", "BlobError", "BlobNotFound", "BlobRef", "BlobStore", "TenantFile"]
