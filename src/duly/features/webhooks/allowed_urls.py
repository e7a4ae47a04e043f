"""Where messages may go, by their address: to public hosts, and to what the installation allows."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import SplitResult, urlsplit

from duly.core.errors import ContractError
from duly.features.webhooks.public_addresses import Address, is_public, literal

_LONGEST = 2_000
_NEVER = frozenset(' "<>\\^`{|}')
_NO_ADDRESS = "not the address of a web service"


class Places:
    """What an installation says about places."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        """`allow`: hosts, addresses and networks that may be private, and may be spoken to without TLS."""
        self._names, self._nets = _allowed(allow)

    def check_url(self, url: str) -> str:
        """The address of an endpoint, if nothing is to be said against it before the network is asked."""
        parts = _split(url)
        if parts.username is not None or parts.password is not None:
            raise _wrong("it holds a user or a password", "leave them out: messages are signed")
        if parts.fragment:
            raise _wrong("it has a fragment, which is never sent", "leave out what follows the #")
        host, port = parts.hostname or "", parts.port
        if self.is_allowed(host):
            return url
        if parts.scheme != "https":
            raise _wrong("plain HTTP can be read on its way", "use https://, or have the host allowed")
        if port is not None and port != 443 and port < 1024:
            raise _wrong(f"port {port} belongs to other services", "use 443, or one from 1024 on")
        address = literal(host)
        if address is not None and not is_public(address):
            raise _wrong("not a public address", "name a public host, or have this one allowed")
        return url

    def is_allowed(self, host: str) -> bool:
        """Whether the installation says that this host is all right."""
        address = literal(host)
        return host.rstrip(".").lower() in self._names if address is None else self.is_near(address)

    def is_near(self, address: Address) -> bool:
        """Whether an address is of a network that the installation allows."""
        return any(address in net for net in self._nets if net.version == address.version)


def _split(url: object) -> SplitResult:
    if not isinstance(url, str) or len(url) > _LONGEST or not _is_plain(url):
        raise _wrong(_NO_ADDRESS, f"write https://host/path, ASCII only, up to {_LONGEST} characters")
    try:
        parts = urlsplit(url)
        if parts.scheme in ("https", "http") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise _wrong(_NO_ADDRESS, "write https://host/path")


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and not _NEVER.intersection(url)


def _allowed(allow: Iterable[str]) -> tuple[frozenset[str], list[IPv4Network | IPv6Network]]:
    names, nets = set(), []
    for one in allow:
        try:
            nets.append(ip_network(one, strict=False))
        except ValueError:
            names.add(one.rstrip(".").lower())
    return frozenset(names), nets


def _wrong(said: str, fix: str) -> ContractError:
    return ContractError(said, field="url", fix=fix)
