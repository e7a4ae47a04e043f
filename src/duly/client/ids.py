"""Ids made on the client: time-ordered for jobs, random for permalinks."""

from __future__ import annotations

import os
import time
from uuid import UUID

_VERSION = 0x7000_8000_0000_0000_0000
_RANDOM = 0x0FFF_3FFF_FFFF_FFFF_FFFF


def job_id() -> UUID:
    """A uuid v7: 48 bits of time, then randomness."""
    random = int.from_bytes(os.urandom(10), "big") & _RANDOM
    return UUID(int=time.time_ns() // 1_000_000 << 80 | _VERSION | random)


def result_id() -> UUID:
    """128 random bits: whoever does not have the link cannot guess it."""
    return UUID(bytes=os.urandom(16))
