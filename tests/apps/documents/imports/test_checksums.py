"""The checksums of the providers, by published test vectors."""

from __future__ import annotations

import hashlib
from base64 import b64decode

import pytest

from duly.apps.documents.imports.providers.checksums import Checksum, ContentHash, QuickXor

_VECTORS = [
    ("", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("Sg==", "SgAAAAAAAAAAAAAAAQAAAAAAAAA="),
    ("/aNzzCFPS/A=", "/RjFHJgRgicsAR4ACAAAAAAAAAA="),
    ("gQaybEqS/4UlDc8e4IJm", "gDCALNigBEn8oxAlZ8AzPAAOQZg="),
    (
        "jyibxJSzO6ZiZ0O1qe3tG/bvIAYssvukh9suIT5wEy1JBINVgPiqdsTW0cOpP0aUfP7mgqLfADkzI/m/GgCuVhr8oFLrOCoTx1/psBOW"
        "whltCbhUx51Icm9aH8tY4Z3ccU+6BKpYQkLCy0B/A9Zc",
        "hZfLIilSITC6N3e3tQ/iSgEzkto=",
    ),
    (
        "PfxMcUd0vIW6VbHG/uj/Y0W6qEoKmyBD0nYebEKazKaKG+UaDqBEcmQjbfQeVnVLuodMoPp7P7TR1htX5n2VnkHh22xDyoJ8C/ZQKiSN"
        "qQfXvh83judf4RVr9exJCud8Uvgip6aVZTaPrJHVjQhMCp/dEnGvqg0oN5OVkM2qqAXvA0teKUDhgNM71sDBVBCGXxNOR2bpbD1iM4dn"
        "uT0ey4L+loXEHTL0fqMeUcEi2asgImnlNakwenDzz0x57aBwyq3AspCFGB1ncX4yYCr/OaCcS5OKi/00WH+wNQU3",
        "QX/YEpG0gDsmhEpCdWhsxDzsfVE=",
    ),
]


def summed(checksum: Checksum, data: bytes, step: int) -> str:
    for start in range(0, len(data), step):
        checksum.update(data[start : start + step])
    return checksum.text()


@pytest.mark.parametrize("step", [1, 7, 160, 1000])
def test_quick_xor_is_what_microsoft_computes(step: int) -> None:
    for data, expected in _VECTORS:
        assert summed(QuickXor(), b64decode(data), step) == expected


def test_quick_xor_of_long_parts_is_that_of_short_ones() -> None:
    data = hashlib.shake_128(b"long").digest(100_001)
    assert summed(QuickXor(), data, 100_001) == summed(QuickXor(), data, 13) == summed(QuickXor(), data, 161)


@pytest.mark.parametrize("size", [0, 1, 4 * 2**20 - 1, 4 * 2**20, 4 * 2**20 + 1, 9 * 2**20])
def test_a_content_hash_is_that_of_the_hashes_of_its_blocks(size: int) -> None:
    data = bytes(size)
    blocks = [data[start : start + 4 * 2**20] for start in range(0, size, 4 * 2**20)]
    expected = hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).hexdigest()
    assert summed(ContentHash(), data, 3 * 2**20) == expected
