"""Redacted messages contain no credential and no personal data, and still say what happened."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.payload import check_payload
from duly.core.redaction import MAX_TEXT_LENGTH, redact

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0"
CREDENTIALS = [
    "AKIA" + "A1B2C3D4E5F6G7H8",
    "ghp_" + "a1" * 18,
    "github_pat_" + "a1_" * 9,
    "glpat-" + "a1b2" * 5,
    "xoxb-" + "1234567890-abc",
    "sk_live_" + "a1b2" * 5,
    "AIza" + "a1b2c" * 7,
    JWT,
    "duly_live_k1a2b3_" + "a1b2" * 6,
    "sk-proj-" + "aB3dE5gH" * 6,
]

MESSAGES = {
    "password=hunter2, user=bob": "password=[redacted] user=bob",
    "host=db password='hun ter2' user=bob": "host=db password=[redacted] user=bob",
    "password='hun''ter2' user=bob": "password=[redacted] user=bob",
    "{'password': 'hun ter2', 'rows': 3}": "{'password': [redacted], 'rows': 3}",
    '{"dbPassword":"hun\\"ter2","rows":3}': '{"dbPassword":[redacted],"rows":3}',
    'body was "{\\"api_key\\": \\"hun ter2\\"}"': 'body was "{\\"api_key\\": [redacted]}"',
    "Authorization: Bearer hunter2hunter2\nHost: x": "Authorization: [redacted]\nHost: x",
    "headers=[(b'authorization', b'Bearer hunter2')]": "headers=[(b'authorization', [redacted])]",
    "Set-Cookie: sid=hunter2; Path=/\nnext": "Set-Cookie: [redacted]\nnext",
    "command ['psql', '--password', 'hunter2'] failed": "command ['psql', '--password', [redacted]] failed",
    "psql --password hunter2 -h db": "psql --password [redacted] -h db",
    "PGPASSWORD=hunter2 psql": "PGPASSWORD=[redacted] psql",
    "GET /x?access_token=hunter2&y=1 403": "GET /x?access_token=[redacted] 403",
    "DETAIL: Key (api_key)=(hun ter2) exists.": "DETAIL: Key (api_key)=[redacted] exists.",
    "auth=('bob', 'hunter2'), timeout=3": "auth=[redacted], timeout=3",
    "credentials={'a': {'b': 'hunter2'}}": "credentials=[redacted]",
    "got Basic aHVudGVyMg== from bob": "got Basic [redacted] from bob",
    "postgresql://app:hunter2@db.example.com/app": "postgresql://[redacted]@db.example.com/app",
    "amqp://app:hun@ter2/x@mq.example.com/v": "amqp://[redacted]@mq.example.com/v",
    "redis://:hunter2@cache:6379/0": "redis://[redacted]@cache:6379/0",
    "https://hunter2@git.example.com/x": "https://[redacted]@git.example.com/x",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nok": "[redacted]\nok",
    "-----BEGIN PRIVATE KEY-----\nhunter2": "[redacted]",
    "pin\n  too short [type=x, input_value={'a': {'b': 'hunter2'}}, input_type=dict]": (
        "pin\n  too short [type=x, input_value=[redacted], input_type=dict]"
    ),
    "violates a check\nDETAIL:  Failing row contains (1, hun\nter2).": (
        "violates a check\nDETAIL:  Failing row contains [redacted]"
    ),
    "no column\nLINE 1: ...ues ('hunter2', a)\n           ^": "no column\nLINE [redacted]\n           ^",
    'invalid\nDETAIL:  Token "hunter2" is invalid.\nCONTEXT:  JSON data, line 1: {"a": hunter2...\nok': (
        "invalid\nDETAIL:  Token [redacted] is invalid.\nCONTEXT:  JSON data, line [redacted]\nok"
    ),
    "wrong\nCONTEXT:  unnamed portal parameter $1 = 'hunter2'": (
        "wrong\nCONTEXT:  unnamed portal parameter [redacted]"
    ),
}


@pytest.mark.parametrize(("message", "redacted"), MESSAGES.items())
def test_a_credential_is_masked_and_the_rest_stays(message: str, redacted: str) -> None:
    assert redact(message) == redacted
    assert "hunter2" not in redact(message)
    assert redact(redacted) == redacted, "a second pass finds nothing more"


@pytest.mark.parametrize("secret", CREDENTIALS)
@pytest.mark.parametrize(
    "around", ["{}", "the key {} is bad", "'{}'", "x={};", "https://x.example/?a={}&b=1"]
)
def test_a_credential_is_recognised_by_its_format_alone(secret: str, around: str) -> None:
    assert secret not in redact(around.format(secret))
    assert "[redacted]" in redact(around.format(secret))


@pytest.mark.parametrize(
    ("message", "redacted"),
    [
        ("no mailbox for Jane.Doe+x@mail.example.co.uk.", "no mailbox for [email]."),
        ("<jürgen@müller.example>", "<[email]>"),
        ("Key (email)=(a@b.example) already exists", "Key (email)=([email]) already exists"),
        ("http://api:8080/users?mail=a@b.example", "http://api:8080/users?mail=[email]"),
        ("IBAN DE89370400440532013000 refused", "IBAN [number] refused"),
        ("IBAN DE89 3704 0044 0532 0130 00 refused", "IBAN [number] refused"),
        ("card 4111111111111111 declined", "card [number] declined"),
        ("card 4111-1111-1111-1111 declined", "card [number] declined"),
        ("card 3782 822463 10005 declined", "card [number] declined"),
        ("call +49 170 1234567 back", "call [number] back"),
    ],
)
def test_personal_data_is_masked(message: str, redacted: str) -> None:
    assert redact(message) == redacted


@pytest.mark.parametrize(
    "message",
    [
        "list index out of range",
        "job 01900000-0000-7000-8000-000000000001 was lost",
        "at 2026-11-15 12:00:00.123456, again at 2026-11-16",
        "3.14159265358979 is not 3",
        "connection to db.example.com:5432 timed out after 30000 ms",
        "basic authentication failed: no token",
        "expected 1 2 3 4 5 6 7 8 9 10 11 12 13",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 differs",
        "http://localhost:8080/status?since=2026 answered 503",
        "relation \"duly.secrets_seen\" does not exist\nLINE 1: select 1",
        "KeyError: 'tokenizer'",
        "",
    ],
)  # fmt: skip
def test_harmless_messages_are_unchanged(message: str) -> None:
    assert redact(message) == message


def test_characters_that_postgresql_cannot_store_are_replaced() -> None:
    redacted = redact("a\0b\ud800c\x1b[31m\td\ne\u2028f\u202eg\u2066h")
    assert redacted == "a\ufffdb\ufffdc\ufffd[31m\td\ne\ufffdf\ufffdg\ufffdh"
    json.loads(json.dumps(redacted)).encode()


def test_a_long_text_is_cut() -> None:
    assert len(redact("word " * 1000)) == MAX_TEXT_LENGTH
    assert redact("word " * 1000).endswith("…")
    assert redact("abcdef", 4) == "abc…"


@pytest.mark.parametrize("secret", [*CREDENTIALS, "postgresql://app:hunter2@db.example.com/app"])
def test_a_secret_at_the_end_of_the_scanned_text_is_not_cut_in_half(secret: str) -> None:
    # The masks are shorter than the secrets, so the end of a very long text can move into the scanned part.
    hidden = "password=" + "x" * 1000 + " "
    for padding in range(len(secret) + 1):
        text = (hidden * 40)[: 16 * MAX_TEXT_LENGTH - padding - 1] + " " + secret + " and so on"
        assert secret[: max(12, padding // 2)] not in redact(text)


_NOISE = st.text(st.characters(codec="utf-8"), max_size=40)


@given(_NOISE, st.sampled_from(CREDENTIALS), _NOISE)
def test_a_credential_is_found_in_any_surrounding_text(before: str, secret: str, after: str) -> None:
    assert secret not in redact(f"{before} {secret} {after}")


@given(_NOISE, st.sampled_from(["password", "api_key", "client-secret", "X-Auth-Token"]), _NOISE)
def test_a_named_secret_is_found_in_any_surrounding_text(before: str, name: str, after: str) -> None:
    assert "hunter2" not in redact(f"{before} {name}=hunter2 {after}")


@given(st.text(max_size=300))
def test_every_redacted_text_is_storable_and_within_the_length_limit(text: str) -> None:
    redacted = redact(text, 100)
    assert len(redacted) <= 100
    assert "\0" not in redacted
    redacted.encode()


def test_a_redacted_message_passes_the_payload_check() -> None:
    for secret in CREDENTIALS:
        check_payload({"note": redact(f"the key {secret} is bad")}, 10)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part",
    ["://a:b", "eyJaaaaaaaa.", "token=(", "password='", "a.b-", "a@", '\\"', "-----BEGIN A ", "+1 ", "1"],
)
def test_adversarial_input_is_redacted_in_linear_time(part: str) -> None:
    redact(part * 200_000)
