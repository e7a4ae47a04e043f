"""Which addresses are public: the same for everybody on the internet, and nobody's own."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_SPECIAL = tuple(
    ip_network(net)
    for net in (
        "192.0.0.0/24",  # protocols of their own; not all of them are known to every Python
        "192.88.99.0/24",  # relays of 6to4, which nobody runs any more
        "2001::/23",  # Teredo, benchmarks, ORCHID
        "2002::/16",  # 6to4: an IPv4 address within
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    """Whether everybody on the internet would reach the same under this address."""
    inner = _within(address)
    if inner is not None:
        return is_public(inner)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if any(address in net for net in _SPECIAL if net.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def literal(host: str) -> Address | None:
    """The address that a host is written as; None if it is a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _within(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, where that is a known way to write it."""
    if isinstance(address, IPv4Address):
        return None
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.ipv4_mapped
