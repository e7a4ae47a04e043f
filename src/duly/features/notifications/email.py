"""The `email` channel: mail by SMTP, encrypted unless the URL says otherwise."""

from __future__ import annotations

import logging
import re
import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from duly.core.errors import ConfigurationError, ContractError
from duly.core.outcome import Fail
from duly.core.redaction import printable, redact
from duly.features.notifications.channels import Bounced, Message
from duly.features.notifications.recipient import EMAIL, Recipient

log = logging.getLogger("duly.notifications")
Encryption = Literal["starttls", "tls", "none"]
_DEFAULT_PORTS: dict[Encryption, int] = {"starttls": 587, "tls": 465, "none": 25}
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
# RFC 3463: the address is wrong or disabled, rather than the message refused.
_INVALID_ADDRESS = re.compile(rb"5\.1\.(1|2|3|6|10)\b|5\.2\.1\b")
_ENHANCED_STATUS = re.compile(rb"[245]\.\d{1,3}\.\d{1,3}\b")
# The package `email` decodes this as encoded text, even in headers set here: that may contain a line break.
_ENCODED_TEXT = "=?"


@dataclass(frozen=True, slots=True)
class MailServer:
    """The mail server, and the sender of all mail."""

    host: str
    port: int
    encryption: Encryption
    sender: Address
    user: str | None = None
    password: str = field(default="", repr=False)
    cafile: str | None = None
    """The certificate authorities to trust, instead of those of the system."""
    timeout: float = 30.0

    @classmethod
    def parse(cls, url: str, sender: str) -> MailServer:
        """Parse `smtp://user:password@host:587`, `smtps://…`, with `?starttls=never` and `?cafile=…`."""
        try:
            parts, port = urlsplit(url), urlsplit(url).port
            options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        except ValueError:
            raise _invalid_url("not a URL", _URL_FIX) from None
        unknown = set(options) - {"starttls", "cafile"}
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname or unknown:
            raise _invalid_url("not the URL of a mail server", _URL_FIX)
        encryption = _encryption(parts.scheme, options.get("starttls", "require"))
        if encryption == "none" and parts.username and parts.hostname not in _LOCAL_HOSTS:
            raise _invalid_url("the password would be sent unencrypted", "remove starttls=never")
        return cls(
            parts.hostname,
            port or _DEFAULT_PORTS[encryption],
            encryption,
            _parse_sender(sender),
            unquote(parts.username) if parts.username else None,
            unquote(parts.password or ""),
            options.get("cafile"),
        )


_URL_FIX = "use smtp://user:password@host:587, or smtps://"


def _encryption(scheme: str, starttls: str) -> Encryption:
    if starttls not in ("require", "never"):
        raise _invalid_url(f"starttls={starttls} is unknown", "use starttls=require or starttls=never")
    if scheme == "smtps":
        return "tls"
    return "starttls" if starttls == "require" else "none"


def _parse_sender(sender: str) -> Address:
    name, address = parseaddr(sender)
    try:
        return Address(_single_line(name), addr_spec=Recipient.parse(Recipient(EMAIL, address)).address)
    except (ContractError, ValueError):
        raise ConfigurationError(
            "not a mail address", field="mail_from", fix="use one like Duly <duly@example.com>"
        ) from None


def _invalid_url(message: str, fix: str) -> ConfigurationError:
    return ConfigurationError(message, field="smtp_url", fix=fix)


class Email:
    """The channel `email`: one connection per message, on a thread."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    def send(self, message: Message) -> None:
        """Send a message by the mail server; raise if it refuses the message or cannot be reached."""
        mail = build_mail(message, self._server.sender)
        try:
            self._send(mail, message.recipient)
        except smtplib.SMTPRecipientsRefused as error:
            [(code, reply)] = error.recipients.values()
            raise _refusal(code, reply) from None
        except smtplib.SMTPDataError as error:
            raise _refusal(error.smtp_code, _bytes(error.smtp_error)) from None
        except (smtplib.SMTPException, OSError) as error:
            log.warning("could not send mail: %s", redact(str(error) or type(error).__name__))
            raise smtplib.SMTPException(_describe(error)) from None

    def _send(self, mail: bytes, recipient: str) -> None:
        connection = self._connect()
        try:
            connection.sendmail(self._server.sender.addr_spec, [recipient], mail)
        finally:
            # The server has accepted or refused the message: an error of QUIT changes nothing.
            with suppress(smtplib.SMTPException, OSError):
                connection.quit()

    def _connect(self) -> smtplib.SMTP:
        """Return a connection, encrypted as configured and authenticated."""
        server, name = self._server, self._server.sender.domain
        if server.encryption == "tls":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host, server.port, name, timeout=server.timeout, context=self._ssl_context()
            )
        else:
            connection = smtplib.SMTP(server.host, server.port, name, timeout=server.timeout)
        try:
            if server.encryption == "starttls":
                connection.starttls(context=self._ssl_context())  # raises if the server does not offer it
            if server.user is not None:
                connection.login(server.user, server.password)
        except BaseException:
            connection.close()
            raise
        return connection

    def _ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._server.cafile)


def build_mail(message: Message, sender: Address) -> bytes:
    """Return a message as mail. Its Message-ID is the same for each attempt, for deduplication."""
    try:
        mail = _email_message(message, sender)
        raw = mail.as_bytes()
    except (MessageError, ValueError):
        raise _unsafe() from None
    # Parse it again: no value may have added a header or a line break.
    parsed = BytesParser(policy=SMTP).parsebytes(raw)
    if parsed.keys() != mail.keys() or any(c in str(value) for value in parsed.values() for c in "\r\n"):
        raise _unsafe()
    return raw


def _unsafe() -> Fail:
    return Fail("the message is not a valid mail", code="email.unsafe")


def _email_message(message: Message, sender: Address) -> EmailMessage:
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = Address(addr_spec=message.recipient)
    mail["Subject"] = _single_line(message.subject)
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = f"<{message.notification_id}@{sender.domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.body)
    mail["Content-Language"] = message.locale
    return mail


def _single_line(text: str) -> str:
    """Return a text as one line, in which nothing is decoded as encoded text."""
    return " ".join(printable(text).split()).replace(_ENCODED_TEXT, "= ?")


def _refusal(code: int, reply: bytes) -> Exception:
    """Return the error for a refused message: temporary, bounced or permanent."""
    text = f"the mail server replied: {_codes(code, reply)}"
    if code < 500:
        return smtplib.SMTPException(text)
    if _INVALID_ADDRESS.match(reply):
        return Bounced(text)
    return Fail(text, code="email.refused")


def _codes(code: int, reply: bytes) -> str:
    """Return the codes of a reply. Orgs read them; its text may name internal machines and accounts."""
    status = _ENHANCED_STATUS.match(reply)
    return f"{code} {status[0].decode()}" if status else str(code)


def _describe(error: Exception) -> str:
    """Describe a connection error without the text of the server."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"the mail server rejected the login: {_codes(error.smtp_code, _bytes(error.smtp_error))}"
        case smtplib.SMTPResponseException():
            return f"the mail server replied: {_codes(error.smtp_code, _bytes(error.smtp_error))}"
        case smtplib.SMTPNotSupportedError():
            return "the mail server does not offer STARTTLS or authentication"
        case ssl.SSLError():
            return "the mail server's certificate is not trusted, or encryption failed"
        case ConnectionRefusedError():
            return "the mail server refused the connection"
        case TimeoutError():
            return "the mail server did not answer in time"
    return "the mail server cannot be reached"


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
