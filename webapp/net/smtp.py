"""Send mail, the only place that uses SMTP.

The operator configures the server, so the address guard does not apply. Its certificate is verified, and
passwords are only sent over TLS.
"""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage

from webapp import limits
from webapp.config.values import MailServer


class MailError(Exception):
    """A mail was not accepted. If `permanent`, it never will be. The message contains no password."""

    def __init__(self, message: str, permanent: bool = False) -> None:
        self.message, self.permanent = message, permanent
        super().__init__(message)


class MailConnection:
    """A connection that can send several mails. Created by `open_mail_server`."""

    def __init__(self, client: smtplib.SMTP) -> None:
        self._client = client

    def send(self, mail: EmailMessage, sender: str, recipient: str) -> None:
        """Send one mail. The server has accepted it when this returns. Raises MailError."""
        try:
            self._client.send_message(mail, sender, [recipient])
        except smtplib.SMTPRecipientsRefused as error:
            code, reply = next(iter(error.recipients.values()))
            raise _rejection("The server rejected this recipient", code, reply) from None
        except smtplib.SMTPResponseException as error:
            # The operator can correct a rejected sender address, and then this mail can be sent.
            is_sender_refused = isinstance(error, smtplib.SMTPSenderRefused)
            message = (
                "The server rejected the address in MAIL_FROM"
                if is_sender_refused
                else "The server rejected this mail"
            )
            raise _rejection(
                message, error.smtp_code, error.smtp_error, is_temporary=is_sender_refused
            ) from None
        except smtplib.SMTPNotSupportedError:
            raise MailError(
                "The server does not support addresses with non-ASCII characters.", permanent=True
            ) from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise MailError(f"The connection to the server was lost ({type(error).__name__}).") from None


@contextmanager
def open_mail_server(server: MailServer) -> Iterator[MailConnection]:
    """Connect to the server with TLS, and sign in.

    Raises MailError, which is never permanent, because the mail is not the cause.
    """
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
        raise _connection_error(error, server) from None
    try:
        yield MailConnection(client)
    finally:
        with contextlib.suppress(OSError, smtplib.SMTPException):
            client.quit()
        client.close()


def _context(server: MailServer) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if server.ca:
        context.load_verify_locations(server.ca)
    return context


def _connection_error(error: Exception, server: MailServer) -> MailError:
    """Describe a failed connection without the library's message, which may contain what was sent."""
    address = f"{server.host}:{server.port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return MailError(f"The certificate of {address} is not trusted: {error.verify_message}.")
    if isinstance(error, ssl.SSLError):
        return MailError(
            f"A TLS connection to {address} could not be established. Check whether smtp:// or smtps:// is right."
        )
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return MailError(f"{address} does not support STARTTLS or signing in. Check SMTP_URL.")
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return MailError(f"{address} rejected the user or the password in SMTP_URL (code {error.smtp_code}).")
    if isinstance(error, smtplib.SMTPResponseException):
        return MailError(f"{address} rejected the connection (code {error.smtp_code}).")
    if isinstance(error, (OSError, smtplib.SMTPException)):
        return MailError(f"{address} could not be reached ({type(error).__name__}).")
    raise error


def _rejection(message: str, code: int, reply: bytes | str, is_temporary: bool = False) -> MailError:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    text = "".join(char if char.isprintable() else " " for char in text)[: limits.MAIL_REASON_CHARS]
    permanent = not is_temporary and 500 <= code < 600  # RFC 5321, 4.2.1: 4yz is temporary, 5yz is permanent
    return MailError(f"{message} ({code} {' '.join(text.split())}).", permanent)
