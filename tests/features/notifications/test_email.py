"""The e-mail channel against a real SMTP server."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from smtplib import SMTPException

import pytest

from duly import Duly, Fail, Settings
from duly.core.errors import ConfigurationError, ContractError
from duly.features.notifications import email
from duly.features.notifications.channels import Bounced, Message
from duly.features.notifications.email import Email, MailServer
from duly.features.notifications.recipient import Recipient
from tests.features.notifications.mail_server import (
    PASSWORD,
    USER,
    ReceivedMail,
    make_certificate,
    start_mail_server,
)

SENDER = "Düly <duly@example.com>"


def message(
    recipient: str = "anna@example.com", subject: str = "Grüße", body: str = "Schön.\n.\nEnde"
) -> Message:
    return Message(uuid.uuid4(), uuid.uuid4(), recipient, subject, body, "de-AT", "job.completed", {})


def channel(server: ReceivedMail, options: str = "?starttls=never") -> Email:
    return Email(MailServer.parse(f"{server.url}{options}", SENDER))


def test_a_mail_has_its_headers_and_keeps_its_message_id() -> None:
    sent = message()
    with start_mail_server() as server:
        channel(server).send(sent)
        channel(server).send(sent)
    mail, again = server.messages
    assert mail["From"] == SENDER
    assert (mail["To"], mail["Subject"]) == ("anna@example.com", "Grüße")
    assert mail["Message-ID"] == again["Message-ID"] == f"<{sent.notification_id}@example.com>"
    assert (mail["Auto-Submitted"], mail["Content-Language"]) == ("auto-generated", "de-AT")
    assert abs(parsedate_to_datetime(mail["Date"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert mail.get_content().splitlines() == ["Schön.", ".", "Ende"]


def test_headers_and_recipients_cannot_be_injected() -> None:
    hidden = "=?utf-8?q?x=0d=0aReply-To:_eve=40example.com=0d=0a=0d=0a<h1>?="
    with start_mail_server() as server:
        for subject in ("a\r\nBcc: eve@example.com", hidden, f"Grüße {hidden} ü"):
            channel(server).send(message(subject=subject))
        sender = f'"{hidden}" <duly@example.com>'
        Email(MailServer.parse(f"{server.url}?starttls=never", sender)).send(message())
        channel(server).send(message())
        with pytest.MonkeyPatch.context() as patch:  # in case an encoded text ever gets through
            patch.setattr(email, "_single_line", lambda text: f"=?utf-8?q?{text}=0d=0aX-Eve:_1?=")
            with pytest.raises(Fail, match="not a valid mail"):
                channel(server).send(message(subject="x"))
    *odd, plain = server.messages
    assert odd[1]["Subject"] == hidden.replace("=?", "= ?")
    for mail in odd:
        assert mail.keys() == plain.keys()
        assert mail.get_content() == plain.get_content()
    for wrong in (
        "a@b\r\nRCPT TO:<eve@x.y>",
        "a b@example.com",
        "a@",
        "@b",
        "a@b@c",
        "a@-b.c",
        "a..b@c.d",
        "Ä@c.d",
        "root@localhost",
        "a%b.c@d.e",
        "a!b@c.d",
        "-ox@c.d",
        "=?utf-8?q?x=0d=0a?=@c.d",
    ):
        with pytest.raises(ContractError):
            Recipient.parse(f"email:{wrong}")
    assert str(Recipient.parse("email: Anna.B+x@Müller.example ")) == "email:anna.b+x@xn--mller-kva.example"


def test_the_reply_of_the_server_decides_about_a_retry() -> None:
    with start_mail_server() as server:
        server.refusals = {
            "later@example.com": ["451 4.3.0 relay-7.corp.internal [10.3.4.5] is busy"],
            "gone@example.com": ["550 5.1.1 no such user gone@example.com"],
            "spam@example.com": ["550 5.7.1 we do not like it"],
        }
        with pytest.raises(Exception, match="451") as later:
            channel(server).send(message("later@example.com"))
        assert not isinstance(later.value, Fail)
        assert str(later.value) == "the mail server replied: 451 4.3.0"
        with pytest.raises(Bounced, match=r"5\.1\.1"):
            channel(server).send(message("gone@example.com"))
        with pytest.raises(Fail, match=r"5\.7\.1") as refused:
            channel(server).send(message("spam@example.com"))
        assert not isinstance(refused.value, Bounced)
    with pytest.raises(SMTPException) as unreachable:  # the server has stopped
        channel(server).send(message())
    assert str(unreachable.value) == "the mail server refused the connection"
    assert server.messages == []


def test_nothing_is_sent_without_encryption(tmp_path: Path) -> None:
    with start_mail_server() as server:
        with pytest.raises(Exception, match="STARTTLS"):
            channel(server, "").send(message())
        assert (server.tries, server.messages) == (0, [])
    certificate = make_certificate(tmp_path)
    with start_mail_server(certificate, log_in=True) as server:
        with pytest.raises(SMTPException, match="certificate is not trusted"):  # made by a stranger
            channel(server, "").send(message())
        place = server.url.replace("://", f"://{USER}:s3cr%40t@")
        with pytest.raises(SMTPException, match=r"rejected the login: 535( \d\.\d\.\d)?$"):
            Email(MailServer.parse(place.replace("s3cr", "s3kr") + f"?cafile={certificate}", SENDER)).send(
                message()
            )
        assert server.tries == 0
        Email(MailServer.parse(f"{place}?cafile={certificate}", SENDER)).send(message())
    assert server.encrypted == [True]


def test_the_url_of_a_mail_server_is_parsed_and_checked() -> None:
    server = MailServer.parse("smtps://u%20ser:p%40ss@mail.example.com", SENDER)
    assert (server.host, server.port, server.encryption) == ("mail.example.com", 465, "tls")
    assert (server.user, server.password) == ("u ser", "p@ss")
    assert "p@ss" not in repr(server)
    assert MailServer.parse("smtp://mail.example.com", SENDER).encryption == "starttls"
    for wrong in (
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://h:port",
        "smtp://h?starttls=maybe",
        "smtp://h?starttl=never",
        f"smtp://u:{PASSWORD}@mail.example.com?starttls=never",
    ):
        with pytest.raises(ConfigurationError) as refused:
            MailServer.parse(wrong, SENDER)
        assert refused.value.field == "smtp_url"
        assert PASSWORD not in str(refused.value)
    with pytest.raises(ConfigurationError, match="mail_from"):
        MailServer.parse("smtp://h", "Duly")
    settings = Settings(smtp_url=f"smtp://u:{PASSWORD}@mail.example.com")
    assert PASSWORD not in repr(settings)
    with pytest.raises(ConfigurationError, match="mail_from"):
        Duly(settings).worker()
