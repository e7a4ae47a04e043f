"""Text as the index reads it, and other spellings that a searcher may have meant."""

from __future__ import annotations

import re

LONGEST = 100_000
"""Letters of a passage that are indexed."""
# The server's parser would see paths, hosts, tags and signs: "Miete/Pacht" shall be two words, "RE-2024" too.
_JOINTS = re.compile(r"[/\\_|•<>]+|-(?=\d)|(?<=\d)-(?=\w)|(?<=[^\W\d_])\.(?=\w)|(?<=\w)\.(?=[^\W\d_])")
# Blanks, one line end, then blanks and lines: no two of them can take the same letters, so it stays linear.
_BROKEN = re.compile(r"(?<=[^\W\d_])[-\u2010][^\S\n]*+\n\s*+(?=[^\W\d_])")
# Longer ones are no words, and more than the index takes.
_ENDLESS = re.compile(r"(\S{200})")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\ufeff"))
_WORD = re.compile(r"[^\W\d_]+")
_PLAIN = (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"))


def storable(text: str) -> str:
    """Text as the database takes it: without NUL, and without halves of characters."""
    return text.replace("\x00", " ").encode(errors="replace").decode()


def readable(text: str) -> str:
    """Text whose words the server's parser finds: broken lines joined, joints opened."""
    joined = _BROKEN.sub("", text[:LONGEST].translate(_INVISIBLE))
    return _ENDLESS.sub(r"\1 ", _JOINTS.sub(" ", joined))


def of_name(name: str) -> str:
    """The words of a file's name."""
    return readable(name.replace("-", " "))


def words(text: str) -> list[str]:
    """What consists of letters, in order."""
    return _WORD.findall(text)


def spellings(word: str) -> list[str]:
    """The word, and as it is written where a keyboard has no umlauts, or by those who have them again."""
    lower = word.lower()
    plain, rich = lower, lower
    for letter, pair in _PLAIN:
        plain = plain.replace(letter, pair)
        rich = rich.replace(pair, letter)
    return list(dict.fromkeys([word, plain, rich])) if {plain, rich} != {lower} else [word]
