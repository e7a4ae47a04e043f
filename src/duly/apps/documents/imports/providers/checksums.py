"""The checksums of the providers, computed incrementally."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Protocol

_DROPBOX_BLOCK_SIZE = 4 * 1024 * 1024


class Checksum(Protocol):
    """A checksum over a stream of bytes."""

    def update(self, data: bytes) -> None:
        """Add bytes."""

    def text(self) -> str:
        """Return the checksum as the provider writes it."""


class Md5:
    """Google Drive's `md5Checksum`."""

    def __init__(self) -> None:
        self._digest = hashlib.md5(usedforsecurity=False)

    def update(self, data: bytes) -> None:
        """See `Checksum`."""
        self._digest.update(data)

    def text(self) -> str:
        """See `Checksum`."""
        return self._digest.hexdigest()


class ContentHash:
    """Dropbox's `content_hash`: the hash of the hashes of blocks of 4 MiB."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._block = hashlib.sha256()
        self._room = _DROPBOX_BLOCK_SIZE

    def update(self, data: bytes) -> None:
        """See `Checksum`."""
        rest = memoryview(data)
        while rest:
            part, rest = rest[: self._room], rest[self._room :]
            self._block.update(part)
            self._room -= len(part)
            if self._room == 0:
                self._digest.update(self._block.digest())
                self._block, self._room = hashlib.sha256(), _DROPBOX_BLOCK_SIZE

    def text(self) -> str:
        """See `Checksum`."""
        digest = self._digest.copy()
        if self._room < _DROPBOX_BLOCK_SIZE:
            digest.update(self._block.digest())
        return digest.hexdigest()


class QuickXor:
    """Microsoft's `quickXorHash`: each byte is rotated by 11 more bits, in a ring of 160 bits.

    After 160 bytes the rotations repeat. So the bytes at the same offset modulo 160 are combined first, which
    is fast with long integers, and only 160 bytes are rotated.
    """

    _BITS, _SHIFT = 160, 11

    def __init__(self) -> None:
        self._combined = 0
        self._size = 0

    def update(self, data: bytes) -> None:
        """See `Checksum`."""
        if not data:
            return
        offset = self._size % self._BITS
        self._size += len(data)
        value, length = int.from_bytes(data, "little") << 8 * offset, len(data) + offset
        while length > self._BITS:
            rows = -(-length // self._BITS)
            half = (rows + 1) // 2 * self._BITS
            value, length = (value >> 8 * half) ^ (value & ((1 << 8 * half) - 1)), half
        self._combined ^= value

    def text(self) -> str:
        """See `Checksum`."""
        ring = 0
        for position, byte in enumerate(self._combined.to_bytes(self._BITS, "little")):
            ring ^= byte << (position * self._SHIFT) % self._BITS
        ring = (ring >> self._BITS) ^ (ring & ((1 << self._BITS) - 1))
        ring ^= self._size << (self._BITS - 64)
        return b64encode(ring.to_bytes(self._BITS // 8, "little")).decode()
