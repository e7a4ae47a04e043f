"""A local SMTP server that records mail, and refuses the recipients that a test names."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "duly", "s3cr@t"


class ReceivedMail:
    """The received mail, and replies that refuse it: `refusals["anna@example.com"] = ["451 4.3.0 later"]`."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.refusals: dict[str, list[str]] = {}
        self.tries = 0
        self.encrypted: list[bool] = []
        self.url = ""

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's names
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        self.tries += 1
        if self.refusals.get(address):
            return self.refusals[address].pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.messages.append(mail)
        self.encrypted.append(session.ssl is not None)
        return "250 OK"


class _Server(Controller):
    """A server on a free port: aiosmtpd connects to the port that it was started with, even if that is 0."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def _authenticate(server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
    valid = (login.login, login.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=valid, handled=False)


@contextmanager
def start_mail_server(certificate: Path | None = None, *, log_in: bool = False) -> Iterator[ReceivedMail]:
    """Start a mail server; with a certificate it offers STARTTLS, and requires it before a login."""
    box = ReceivedMail()
    tls: dict[str, Any] = {}
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        tls = {"tls_context": context, "authenticator": _authenticate, "auth_required": log_in}
    server = _Server(box, hostname="127.0.0.1", port=0, **tls)
    server.start()
    try:
        box.url = f"smtp://127.0.0.1:{server.port}"
        yield box
    finally:
        server.stop()


def make_certificate(folder: Path) -> Path:
    """Write the key and the self-signed certificate of this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
