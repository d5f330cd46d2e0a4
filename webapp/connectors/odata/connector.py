"""OData V2 and V4: settings of a service, and verification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from webapp import limits
from webapp.connectors.base import Capabilities, Settings, Stage
from webapp.connectors.http.authentication import SECRET_BINDING_SETTINGS, Auth, NoAuth, TlsSettings, Url
from webapp.connectors.http.channel import HttpConnector
from webapp.connectors.http.request_template import Headers
from webapp.connectors.http.retry import Retry
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.odata import metadata
from webapp.connectors.odata.channel import OdataChannel
from webapp.connectors.schema import Metadata
from webapp.connectors.verification import Step, run_stages
from webapp.net.session import NetError


def _check_path(path: str) -> str:
    """Check that a path is on the same host, because cookies and credentials are sent there."""
    if path.startswith("//") or "://" in path or "\\" in path or not path.isprintable():
        raise ValueError(
            "a path must be relative to the service root, or start with a single / for the host's root"
        )
    if len(path) > limits.HTTP_URL_CHARS:
        raise ValueError(f"a path must have at most {limits.HTTP_URL_CHARS} characters")
    return path


class Csrf(Settings):
    """Where a CSRF token is fetched if the service root issues none."""

    fetch_path: Annotated[str, Field(min_length=1), AfterValidator(_check_path)] | None = None
    """Relative to the service root, or to the host's root if it starts with a slash."""
    fetch_method: Literal["HEAD", "GET", "OPTIONS"] = "HEAD"


def _check_fixed(headers: dict[str, str]) -> dict[str, str]:
    if any("{{" in value for value in headers.values()):
        raise ValueError("these headers are the same for every row and cannot contain {{field}}")
    return headers


class OdataSettings(TlsSettings):
    """Settings to reach a service, and how rows are sent to it."""

    service_url: Url = Field(description="The service root: the parent address of $metadata.")
    odata_version: Literal["auto", "v2", "v4"] = Field("auto", description="auto: as declared in $metadata.")
    auth: Auth = Field(default_factory=NoAuth)
    default_headers: Annotated[Headers, AfterValidator(_check_fixed)] = Field(
        default_factory=dict, description="Sent with every request."
    )
    csrf: Csrf | Literal["off"] | None = Field(
        None, description="Where the CSRF token is fetched, if not at the service root. off: no token."
    )
    sap_client: Annotated[str, Field(pattern=r"^[0-9]{3}$")] | None = Field(
        None, description="sap-client: 100."
    )
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2}(-[A-Za-z]{2})?$")] | None = Field(
        None, description="sap-language: EN."
    )
    batch: bool = Field(False, description="Send rows in $batch requests, each row in its own changeset.")
    retry: Retry = Field(default_factory=Retry)
    parallel: int = Field(
        limits.HTTP_PARALLEL, ge=1, le=limits.HTTP_MAX_PARALLEL, description="Requests at the same time."
    )
    rate_per_second: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        None, description="Maximum requests per second."
    )
    capture: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]],
        Field(max_length=limits.HTTP_CAPTURES),
    ] = Field(
        default_factory=list, description="Properties to read from the response, in addition to the key."
    )
    idempotent: bool = Field(
        False, description="The service processes requests with the same Idempotency-Key only once."
    )


class OdataConnector(HttpConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "odata"
    title: ClassVar[str] = "OData"
    can: ClassVar[Capabilities] = Capabilities(
        modes=("insert", "update"), create_table=False, sql=False, transactions=False, schemas=False, by_row=True,
        fetch=True, name_chars=200,
    )  # fmt: skip
    has_entities: ClassVar[bool] = True
    reads_document: ClassVar[bool] = True
    Settings: ClassVar[type[Settings]] = OdataSettings
    settings: OdataSettings
    secret_independent_settings: ClassVar[frozenset[str]] = frozenset(OdataSettings.model_fields) - {
        "service_url", "auth", "csrf", *SECRET_BINDING_SETTINGS
    }  # fmt: skip

    def open(self, timeout: float | None = None) -> OdataChannel:
        """See `HttpConnector.open`. `timeout` applies to fetching the metadata."""
        return OdataChannel(self, timeout or limits.METADATA_SECONDS)

    @classmethod
    def read_document(cls, document: bytes) -> Metadata:
        """See `HttpConnector.read_document`: reads a `$metadata` document of V2 or V4."""
        return metadata.metadata(metadata.read(document))

    # --- verification

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. `permission` reads the metadata, `sample` a row of the first entity set
        that returns one."""
        steps: tuple[tuple[str, Step], ...] = (("resolve", self._resolve), ("connect", self._connect))
        with self.open(limits.TARGET_QUERY_SECONDS) as channel:
            steps += (
                ("tls", channel.check_tls),
                ("auth", channel.check_auth),
                ("permission", channel.check_permission),
                ("sample", channel.check_sample),
            )
            previous: Stage | None = None
            for stage in run_stages(tuple((name, _converting_errors(step)) for name, step in steps)):
                if previous is not None:
                    yield previous
                previous = replace(stage, message=self.redact(stage.message), hint=self.redact(stage.hint))
            if previous is not None:
                yield replace(previous, response=channel.response())

    def _address(self) -> tuple[str, int]:
        parts = urlsplit(self.settings.service_url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    def _resolve(self) -> str:
        host, port = self._address()
        return f"{host} resolves to {', '.join(self.gate.addresses(host, port))}."

    def _connect(self) -> str:
        host, port = self._address()
        self.gate.connect(host, port, limits.TARGET_CONNECT_SECONDS).close()
        return f"Port {port} accepts connections."


def _converting_errors(step: Step) -> Step:
    """Wrap a step to convert network errors."""

    def run() -> str:
        try:
            return step()
        except NetError as error:
            raise from_net_error(error) from None

    return run
