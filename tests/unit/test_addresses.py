"""Only plain addresses are asked, and an answer's own addresses lead nowhere else."""

from __future__ import annotations

import json
from typing import Final

import pytest

from triage.addresses import api_address, may_connect, next_page
from triage.resources import fixtures_path

GITHUB: Final = "https://api.github.com"
ENTERPRISE: Final = "https://github.example.com/api/v3"
VECTORS: Final = [
    (vector["input"], vector["expect"])
    for vector in json.loads(
        fixtures_path("security", "ssrf_vectors.json").read_text(encoding="utf-8")
    )
]
ADDRESSES: Final = [(url, expect) for url, expect in VECTORS if "://" in url.partition(" ")[0]]
# Whoever runs a worker may name any machine; that it is not GitHub's shows only beside GitHub's.
PLAIN_ELSEWHERE: Final = "https://api.github.com.attacker.example/"


def test_every_vector_but_the_redirect_is_an_address() -> None:
    """The one that is none is a redirect, and none is followed: the wire's own test plays it."""
    others = [entry for entry, _ in VECTORS if entry not in dict(ADDRESSES)]
    assert (15, ["302 from allowed host to http://169.254.169.254/"]) == (len(VECTORS), others)


@pytest.mark.parametrize(("url", "expect"), ADDRESSES)
def test_no_link_leads_away(url: str, expect: str) -> None:
    """Of all addresses that a link to the next page may have, only the API's own is used."""
    link = f"{url}?page=2"
    if expect == "allow":
        assert {"page": "2"} == next_page(GITHUB, link)
        return
    with pytest.raises(ValueError, match="the link to the next page"):
        next_page(GITHUB, link)


@pytest.mark.parametrize(("url", "expect"), ADDRESSES)
def test_no_base_address_misleads(url: str, expect: str) -> None:
    """An address that is written to be read in two ways is no address of an API."""
    if expect == "allow" or url == PLAIN_ELSEWHERE:
        assert url.rstrip("/") == api_address(url)
    elif url == "http://[::1]/":
        assert "http://[::1]" == api_address(url)
        assert not may_connect(GITHUB, "::1")
    else:
        with pytest.raises(ValueError, match=r"^(is|names) "):
            api_address(url)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (GITHUB, GITHUB),
        ("https://API.github.com/", GITHUB),
        ("https://api.github.com:443", "https://api.github.com:443"),
        (f"{ENTERPRISE}/", ENTERPRISE),
        ("https://10.1.2.3/api/v3", "https://10.1.2.3/api/v3"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://localhost:1", "http://localhost:1"),
        ("https://[fd00::1]", "https://[fd00::1]"),
        ("https://169.254.169.254", None),
        ("https://0177.0.0.1", None),
        ("https://[::ffff:127.0.0.1]", None),
        ("https://github.example.com:8443", None),
        ("http://github.example.com", None),
        ("https://user:secret@github.example.com", None),
        ("https://github.example.com?x=1", None),
        ("https://github.example.com/#x", None),
        ("https://github.example.com/{owner}", None),
        ("https://github.example.com/../x", None),
        ("https://github..com", None),
        ("https://github.example.com/a b", None),
        ("https://github.example.com\n", None),
        ("https://gïthub.com", None),
        ("github.example.com", None),
        ("", None),
    ],
)
def test_a_base_address_is_plain(url: str, address: str | None) -> None:
    """It is https on its own port, or this machine, and nothing hangs on it."""
    if address is not None:
        assert address == api_address(url)
        return
    with pytest.raises(ValueError, match=r"^(is|names) ") as error:
        api_address(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "peer", "may"),
    [
        (GITHUB, "140.82.121.6", True),
        (GITHUB, "2606:50c0:8000::153", True),
        (GITHUB, "127.0.0.1", False),
        (GITHUB, "10.0.0.1", False),
        (GITHUB, "100.64.0.1", False),
        (GITHUB, "169.254.169.254", False),
        (GITHUB, "::ffff:10.0.0.1", False),
        (GITHUB, "2002:7f00:1::", False),
        (GITHUB, "64:ff9b::7f00:1", False),
        (GITHUB, "224.0.0.1", False),
        (GITHUB, "api.github.com", False),
        ("https://acme.ghe.com", "10.0.0.1", False),
        (ENTERPRISE, "10.0.0.1", True),
        (ENTERPRISE, "fd00::1", True),
        (ENTERPRISE, "169.254.169.254", False),
        (ENTERPRISE, "fe80::1%eth0", False),
        (ENTERPRISE, "127.0.0.1", False),
        (ENTERPRISE, "64:ff9b::a9fe:a9fe", False),
        (ENTERPRISE, "::", False),
        ("http://127.0.0.1:80", "127.0.0.1", True),
        ("http://localhost:80", "::1", True),
        ("http://localhost:80", "10.0.0.1", False),
    ],
)
def test_a_name_leads_where_it_should(address: str, peer: str, may: bool) -> None:
    """GitHub's names lead to public addresses, others to no metadata service and not to us."""
    assert may is may_connect(address, peer)


@pytest.mark.parametrize(
    ("address", "link", "asked"),
    [
        (GITHUB, "https://api.github.com/repositories/7/labels?per_page=100&page=2", "2"),
        (GITHUB, "https://api.github.com:443/x?page=3&q=drop", "3"),
        (ENTERPRISE, "https://github.example.com/api/v3/x?page=2", "2"),
        (ENTERPRISE, "https://github.example.com/api/v30/x?page=2", None),
        (ENTERPRISE, "https://github.example.com/x?page=2", None),
        (GITHUB, "http://api.github.com/x?page=2", None),
        (GITHUB, "/x?page=2", None),
        (GITHUB, "https://api.github.com/x", None),
        (GITHUB, "https://api.github.com/x?" + "&".join(f"a{n}=1" for n in range(30)), None),
    ],
)
def test_of_a_link_only_the_page_is_used(address: str, link: str, asked: str | None) -> None:
    """The page that a link asks for is taken from it, if it leads to the same API."""
    if asked is None:
        with pytest.raises(ValueError, match=r"link to the next page|Max number of fields"):
            next_page(address, link)
        return
    assert asked == next_page(address, link)["page"]
