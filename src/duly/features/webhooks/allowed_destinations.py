"""The URLs and addresses that webhooks may be sent to: public ones over HTTPS, and those in the settings."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from duly.core.errors import ContractError

Address = IPv4Address | IPv6Address
_MAX_URL_LENGTH = 2_000
_FORBIDDEN_CHARACTERS = frozenset(' "<>\\^`{|}')
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_SPECIAL = tuple(
    ip_network(net)
    for net in (
        "192.0.0.0/24",  # protocol assignments; not every Python version knows all of them
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "2001::/23",  # Teredo, benchmarks, ORCHID
        "2002::/16",  # 6to4: contains an IPv4 address
        "3fff::/20",  # documentation
    )
)


class AllowedUrls:
    """The rules for URLs of endpoints."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        """`allow`: hosts, addresses and networks that may be private, and may be used without TLS."""
        self._hosts = set()
        self._networks = []
        for entry in allow:
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                self._hosts.add(_normalize(entry))

    def check(self, url: str) -> str:
        """Return the URL of an endpoint, or raise. The network guard checks the addresses of its host."""
        parts = _split(url)
        if parts.username is not None or parts.password is not None:
            raise _refused("contains a user or a password", "remove it: messages are signed")
        if parts.fragment:
            raise _refused("contains a fragment, which is never sent", "remove the part after #")
        host, port = parts.hostname or "", parts.port
        if self.allows_host(host):
            return url
        if parts.scheme != "https":
            raise _refused("plain HTTP is not encrypted", "use https://, or have the operator allow the host")
        if port is not None and port != 443 and port < 1024:
            raise _refused(f"port {port} belongs to other services", "use 443, or a port from 1024 on")
        address = parse_address(host)
        if address is not None and not is_public(address):
            raise _refused("not a public address", "use a public host, or have the operator allow this one")
        return url

    def allows_host(self, host: str) -> bool:
        """Return whether the installation allows a host, by its name or address."""
        address = parse_address(host)
        return _normalize(host) in self._hosts if address is None else self.allows_address(address)

    def allows_address(self, address: Address) -> bool:
        """Return whether an address belongs to an allowed network."""
        return any(address in network for network in self._networks if network.version == address.version)


def is_public(address: Address) -> bool:
    """Return whether an address is globally reachable, and the same host for everyone."""
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return is_public(embedded)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if any(address in network for network in _SPECIAL if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def parse_address(host: str) -> Address | None:
    """Return the address that a host is written as; None if it is a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _embedded_ipv4(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address represents by NAT64 or as a mapped address."""
    if isinstance(address, IPv4Address):
        return None
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.ipv4_mapped


def _split(url: object) -> SplitResult:
    if isinstance(url, str) and len(url) <= _MAX_URL_LENGTH and _is_plain(url):
        try:
            parts = urlsplit(url)
            if parts.scheme in ("https", "http") and parts.hostname and parts.port != 0:
                return parts
        except ValueError:
            pass
    raise _refused("not an HTTP URL", f"use https://host/path in ASCII, up to {_MAX_URL_LENGTH} characters")


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and not _FORBIDDEN_CHARACTERS.intersection(url)


def _normalize(host: str) -> str:
    return host.rstrip(".").lower()


def _refused(message: str, fix: str) -> ContractError:
    return ContractError(message, field="url", fix=fix)
