"""Redact credentials and personal data in texts and payloads, and restore redacted payloads after an edit."""

from __future__ import annotations

import json
import re
from typing import Any

from duly.core.errors import ContractError

MAX_TEXT_LENGTH = 2_000
"""The length to which redacted texts are truncated."""
MAX_SHORT_TEXT_LENGTH = 300
"""The same for texts in lists and log lines."""

SECRET_NAME = re.compile(
    r"(^|[_\-.]|(?-i:(?<=[a-z0-9])(?=[A-Z])))(password|passwd|passphrase|secret|private[_-]?key|api[_-]?key|access[_-]?key"
    r"|(access|auth|bearer|refresh|session|id)[_-]?token|token|credentials?|authorization|client[_-]?secret)$",
    re.IGNORECASE,
)
"""A name whose value is a credential."""

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
"""A text with the shape of a credential, whatever its name."""

MASK = "[redacted]"
# Only so much of a long text, such as a whole response body, is searched.
_MAX_READ = 16 * MAX_TEXT_LENGTH
_BREAKS = frozenset(" \t\r\n\"',;&")
# Also line separators, and characters that change the direction of the text that follows.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# The shapes above recognise a secret; these match it to its end.
_SHAPES = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)", re.DOTALL), MASK),
    # A password may contain an @ or a slash; a port is not a password.
    (re.compile(r"://(?:[^/\s:@]*:(?!\d{1,5}[/?#])\S{0,512}@|[^/\s]*@)"), f"://{MASK}@"),
    (SECRET_VALUE, MASK),
    # The refused input in messages of pydantic.
    (re.compile(r"input_value=.*?(?=, input_type=|$)", re.MULTILINE), f"input_value={MASK}"),
)
# The refused input in messages of PostgreSQL, on lines of their own: row, JSON, statement, parameters.
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
    r"|b?\"(?>(?:[^\"\\]|\\.|\"\")*)(?:\"|\Z)|b?'(?>(?:[^'\\]|\\.|'')*)(?:'|\Z)|\\+(?P<quote>[\"']).*?(?:\\+(?P=quote)|\Z)"
    r"|\([^()\n]*+\)|\[[^\[\]\n]*+\]|\{[^{}\n]*+\}|[(\[{][^\n]*|\S+",
    re.DOTALL,
)
# Messages use more names for secrets than payloads do.
_SECRET_NAME_IN_TEXT = re.compile(
    r"(password|passwd|secret|token|apikey)$"
    r"|(^|[_\-.])(pass|pwd|pin|auth|sig|signature|cookie|session|session[_-]?id|sid)$",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(authorization|cookie)$", re.IGNORECASE)
_SCHEME = re.compile(r"\b(bearer|basic|digest|negotiate|apikey) +(?P<token>[\w.~+/=\-]{8,})", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w\-])[A-Za-z0-9_\-]{32,}+(?!\w)")


def redact(text: str, max_length: int = MAX_TEXT_LENGTH) -> str:
    """Mask credentials, e-mail addresses and account numbers, and truncate the text."""
    text = printable(_read_part(text))
    for shape, mask in _SHAPES:
        text = shape.sub(mask, text)
    if "\n" in text:
        text = _REFUSED.sub(MASK, text)
    text = _SCHEME.sub(_mask_scheme, _mask_named(text))
    for shape, mask in _PERSONAL:
        text = shape.sub(mask, text)
    text = _WORD.sub(_mask_word, text)
    return truncate(text, max_length)


def is_secret_name(name: str) -> bool:
    """Return whether values of this name are always masked."""
    return any(shape.search(name) for shape in (SECRET_NAME, _SECRET_NAME_IN_TEXT, _HEADER))


def truncate(text: str, max_length: int = MAX_SHORT_TEXT_LENGTH) -> str:
    """Cut a text to a length, with an ellipsis."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def printable(text: str) -> str:
    """Replace characters that PostgreSQL cannot store or a terminal would execute."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _read_part(text: str) -> str:
    """Return the part that is searched. It ends between words: half of a secret would not be recognised."""
    if len(text) <= _MAX_READ:
        return text
    end = next((end for end in range(_MAX_READ, 0, -1) if text[end - 1] in _BREAKS), 0)
    return text[:end] + "…"


def _mask_named(text: str) -> str:
    """Mask the values that follow the name of a secret."""
    parts: list[str] = []
    at = 0
    for found in _NAMED.finditer(text):
        name = found["name"]
        if found.start() < at or (found["gap"] and not name.startswith("-")):
            continue
        if SECRET_NAME.search(name) or _SECRET_NAME_IN_TEXT.search(name):
            parts += text[at : found.end()], MASK
            at = _value_end(text, found.end(), whole_line=bool(_HEADER.search(name)))
    return "".join(parts) + text[at:]


def _value_end(text: str, start: int, *, whole_line: bool) -> int:
    value = _VALUE.match(text, start)
    if value is None:
        return start
    if whole_line and text[start] not in "\"'\\b[({":
        return len(text) if (end := text.find("\n", start)) < 0 else end
    return value.end()


def _mask_scheme(found: re.Match[str]) -> str:
    # `basic authentication` is not a credential.
    random = any(c.isdigit() or c.isupper() for c in found["token"][1:])
    return f"{found[1]} {MASK}" if random else found[0]


def _mask_word(found: re.Match[str]) -> str:
    word = found[0]
    # Hashes and ids are of one case; keys of unknown shape are not.
    mixed = any(c.islower() for c in word) and any(c.isupper() for c in word)
    return MASK if mixed and sum(c.isdigit() for c in word) >= 4 else word


_PLACEHOLDERS = (MASK, "[email]", "[number]")


def redact_payload(stored: Any) -> Any:
    """Mask credentials and personal data in a JSON value; texts are truncated."""
    if isinstance(stored, dict):
        return {key: _redact_field(name, stored[name]) for key, name in _redacted_keys(stored).items()}
    if isinstance(stored, list):
        return [redact_payload(item) for item in stored]
    return redact(stored, MAX_TEXT_LENGTH) if isinstance(stored, str) else stored


def restore_redacted(edited: Any, stored: Any, path: str = "payload") -> Any:
    """Return an edited payload with the stored values wherever it still equals the redacted ones.

    The editor never sees masked values; a placeholder anywhere else raises, because its value is unknown.
    """
    if _same_json(edited, redact_payload(stored)):
        return stored
    if isinstance(edited, dict) and isinstance(stored, dict):
        return _restore_fields(edited, stored, path)
    if isinstance(edited, list) and isinstance(stored, list):
        return _restore_items(edited, stored, path)
    return _without_placeholders(edited, path)


def _restore_fields(edited: dict[str, Any], stored: dict[str, Any], path: str) -> dict[str, Any]:
    known = _redacted_keys(stored)
    restored: dict[str, Any] = {}
    for key, value in edited.items():
        inner = f"{path}.{key}"
        if key not in known:
            restored[_without_placeholders(key, inner)] = _without_placeholders(value, inner)
        elif _same_json(value, _redact_field(known[key], stored[known[key]])):
            restored[known[key]] = stored[known[key]]
        else:
            restored[known[key]] = restore_redacted(value, stored[known[key]], inner)
    return restored


def _restore_items(edited: list[Any], stored: list[Any], path: str) -> list[Any]:
    """Restore item by item; if items were added or removed, those that equal a redacted stored one."""
    if len(edited) == len(stored):
        return [
            restore_redacted(item, original, f"{path}.{n}")
            for n, (item, original) in enumerate(zip(edited, stored, strict=True))
        ]
    left = list(stored)
    restored: list[Any] = []
    for n, item in enumerate(edited):
        original = next((one for one in left if _same_json(item, redact_payload(one))), None)
        if original is None:
            restored.append(_without_placeholders(item, f"{path}.{n}"))
        else:
            left.remove(original)
            restored.append(original)
    return restored


def _redact_field(name: str, value: Any) -> Any:
    return MASK if value not in (None, "") and SECRET_NAME.search(name) else redact_payload(value)


def _redacted_keys(stored: dict[str, Any]) -> dict[str, str]:
    """Return the names by their redacted form; equal forms are distinguished by a number."""
    names: dict[str, str] = {}
    for name in stored:
        redacted = redact(name, MAX_TEXT_LENGTH)
        names[redacted if redacted not in names else f"{redacted} {len(names)}"] = name
    return names


def _without_placeholders(edited: Any, path: str) -> Any:
    text = json.dumps(edited, ensure_ascii=False)
    if any(placeholder in text for placeholder in _PLACEHOLDERS):
        raise ContractError(
            "contains a placeholder of a redacted value", field=path, fix="write the value itself"
        )
    return edited


def _same_json(one: Any, other: Any) -> bool:
    """Compare as JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
