"""Payloads that contain a credential are refused; harmless mentions of one are not."""

from __future__ import annotations

from typing import Any

import pytest

from duly.core.errors import SecretInPayload
from duly.core.payload import check_payload

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0"
SECRET_NAMES = [
    "password",
    "Password",
    "db_password",
    "dbPassword",
    "smtp.password",
    "passwd",
    "passphrase",
    "secret",
    "client_secret",
    "clientSecret",
    "api_key",
    "api-key",
    "apikey",
    "apiKey",
    "stripe_api_key",
    "privateKey",
    "private_key",
    "access_key",
    "aws_access_key",
    "token",
    "access_token",
    "accessToken",
    "refresh-token",
    "id_token",
    "userToken",
    "bearer_token",
    "credential",
    "credentials",
    "authorization",
    "Authorization",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_text_under_a_secret_name_is_refused(name: str) -> None:
    with pytest.raises(SecretInPayload) as refused:
        check_payload({"rows": [{name: "hunter2"}]}, 10)
    assert refused.value.field == f"payload.rows[0].{name}"
    assert "secret_ref" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        "-----BEGIN PRIVATE KEY-----\nMIIE",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "AKIA" + "A1B2C3D4E5F6G7H8",
        "the key is ASIA" + "A1B2C3D4E5F6G7H8, keep it",
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1_" * 9,
        "glpat-" + "a1b2" * 5,
        "xoxb-" + "1234567890-abc",
        "sk_live_" + "a1b2" * 5,
        "postgresql://app:hunter2@db.example.com/app",
        "AIza" + "a1b2c" * 7,
        JWT,
        f"Bearer {JWT}",
        f"https://example.com/?jwt={JWT}&x=1",
        "duly_live_k1a2b3_" + "a1b2" * 6,
    ],
)
@pytest.mark.parametrize("location", ["value", "list", "root"])
def test_a_value_formatted_like_a_credential_is_refused_under_any_name(value: str, location: str) -> None:
    payload = {"value": {"note": value}, "list": {"note": ["x", value]}, "root": value}[location]
    with pytest.raises(SecretInPayload, match="looks like a credential") as refused:
        check_payload(payload, 10)
    assert value not in str(refused.value)


@pytest.mark.parametrize(
    "payload",
    [
        {"token_count": 3},
        {"token_count": "3"},
        {"secret_ref": "vault/x"},
        {"password": None},
        {"password": ""},
        {"token": 42},
        {"has_password": True},
        {"keys": "ab"},
        {"key": "ab"},
        {"sort_key": "name"},
        {"tokenizer": "bert"},
        {"secretary": "Ms Moneypenny"},
        {"password_changed_at": "2026-01-01"},
        {"passwordless": "yes"},
        {"monkey": "banana"},
        {"note": "tokenize"},
        {"note": "the password is in the vault"},
        {"note": "-----BEGIN CERTIFICATE-----"},
        {"note": "-----BEGIN PUBLIC KEY-----"},
        {"note": "AKIA is a prefix"},
        {"note": "sk_test_" + "a1b2" * 5},
        {"note": "eyJhbGciOiJIUzI1NiJ9"},
        {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
        {"id": "0190b6a0-0000-7000-8000-000000000001"},
        ["password", "secret"],
        "password",
    ],
)
def test_harmless_names_and_texts_are_accepted(payload: Any) -> None:
    check_payload(payload, 10)


@pytest.mark.timeout(10)
def test_a_text_with_many_token_prefixes_is_scanned_in_linear_time() -> None:
    text = "-eyJaaaaaaaa" * 40_000
    check_payload({"note": text}, 10)
