"""Server-sent events, as they come in pieces."""

from __future__ import annotations

import re

# Only these end a line: what Unicode calls a line separator may well stand inside of JSON.
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LONGEST = 2**24


class Decoder:
    """Pieces of a stream go in, the data of whole events comes out; names, ids and comments do not matter."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that end in this piece."""
        text = self._rest + piece
        if len(text) > _LONGEST:
            raise ValueError("a line without an end")
        # A carriage return at the end may be half of a line end.
        held = text.endswith(b"\r")
        *lines, rest = _LINE_END.split(text[:-1] if held else text)
        self._rest = rest + b"\r" if held else rest
        return [data for line in lines if (data := self._take(line)) is not None]

    def _take(self, line: bytes) -> bytes | None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        if line or not self._data:
            return None
        data = b"\n".join(self._data)
        self._data.clear()
        return data
