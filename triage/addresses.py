"""Which addresses of an API may be asked: the one that is set, and what it leads to.

Why it exists: a token goes wherever a request goes. So an address is read by one narrow pattern
instead of a tolerant parser, of an address in an answer only the query counts, and a name that
leads somewhere else than it should is noticed before the first byte is sent. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import parse_qsl

_URL: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._-]+)*)/?"
    r"(?:\?(?P<query>[A-Za-z0-9._~%=&+:-]*))?"
)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PUBLIC: Final = re.compile(r"api\.github\.com|(?:[a-z0-9-]+\.)+ghe\.com")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_HTTPS_PORT: Final = "443"
_DOTS: Final = frozenset({".", ".."})
_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_PAGE_NAMES: Final = frozenset({"page", "per_page", "after", "before"})

IpAddress = IPv4Address | IPv6Address


def api_address(url: str) -> str:
    """Return the address of an API, without a closing slash.

    It is https on its own port; http is for this machine alone.

    Raises:
        ValueError: it is no such address; the message quotes nothing of it.
    """
    found = _URL.fullmatch(url)
    if found is None or found["query"] is not None or _has_dots(found["path"]):
        raise ValueError("is no plain https address, without credentials, query or dots")
    host = found["host"].lower()
    port = f":{found['port']}" if found["port"] else ""
    if host not in _LOOPBACK:
        if found["scheme"] != "https" or found["port"] not in {None, _HTTPS_PORT}:
            raise ValueError("is not https on port 443, which only this machine may do without")
        if not _is_name_or_address(host):
            raise ValueError("names a machine that is not asked")
    return f"{found['scheme']}://{host}{port}{found['path']}"


def may_connect(address: str, peer: str) -> bool:
    """Tell whether `peer`, which the name in an API's address led to, may be talked to.

    GitHub's own names lead to public addresses, those of this machine to itself, and any other
    to neither this machine nor what only answers on its own network segment.

    Args:
        address: as `api_address` gave it.
        peer: the IP address that was connected to.
    """
    found = _URL.fullmatch(address)
    try:
        ip = _unwrapped(ip_address(peer.partition("%")[0]))
    except ValueError:
        return False
    if found is None:
        return False
    if found["host"] in _LOOPBACK:
        return ip.is_loopback
    if _PUBLIC.fullmatch(found["host"]):
        return ip.is_global and not ip.is_multicast
    return _is_elsewhere(ip)


def next_page(address: str, link: str) -> Mapping[str, str]:
    """Return what a link to the next page asks for; nothing else of it is ever used.

    Args:
        address: of the API that the link came from, as `api_address` gave it.
        link: the whole address of the next page.

    Raises:
        ValueError: it leads to another place, or asks for no page.
    """
    own, found = _URL.fullmatch(address), _URL.fullmatch(link)
    if own is None or found is None or _has_dots(found["path"]):
        raise ValueError("the link to the next page is no plain address")
    if _origin(own) != _origin(found) or not f"{found['path']}/".startswith(f"{own['path']}/"):
        raise ValueError("the link to the next page leads to another place")
    asked = {name: value for name, value in _pairs(found["query"]) if name in _PAGE_NAMES}
    if asked.keys().isdisjoint({"page", "after"}):
        raise ValueError("the link to the next page asks for no page")
    return asked


def _pairs(query: str | None) -> list[tuple[str, str]]:
    return parse_qsl(query or "", max_num_fields=20, errors="strict")


def _origin(found: re.Match[str]) -> tuple[str, str, str]:
    default = _HTTPS_PORT if found["scheme"] == "https" else "80"
    return found["scheme"], found["host"].lower(), found["port"] or default


def _has_dots(path: str) -> bool:
    return not _DOTS.isdisjoint(path.split("/"))


def _is_name_or_address(host: str) -> bool:
    """Tell a name, or an address in its usual form, from one that is written to mislead."""
    if host.startswith("["):
        try:
            return _is_elsewhere(_unwrapped(IPv6Address(host[1:-1])))
        except ValueError:
            return False
    parts = host.split(".")
    if "" in parts:
        return False
    if not _NUMBER.fullmatch(parts[-1]):
        return True
    try:
        return _is_elsewhere(IPv4Address(host))
    except ValueError:
        return False


def _is_elsewhere(ip: IpAddress) -> bool:
    """Whether it is another machine, further away than the own network segment."""
    odd = ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast
    return not (odd or ip.is_reserved)


def _unwrapped(ip: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    if any(ip in network for network in _NAT64):
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip
