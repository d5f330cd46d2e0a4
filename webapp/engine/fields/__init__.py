"""The catalogue: every field type there is, and every kind of thing that fields can share."""

from __future__ import annotations

from webapp.engine.fields import (
    addresses,
    cards,
    choice,
    company,
    contact,
    currencies,
    distributed,
    finance,
    government,
    identity,
    internet,
    logic,
    misc,
    number,
    person,
    person_group,
    place,
    place_group,
    product,
    street,
    structure,
    text_types,
    time,
)
from webapp.engine.fields.base import FieldType, GroupKind

REGISTRY: tuple[type[FieldType], ...] = (
    # number
    number.Number,
    number.Float,
    number.Boolean,
    number.RowNumber,
    number.Sequence,
    distributed.Normal,
    distributed.Lognormal,
    distributed.Exponential,
    distributed.Pareto,
    distributed.Zipf,
    distributed.Poisson,
    distributed.Binomial,
    distributed.Geometric,
    # identity
    identity.Uuid,
    identity.Ulid,
    identity.NanoId,
    identity.MongoObjectId,
    # text
    text_types.Words,
    text_types.Sentences,
    text_types.Paragraphs,
    text_types.Lorem,
    text_types.RandomString,
    text_types.Regexp,
    text_types.CharacterSequence,
    text_types.Emoji,
    # choice
    choice.Custom,
    choice.Enum,
    choice.ListSequential,
    choice.Mapped,
    # logic
    logic.Constant,
    logic.Null,
    logic.Derived,
    # structure
    structure.Nested,
    # person
    person.Name,
    person.FirstName,
    person.LastName,
    person.MiddleName,
    person.Username,
    person.Sex,
    person.Gender,
    person.JobTitle,
    person.Department,
    person.Avatar,
    # contact
    contact.Email,
    contact.PhoneNumber,
    # place
    street.Address,
    street.StreetAddress,
    street.StreetName,
    place.City,
    place.State,
    place.StateAbbr,
    place.ZipCode,
    place.Country,
    place.CountryCode,
    place.Latitude,
    place.Longitude,
    place.TimeZone,
    # company
    company.CompanyName,
    # time
    time.Date,
    time.DateTime,
    time.Time,
    time.Epoch,
    time.Month,
    time.Weekday,
    # finance
    finance.Iban,
    finance.Bic,
    finance.RoutingNumber,
    finance.AccountNumber,
    finance.AccountName,
    cards.CreditCardNumber,
    cards.CreditCardType,
    cards.Cvv,
    cards.CardExpiry,
    currencies.Currency,
    currencies.CurrencyName,
    currencies.CurrencyCode,
    currencies.CurrencySymbol,
    finance.EthereumAddress,
    # government
    government.TaxId,
    government.VatId,
    government.Ssn,
    government.Ein,
    government.NhsNumber,
    government.Siren,
    government.Siret,
    # company: goods
    product.Product,
    product.ProductName,
    product.ProductCategory,
    product.Sku,
    product.Ean13,
    product.Ean8,
    product.Upc,
    product.Isbn,
    product.Issn,
    # internet
    internet.Url,
    internet.DomainName,
    addresses.Ipv4,
    addresses.Ipv6,
    addresses.MacAddress,
    internet.UserAgent,
    internet.HttpMethod,
    internet.HttpStatus,
    internet.MimeType,
    internet.FileName,
    internet.Password,
    # misc
    misc.Color,
    misc.HexColor,
    misc.RgbColor,
)

GROUP_KINDS: dict[str, type[GroupKind]] = {
    "card": cards.CardKind,
    "currency": currencies.CurrencyKind,
    "person": person_group.Person,
    "place": place_group.Place,
    "product": product.ProductKind,
}

BY_NAME: dict[str, type[FieldType]] = {kind.name: kind for kind in REGISTRY}


def plain(name: str) -> str:
    """A name as it is compared: letters and digits only, in lower case."""
    return "".join(ch for ch in name.lower() if ch.isalnum())


_FOUND_BY = {plain(alias): kind for kind in REGISTRY for alias in (*kind.aliases, kind.label, kind.name)}


def find(name: str) -> type[FieldType] | None:
    """The type called ``name``, by its own name, its label or an alias."""
    return _FOUND_BY.get(plain(name))
