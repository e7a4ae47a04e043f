"""Create Outlook messages: the minimum of the compound file format."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_SECTOR, _SMALL = 512, 64


def _padded(data: bytes, size: int) -> bytes:
    return data + b"\0" * (-len(data) % size)


def _chain(start: int, count: int) -> list[int]:
    return [*range(start + 1, start + count), _END] if count else []


def _numbers(values: Sequence[int]) -> bytes:
    rest = [_FREE] * (-len(values) % (_SECTOR // 4))
    return struct.pack(f"<{len(values) + len(rest)}I", *values, *rest)


def _entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    encoded = (name + "\0").encode("utf-16-le")
    links = struct.pack("<BBIII", kind, 1, _FREE, right, child)
    return (
        encoded.ljust(64, b"\0")
        + struct.pack("<H", len(encoded))
        + links
        + bytes(36)
        + struct.pack("<IQ", start, size)
    )


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file with these small streams in its root."""
    small, chains, starts = b"", [], []
    for data in streams.values():
        starts.append(len(small) // _SMALL)
        small += _padded(data, _SMALL)
        chains += _chain(starts[-1], len(small) // _SMALL - starts[-1])
    entries = [_entry("Root Entry", 5, _FREE, 1, 2, len(small))]
    for at, (name, data) in enumerate(sorted(streams.items(), key=lambda s: (len(s[0]), s[0].upper())), 1):
        start = starts[list(streams).index(name)]
        entries.append(_entry(name, 2, at + 1 if at < len(streams) else _FREE, _FREE, start, len(data)))
    small, table, directory = _padded(small, _SECTOR), _numbers(chains), _padded(b"".join(entries), _SECTOR)
    # Sector 0 is the table of sectors, 1 the one of small ones; then those, then the directory.
    at = 2 + len(small) // _SECTOR
    sectors = [_FAT, _END, *_chain(2, len(small) // _SECTOR), *_chain(at, len(directory) // _SECTOR)]
    head = struct.pack("<8s16xHHHHH6x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 62, 3, 0xFFFE, 9, 6)
    head += struct.pack("<IIIIIIIII", 0, 1, at, 0, 4096, 1, 1, _END, 0)
    return (
        head
        + _numbers([0])[: _SECTOR - len(head)].ljust(_SECTOR - len(head), b"\xff")
        + (_numbers(sectors) + table + small + directory)
    )


def message(subject: str, sender: str, to: str, body: str) -> bytes:
    """Return an Outlook message."""
    texts = {0x0037: subject, 0x0C1A: sender, 0x0E04: to, 0x1000: body, 0x001A: "IPM.Note"}
    streams = {f"__substg1.0_{tag:04X}001F": text.encode("utf-16-le") for tag, text in texts.items()}
    rows = [
        struct.pack("<IIQ", tag << 16 | 0x1F, 6, len(t.encode("utf-16-le")) + 2) for tag, t in texts.items()
    ]
    return compound({**streams, "__properties_version1.0": bytes(32) + b"".join(rows)})
