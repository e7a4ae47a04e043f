"""What may be kept of a text that nobody wrote for the public: neither credentials nor personal data."""

from __future__ import annotations

import re

LONGEST = 2_000
"""How many characters of a text are kept."""
SHORT = 300
"""How many of one that is told beside others: in a line of a log, in a list of changes."""

SECRET_NAME = re.compile(
    r"(^|[_\-.]|(?-i:(?<=[a-z0-9])(?=[A-Z])))(password|passwd|passphrase|secret|private[_-]?key|api[_-]?key|access[_-]?key"
    r"|(access|auth|bearer|refresh|session|id)[_-]?token|token|credentials?|authorization|client[_-]?secret)$",
    re.IGNORECASE,
)
"""A name whose text is a credential."""

SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{36,}\b"
    r"|\bgithub_pat_[A-Za-z0-9_]{22,}\b"
    r"|\bglpat-[A-Za-z0-9_\-]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b[sr]k_live_[A-Za-z0-9]{16,}\b"
    r"|\bAIza[0-9A-Za-z_\-]{35}\b"
    r"|(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"
    r"|://[^/\s:@]{1,256}:[^/\s@]{1,256}@"
    r"|\bduly_[a-z]+_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}\b"
    r"|\bwhsec_[A-Za-z0-9+/]{24,}={0,2}"
)
"""A text of the shape of a credential, whatever its name."""

_MASK = "[redacted]"
# Of a message that is a whole response body, only so much is read.
_READ = 16 * LONGEST
_BREAKS = frozenset(" \t\r\n\"',;&")
# Also what ends a line elsewhere, and what turns the direction of the text that follows.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# The shapes above tell that a text holds a secret; these reach to its end.
_SHAPES = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)", re.DOTALL), _MASK),
    # A password may hold an @ or a slash; a port is none.
    (re.compile(r"://(?:[^/\s:@]*:(?!\d{1,5}[/?#])\S{0,512}@|[^/\s]*@)"), f"://{_MASK}@"),
    (SECRET_VALUE, _MASK),
    # How pydantic shows what it refused.
    (re.compile(r"input_value=.*?(?=, input_type=|$)", re.MULTILINE), f"input_value={_MASK}"),
)
# How PostgreSQL shows what it refused, on lines of their own: row, JSON, statement, parameters.
_REFUSED = re.compile(
    r"(?<=^DETAIL:  Failing row contains )\((?s:.*)|(?<=^DETAIL:  Token )\".*\"(?= is invalid)"
    r"|(?<=JSON data, line )\d+: .*|(?<=^LINE )\d+: .*'.*"
    r"|(?<= portal parameter )\$.*|(?<= with parameters: )\$.*",
    re.MULTILINE,
)
_PERSONAL = (
    (re.compile(r"(?<![\w.+%\-])[\w.+%\-]++@[\w\-]++(?:\.[\w\-]++)+"), "[email]"),
    (re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7} ?[A-Z0-9]{1,4}(?!\w)"), "[number]"),  # an IBAN
    (re.compile(r"(?<![\w\-])\d{4}([ \-])\d{4,6}\1\d{4,5}(?:\1\d{1,7})?(?![\w\-])"), "[number]"),  # a card
    (re.compile(r"(?<!\w)(?<!\d\.)\d{13,}(?!\w)"), "[number]"),
    (re.compile(r"(?<!\w)\+\d(?:[ ()/.\-]{0,2}\d){7,14}(?!\w)"), "[number]"),  # a telephone
)

# `name=value`, `"name": "value"`, `('name', 'value')`, `Key (name)=(value)`, `--name value`.
_NAMED = re.compile(
    r"(?<![\w.\-])(?P<name>[\w.\-]++)"
    r"(?:[\"'\\)\]]*[^\S\n]*(?:=>|:=|==|=|:(?!//))[^\S\n]*|\\*[\"'],\s*(?=b?\\*[\"'])|(?P<gap>[^\S\n]+))"
)
_VALUE = re.compile(
    r"\[redacted\]"
    r"|b?\"(?:[^\"\\]|\\.|\"\")*+(?:\"|\Z)|b?'(?:[^'\\]|\\.|'')*+(?:'|\Z)|\\+(?P<quote>[\"']).*?(?:\\+(?P=quote)|\Z)"
    r"|\([^()\n]*+\)|\[[^\[\]\n]*+\]|\{[^{}\n]*+\}|[(\[{][^\n]*|\S+",
    re.DOTALL,
)
# Messages are less tidy than the fields of a payload.
_TELLING = re.compile(
    r"(password|passwd|secret|token|apikey)$"
    r"|(^|[_\-.])(pass|pwd|pin|auth|sig|signature|cookie|session|session[_-]?id|sid)$",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(authorization|cookie)$", re.IGNORECASE)
_SCHEME = re.compile(r"\b(bearer|basic|digest|negotiate|apikey) +(?P<token>[\w.~+/=\-]{8,})", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w\-])[A-Za-z0-9_\-]{32,}+(?!\w)")


def redact(text: str, longest: int = LONGEST) -> str:
    """The text without credentials, e-mail addresses and numbers of accounts, cut to a length."""
    text = printable(_head(text))
    for shape, mask in _SHAPES:
        text = shape.sub(mask, text)
    if "\n" in text:
        text = _REFUSED.sub(_MASK, text)
    text = _SCHEME.sub(_scheme, _named(text))
    for shape, mask in _PERSONAL:
        text = shape.sub(mask, text)
    text = _WORD.sub(_word, text)
    return cut(text, longest)


def hides(name: str) -> bool:
    """Whether what stands under this name is never shown, whatever it is."""
    return any(shape.search(name) for shape in (SECRET_NAME, _TELLING, _HEADER))


def cut(text: str, longest: int = SHORT) -> str:
    """No longer than that."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def printable(text: str) -> str:
    """The text without what PostgreSQL cannot store and a terminal would obey."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _head(text: str) -> str:
    """The part that is read. It ends between words: half of a secret would not be known for one."""
    if len(text) <= _READ:
        return text
    end = next((end for end in range(_READ, 0, -1) if text[end - 1] in _BREAKS), 0)
    return text[:end] + "…"


def _named(text: str) -> str:
    """Mask what stands under a telling name."""
    kept: list[str] = []
    at = 0
    for found in _NAMED.finditer(text):
        name = found["name"]
        if found.start() < at or (found["gap"] and not name.startswith("-")):
            continue
        if SECRET_NAME.search(name) or _TELLING.search(name):
            kept += text[at : found.end()], _MASK
            at = _value_end(text, found.end(), whole_line=bool(_HEADER.search(name)))
    return "".join(kept) + text[at:]


def _value_end(text: str, start: int, *, whole_line: bool) -> int:
    value = _VALUE.match(text, start)
    if value is None:
        return start
    if whole_line and text[start] not in "\"'\\b[({":
        return len(text) if (end := text.find("\n", start)) < 0 else end
    return value.end()


def _scheme(found: re.Match[str]) -> str:
    # `basic authentication` is no credential.
    random = any(c.isdigit() or c.isupper() for c in found["token"][1:])
    return f"{found[1]} {_MASK}" if random else found[0]


def _word(found: re.Match[str]) -> str:
    word = found[0]
    # Hashes and ids are of one case; keys whose shape nobody has told us of are not.
    mixed = any(c.islower() for c in word) and any(c.isupper() for c in word)
    return _MASK if mixed and sum(c.isdigit() for c in word) >= 4 else word
