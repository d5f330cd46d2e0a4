"""Fields of the category contact, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class CallingCodeField(Field):
    """The code of a country in telephone numbers, such as +49."""

    type_name = "calling_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CompanyEmailField(Field):
    """An e-mail address derived from the person's names, at the domain of the row's company."""

    type_name = "company_email"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class EmailField(Field):
    """An e-mail address derived from the person's names, at a domain that receives no mail.

    domain: Domain after the @. Default: one of example.com, example.net and example.org.
    """

    type_name = "email"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        domain: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"domain": domain})


class MessagingHandleField(Field):
    """A user name in a messaging service, such as @anna.lee7.

    service: at: @anna.lee7 (Telegram, Slack, X). plain: anna.lee7 (Discord). matrix:
        @anna.lee7:example.org. skype: live:anna.lee7. mastodon: @anna.lee7@example.org.
    """

    type_name = "messaging_handle"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        service: Literal["at", "plain", "matrix", "skype", "mastodon"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"service": service})


class MobileField(Field):
    """A valid mobile phone number of the row's country.

    format: international (+33 6 42 40 18 05), national (06 42 40 18 05), e164 (+33642401805), or a
        pattern in which each # is a random digit.
    country: Country of the group's places, by name or code.
    """

    type_name = "mobile"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str = UNSET,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format, "country": country})


class PhoneNumberField(Field):
    """A valid phone number of the row's country.

    format: international (+33 6 42 40 18 05), national (06 42 40 18 05), e164 (+33642401805), or a
        pattern in which each # is a random digit.
    country: Country of the group's places, by name or code.
    kind: Landlines of the row's region, mobile numbers, or both.
    """

    type_name = "phone_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str = UNSET,
        country: str | None = UNSET,
        kind: Literal["any", "landline", "mobile"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format, "country": country, "kind": kind})


class SafeEmailField(Field):
    """An e-mail address derived from the person's names, always at a domain that receives no mail."""

    type_name = "safe_email"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
