"""The checksums of the providers, computed as the bytes come in."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Protocol

_BLOCK = 4 * 1024 * 1024


class Checksum(Protocol):
    """A sum over bytes."""

    def update(self, data: bytes) -> None:
        """More of them."""

    def text(self) -> str:
        """As the provider writes it."""


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
        self._whole = hashlib.sha256()
        self._block = hashlib.sha256()
        self._room = _BLOCK

    def update(self, data: bytes) -> None:
        """See `Checksum`."""
        rest = memoryview(data)
        while rest:
            part, rest = rest[: self._room], rest[self._room :]
            self._block.update(part)
            self._room -= len(part)
            if self._room == 0:
                self._whole.update(self._block.digest())
                self._block, self._room = hashlib.sha256(), _BLOCK

    def text(self) -> str:
        """See `Checksum`."""
        whole = self._whole.copy()
        if self._room < _BLOCK:
            whole.update(self._block.digest())
        return whole.hexdigest()


class QuickXor:
    """Microsoft's `quickXorHash`: each byte is turned 11 bits further than the one before, in a ring of 160.

    After 160 bytes they fall on the same places again. So they are first laid over one another, which long
    integers do quickly, and only 160 are turned.
    """

    _BITS, _SHIFT = 160, 11

    def __init__(self) -> None:
        self._laid = 0
        self._size = 0

    def update(self, data: bytes) -> None:
        """See `Checksum`."""
        if not data:
            return
        at = self._size % self._BITS
        self._size += len(data)
        value, length = int.from_bytes(data, "little") << 8 * at, len(data) + at
        while length > self._BITS:
            rows = -(-length // self._BITS)
            half = (rows + 1) // 2 * self._BITS
            value, length = (value >> 8 * half) ^ (value & ((1 << 8 * half) - 1)), half
        self._laid ^= value

    def text(self) -> str:
        """See `Checksum`."""
        ring = 0
        for place, byte in enumerate(self._laid.to_bytes(self._BITS, "little")):
            ring ^= byte << (place * self._SHIFT) % self._BITS
        ring = (ring >> self._BITS) ^ (ring & ((1 << self._BITS) - 1))
        ring ^= self._size << (self._BITS - 64)
        return b64encode(ring.to_bytes(self._BITS // 8, "little")).decode()
