"""Handing mails in: the only place that speaks SMTP. The server is the operator's own setting, so the address guard has
no say; its certificate is verified, and a password leaves by TLS alone."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage

from webapp import limits
from webapp.config_mail import MailServer


class MailError(Exception):
    """A mail was not taken. `permanent`: it never will be; else it may be later. The message names no password."""

    def __init__(self, message: str, permanent: bool = False) -> None:
        self.message, self.permanent = message, permanent
        super().__init__(message)


class Door:
    """An open way to the server, for one mail after the other. Made by `opened`."""

    def __init__(self, client: smtplib.SMTP) -> None:
        self._client = client

    def hand_in(self, mail: EmailMessage, sender: str, recipient: str) -> None:
        """Give one mail to the server, which has taken it when this returns. Raises MailError."""
        try:
            self._client.send_message(mail, sender, [recipient])
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()))
            raise _refused("The server refuses this recipient", code, said) from None
        except smtplib.SMTPResponseException as error:
            # A sender that is refused is the operator's to mend, and then this mail can go.
            theirs = isinstance(error, smtplib.SMTPSenderRefused)
            told = (
                "The server refuses the address of MAIL_FROM"
                if theirs
                else "The server does not take this mail"
            )
            raise _refused(told, error.smtp_code, error.smtp_error, may_pass=theirs) from None
        except smtplib.SMTPNotSupportedError:
            raise MailError(
                "The server takes no addresses with letters beyond ASCII.", permanent=True
            ) from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise MailError(f"The connection to the server broke off ({type(error).__name__}).") from None


@contextmanager
def opened(server: MailServer) -> Iterator[Door]:
    """A connection to the server, with TLS and signed in. Raises MailError, never a permanent one: what is wrong with
    the server is not the mail's fault."""
    client = _connected(server)
    try:
        yield Door(client)
    finally:
        with contextlib.suppress(OSError, smtplib.SMTPException):
            client.quit()
        client.close()


def _connected(server: MailServer) -> smtplib.SMTP:
    client: smtplib.SMTP | None = None
    try:
        timeout = limits.MAIL_TIMEOUT_SECONDS
        if server.implicit:
            client = smtplib.SMTP_SSL(server.host, server.port, timeout=timeout, context=_context(server))
        else:
            client = smtplib.SMTP(server.host, server.port, timeout=timeout)
            if server.tls:
                client.starttls(context=_context(server))
        if server.user:
            client.login(server.user, server.password)
    except Exception as error:
        if client is not None:
            client.close()
        raise _told(error, server) from None
    return client


def _context(server: MailServer) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if server.ca:
        context.load_verify_locations(server.ca)
    return context


def _told(error: Exception, server: MailServer) -> MailError:
    """Why there is no way to the server, in our words: those of the library may hold what was sent."""
    where = f"{server.host}:{server.port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return MailError(f"The certificate of {where} is not trusted: {error.verify_message}.")
    if isinstance(error, ssl.SSLError):
        return MailError(f"No TLS connection to {where} could be agreed on. Check smtp:// against smtps://.")
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return MailError(f"{where} offers no STARTTLS, or no way to sign in; see SMTP_URL.")
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return MailError(f"{where} refuses the user or the password of SMTP_URL (code {error.smtp_code}).")
    if isinstance(error, smtplib.SMTPResponseException):
        return MailError(f"{where} turned us away (code {error.smtp_code}).")
    if isinstance(error, (OSError, smtplib.SMTPException)):
        return MailError(f"{where} cannot be reached ({type(error).__name__}).")
    raise error


def _refused(told: str, code: int, said: bytes | str, may_pass: bool = False) -> MailError:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    text = "".join(sign if sign.isprintable() else " " for sign in text)[: limits.MAIL_REASON_CHARS]
    permanent = not may_pass and 500 <= code < 600  # RFC 5321, 4.2.1: 4yz may pass, 5yz stays
    return MailError(f"{told} ({code} {' '.join(text.split())}).", permanent)
