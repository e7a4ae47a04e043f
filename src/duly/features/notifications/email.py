"""Mail by SMTP. Encrypted unless somebody says otherwise: a server that offers no encryption gets no mail."""

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
from duly.features.notifications.recipients import EMAIL, Recipient

log = logging.getLogger("duly.notifications")
Encryption = Literal["starttls", "tls", "none"]
_PORTS: dict[Encryption, int] = {"starttls": 587, "tls": 465, "none": 25}
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
# RFC 3463: the address is wrong, or nobody reads it any more; not that the message was.
_NO_SUCH_ADDRESS = re.compile(rb"5\.1\.(1|2|3|6|10)\b|5\.2\.1\b")
_STATUS = re.compile(rb"[245]\.\d{1,3}\.\d{1,3}\b")
# What `email` reads as encoded text, also where we wrote it: decoded, it may hold the end of a line.
_ENCODED = "=?"


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail goes out, and in whose name."""

    host: str
    port: int
    encryption: Encryption
    sender: Address
    user: str | None = None
    password: str = field(default="", repr=False)
    cafile: str | None = None
    """Whom to trust, if not the authorities that the system trusts."""
    timeout: float = 30.0

    @classmethod
    def at(cls, url: str, sender: str) -> MailServer:
        """Read `smtp://user:password@host:587`, `smtps://…`, with `?starttls=never` and `?cafile=…`."""
        try:
            said, port = urlsplit(url), urlsplit(url).port
            options = dict(parse_qsl(said.query, strict_parsing=True)) if said.query else {}
        except ValueError:
            raise _wrong("no address", _ADDRESS) from None
        if said.scheme not in ("smtp", "smtps") or not said.hostname or set(options) - {"starttls", "cafile"}:
            raise _wrong("no address of a mail server", _ADDRESS)
        encryption = _encryption(said.scheme, options.get("starttls", "require"))
        if encryption == "none" and said.username and said.hostname not in _LOCAL:
            raise _wrong("the password would go over the network in the clear", "leave out starttls=never")
        return cls(
            said.hostname,
            port or _PORTS[encryption],
            encryption,
            _sender(sender),
            unquote(said.username) if said.username else None,
            unquote(said.password or ""),
            options.get("cafile"),
        )


_ADDRESS = "use smtp://user:password@host:587, or smtps://"


def _encryption(scheme: str, starttls: str) -> Encryption:
    if starttls not in ("require", "never"):
        raise _wrong(f"starttls={starttls} is unknown", "use starttls=require or starttls=never")
    if scheme == "smtps":
        return "tls"
    return "starttls" if starttls == "require" else "none"


def _sender(said: str) -> Address:
    name, address = parseaddr(said)
    name = _plain(name)
    try:
        return Address(name, addr_spec=Recipient.read(Recipient(EMAIL, address)).address)
    except (ContractError, ValueError):
        raise ConfigurationError(
            "no address of mail", field="mail_from", fix="use one like Duly <duly@example.com>"
        ) from None


def _wrong(message: str, fix: str) -> ConfigurationError:
    return ConfigurationError(message, field="smtp_url", fix=fix)


class Email:
    """The channel `email`: one connection a message, on a thread."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    def send(self, message: Message) -> None:
        """Hand it to the mail server, which takes it or says why not."""
        letter = written(message, self._server.sender)
        try:
            self._hand_in(letter, message.recipient)
        except smtplib.SMTPRecipientsRefused as error:
            [(code, said)] = error.recipients.values()
            raise _judged(code, said) from None
        except smtplib.SMTPDataError as error:
            raise _judged(error.smtp_code, _bytes(error.smtp_error)) from None
        except (smtplib.SMTPException, OSError) as error:
            log.warning("no mail could be sent: %s", redact(str(error) or type(error).__name__))
            raise smtplib.SMTPException(_trouble(error)) from None

    def _hand_in(self, letter: bytes, recipient: str) -> None:
        connection = self._connect()
        try:
            connection.sendmail(self._server.sender.addr_spec, [recipient], letter)
        finally:
            # It has the message, or has refused it: how it says good-bye changes nothing.
            with suppress(smtplib.SMTPException, OSError):
                connection.quit()

    def _connect(self) -> smtplib.SMTP:
        """A connection that may be used: encrypted as it must be, and logged in."""
        server, name = self._server, self._server.sender.domain
        if server.encryption == "tls":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host, server.port, name, timeout=server.timeout, context=self._trust()
            )
        else:
            connection = smtplib.SMTP(server.host, server.port, name, timeout=server.timeout)
        try:
            if server.encryption == "starttls":
                connection.starttls(context=self._trust())  # raises if the server has none
            if server.user is not None:
                connection.login(server.user, server.password)
        except BaseException:
            connection.close()
            raise
        return connection

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._server.cafile)


def written(message: Message, sender: Address) -> bytes:
    """A notification as mail. Its id is the same at each try, so that doubles can be told."""
    try:
        letter = _letter(message, sender)
        raw = letter.as_bytes()
    except (MessageError, ValueError):
        raise _unsafe() from None
    read = BytesParser(policy=SMTP).parsebytes(raw)
    if read.keys() != letter.keys() or any(c in str(value) for value in read.values() for c in "\r\n"):
        raise _unsafe()
    return raw


def _unsafe() -> Fail:
    return Fail("no letter can be made of it", code="email.unsafe")


def _letter(message: Message, sender: Address) -> EmailMessage:
    letter = EmailMessage(policy=SMTP)
    letter["From"] = sender
    letter["To"] = Address(addr_spec=message.recipient)
    letter["Subject"] = _plain(message.subject)
    letter["Date"] = format_datetime(datetime.now(UTC))
    letter["Message-ID"] = f"<{message.notification_id}@{sender.domain}>"
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(message.body)
    letter["Content-Language"] = message.locale
    return letter


def _plain(text: str) -> str:
    """One line, in which nothing is taken for encoded text."""
    return " ".join(printable(text).split()).replace(_ENCODED, "= ?")


def _judged(code: int, said: bytes) -> Exception:
    """What the server's refusal of this one message means."""
    text = f"the mail server said: {_code(code, said)}"
    if code < 500:
        return smtplib.SMTPException(text)
    if _NO_SUCH_ADDRESS.match(said):
        return Bounced(text)
    return Fail(text, code="email.refused")


def _code(code: int, said: bytes) -> str:
    """The codes of an answer. Orgs read them, and its words may name machines and accounts of ours."""
    status = _STATUS.match(said)
    return f"{code} {status[0].decode()}" if status else str(code)


def _trouble(error: Exception) -> str:
    """What is wrong between the mail server and us, in words of our own."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"the mail server refused the log-in: {_code(error.smtp_code, _bytes(error.smtp_error))}"
        case smtplib.SMTPResponseException():
            return f"the mail server said: {_code(error.smtp_code, _bytes(error.smtp_error))}"
        case smtplib.SMTPNotSupportedError():
            return "the mail server does not offer STARTTLS, or no log-in"
        case ssl.SSLError():
            return "the mail server's certificate is not trusted, or it cannot encrypt"
        case ConnectionRefusedError():
            return "the mail server refused the connection"
        case TimeoutError():
            return "the mail server did not answer in time"
    return "the mail server cannot be reached"


def _bytes(said: bytes | str) -> bytes:
    return said if isinstance(said, bytes) else said.encode()
