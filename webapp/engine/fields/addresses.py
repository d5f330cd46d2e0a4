"""Addresses of networks: IPv4, IPv6, MAC."""

from __future__ import annotations

import ipaddress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.fields.base import IndexedType, OptionsModel
from webapp.engine.fields.code_parts import HEX, Part, Pick, Run
from webapp.engine.fields.codes import Code, CodeType
from webapp.engine.fields.joining import FEW_ROWS, joined

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_SIXTEEN = np.uint64(16)
_LOW = np.uint64(0xFFFF)

# RFC 1918.
_PRIVATE = (("10.0.0.0", 1 << 24), ("172.16.0.0", 1 << 20), ("192.168.0.0", 1 << 16))

# IANA IPv4 Special-Purpose Address Registry (RFC 6890): what is not for hosts of the internet. Blocks smaller than a
# /16 take the /16 they lie in out of the draw.
_SPECIAL = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/16",
    "192.31.0.0/16", "192.52.0.0/16", "192.88.0.0/16", "192.168.0.0/16", "192.175.0.0/16", "198.18.0.0/15",
    "198.51.0.0/16", "203.0.0.0/16", "224.0.0.0/3",
)  # fmt: skip


@cache
def _pairs(separator: str) -> pa.Array:
    """The texts ``0.0`` to ``255.255``, with ``separator`` after them."""
    numbers = pa.array(np.arange(256)).cast(pa.string())
    high = numbers.take(pa.array(np.repeat(np.arange(256), 256)))
    low = numbers.take(pa.array(np.tile(np.arange(256), 256)))
    return pc.binary_join_element_wise(high, ".", low, separator, "")


def ipv4_text(numbers: np.ndarray) -> pa.Array:
    """``uint64[n]`` below 2**32 in dotted form."""
    if numbers.size <= FEW_ROWS:
        dotted = [f"{n >> 24}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in numbers.tolist()]
        return pa.array(dotted, pa.string())
    return joined((_pairs("."), numbers >> _SIXTEEN), (_pairs(""), numbers & _LOW))


@cache
def _public() -> np.ndarray:
    """``uint64[k]``: the upper sixteen bits of addresses that hosts of the internet may have."""
    taken = np.zeros(1 << 16, bool)
    for block in map(ipaddress.IPv4Network, _SPECIAL):
        first = int(block.network_address) >> 16
        taken[first : first + (1 << (16 - block.prefixlen))] = True
    return np.flatnonzero(~taken).astype(np.uint64)


class Ipv4(IndexedType):
    """Addresses of a network, or private ones (RFC 1918); else such as hosts of the internet have."""

    name = "ipv4"
    label = "IPv4"
    category = "internet"
    description = "An IPv4 address: of the internet, of private networks, or of one network."
    aliases = (
        "ip",
        "ip address",
        "ip address v4",
        "ipv4 address",
        "ip v4",
        "inet",
        "ipv4 private",
        "ipv4 public",
    )
    example = "81.204.17.93"
    dtype = pa.string()
    max_length = 15

    class Options(OptionsModel):
        cidr: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="The network, such as 10.20.0.0/16.",
            examples=["10.20.0.0/16"],
        )
        private: bool = Field(False, description="Addresses of private networks (RFC 1918).")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._network: tuple[int, int] | None = None
        if options.cidr is not None:
            if options.private:
                text = "A network says by itself whether it is private."
                compiler.fault(field, "options.private", "conflict", text, "Give cidr or private.")
            self._network = _hosts(field, options.cidr, compiler)
        self.size = self._count()

    def _count(self) -> int:
        if self._network:
            return self._network[1]
        return sum(size for _, size in _PRIVATE) if self.options.private else _public().size << 16

    @classmethod
    def capacity(cls) -> int:
        return _public().size << 16

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        if self._network:
            return ipv4_text(index + np.uint64(self._network[0]))
        if not self.options.private:
            return ipv4_text((_public()[index >> _SIXTEEN] << _SIXTEEN) | (index & _LOW))
        numbers, below = index, 0
        for first, size in _PRIVATE:
            start = np.uint64((int(ipaddress.IPv4Address(first)) - below) % (1 << 64))
            numbers = np.where(index >= np.uint64(below), index + start, numbers)
            below += size
        return ipv4_text(numbers)


def _hosts(field: FieldSpec, cidr: str, compiler: Compiler) -> tuple[int, int] | None:
    """First address and number of addresses of a network, without its own and the broadcast address."""
    try:
        network = ipaddress.IPv4Network(cidr.strip(), strict=False)
    except ValueError:
        text = f'"{cidr}" is no IPv4 network.'
        compiler.fault(field, "options.cidr", "wrong_format", text, "Write it as 10.20.0.0/16.")
        return None
    first, size = int(network.network_address), network.num_addresses
    return (first + 1, size - 2) if network.prefixlen <= 30 else (first, size)


class Ipv6(CodeType):
    """Addresses in the one spelling of RFC 5952. Drawn groups have four digits and do not begin with 0, so that
    nothing is left out of them."""

    name = "ipv6"
    label = "IPv6"
    category = "internet"
    description = "An IPv6 address, of the range for documentation (2001:db8::/32) or of one network."
    aliases = ("ip address v6", "ipv6 address", "ip v6", "inet6")
    example = "2001:db8:7c4d:91e0:a3f2:5b18:c6d7:2e4f"

    class Options(OptionsModel):
        cidr: str = Field(
            "2001:db8::/32",
            max_length=limits.MAX_NAME_CHARS,
            description="The network.",
            examples=["fd12:3456::/32"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            network = ipaddress.IPv6Network(options.cidr.strip(), strict=False)
        except ValueError:
            text = f'"{options.cidr}" is no IPv6 network.'
            compiler.fault(field, "options.cidr", "wrong_format", text, "Write it as 2001:db8::/32.")
            return
        self.use(compiler.vocabulary.shared(("ipv6", str(network)), lambda: _ipv6(network)))


def _ipv6(network: ipaddress.IPv6Network) -> Code:
    address, groups = int(network.network_address), []
    for place in range(8):
        value = address >> (112 - 16 * place) & 0xFFFF
        free = min(16, max(0, 16 * place + 16 - network.prefixlen))
        groups.append(f"{value:x}" if not free else Pick(_widest(value, free)))
    return Code(*_joined(groups))


@lru_cache(maxsize=32)
def _widest(first: int, bits: int) -> tuple[str, ...]:
    """Of the groups whose last ``bits`` are free those of most digits."""
    texts = [f"{value:x}" for value in range(first, first + (1 << bits))]
    return tuple(text for text in texts if len(text) == len(texts[-1]))


def _joined(groups: list[str | Pick]) -> list[Part]:
    """Groups with colons; the longest run of two or more fixed zeros, the first of equals, as two colons."""
    zero = [group == "0" for group in groups]
    runs = [(start, end) for start in range(8) for end in range(start + 2, 9) if all(zero[start:end])]
    start, end = max(runs, key=lambda run: (run[1] - run[0], -run[0]), default=(8, 8))
    parts: list[Part] = []
    for place, group in enumerate(groups):
        if start <= place < end:
            if place == start:
                parts.append("::")
        else:
            parts += [":", group] if place and place != end else [group]
    return parts


class MacAddress(CodeType):
    """Addresses that are administered locally, for one card: no maker has them."""

    name = "mac_address"
    label = "MAC Address"
    category = "internet"
    description = "A MAC address of the locally administered kind, which no maker has."
    aliases = ("mac", "ethernet address", "macaddr", "hardware address")
    example = "4e:9f:2c:71:b0:38"

    class Options(OptionsModel):
        separator: Literal[":", "-", "."] = Field(
            ":", description="Between pairs; a dot between groups of four."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        separator = options.separator
        self.use(compiler.vocabulary.shared(("mac", separator), lambda: _mac(separator)))

    @classmethod
    def capacity(cls) -> int:
        return 1 << 46


def _mac(separator: str) -> Code:
    # IEEE 802, section 8.4: the second lowest bit of the first byte says local, the lowest says group.
    parts: list[Part] = [Run(HEX), Run("26ae")]
    for pair in range(1, 6):
        if separator != "." or pair % 2 == 0:
            parts.append(separator)
        parts.append(Run(HEX, 2))
    return Code(*parts)
