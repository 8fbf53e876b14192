"""Promises of redaction: listed kinds are found, harmless text is untouched, the work is linear."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from triage.policy.redaction import redact, redact_secrets, redact_value
from triage.resources import fixtures_path

VECTORS = json.loads(
    fixtures_path("security", "redaction_vectors.json").read_text(encoding="utf-8")
)
FOUND = {vector["kind"]: "".join(vector["parts"]) for vector in VECTORS if vector["must_redact"]}
HARMLESS = {v["kind"]: "".join(v["parts"]) for v in VECTORS if v["kind"].startswith("FP_")}
DISGUISED = {
    v["kind"]: "".join(v["parts"])
    for v in VECTORS
    if v["kind"] not in FOUND and v["kind"] not in HARMLESS
}
# The vectors name this one for the fault that it provokes, not for what it is.
KIND_OF = {"FN_word_boundary": "github_pat_classic"}
TOKEN = FOUND["github_pat_classic"]
A36 = "A1b2C3d4E5f6G7h8I9j0A1b2C3d4E5f6G7h8"


@pytest.mark.parametrize("kind", FOUND)
def test_each_listed_kind_is_found_and_named(kind: str) -> None:
    """Every vector that must be redacted is, under the name of its kind."""
    shown = redact(f"before {FOUND[kind]} after")
    assert f"[redacted:{KIND_OF.get(kind, kind)}]" in shown
    assert (True, True) == (shown.startswith("before "), shown.endswith(" after"))
    for secret in ("A1b2C3d4E5", "hunter2", "s3cr3t", "4111", "1120", "5550100", "0.113", "jane"):
        assert secret not in shown


@pytest.mark.parametrize("kind", HARMLESS)
def test_harmless_look_alikes_stay(kind: str) -> None:
    """Digests, UUIDs, labels and versions are not touched."""
    text = f"see {HARMLESS[kind]}, please"
    assert text == redact(text)


def test_what_is_known_to_be_missed() -> None:
    """Of the vectors that nobody has to find, wide letters are; no page claims the others."""
    expected = {
        "FN_fullwidth": True,
        "FN_json_escaped": False,
        "FN_split_by_newline": False,
        "FN_url_encoded": False,
    }
    assert expected == {kind: redact(text) != text for kind, text in DISGUISED.items()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The build of 2031-01-02T03:04:05Z took 1234567890123 ms",
        "commit 4111111111111111aaaaaaaaaaaaaaaaaaaaaaaa",
        "run 12345678901 of job 4111111111111112",
        "git@github.com:octo/demo.git",
        "@octo/api-team and @octocat own docs/*.md",
        "icon@2x and package@1.2.3",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "Chrome/120.0.6099.109 on Windows 10.0.19045.1, lib v203.0.113.7",
        "authorization: required for every endpoint",
        "branch task-Management-Update-the-2nd-page",
        "https://example.com:8443/a@b",
        "the bearer of good news, a cookie: tasty",
        "label component:api, owner backend-team, sk-question",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    """What issues and tools say every day comes back unchanged."""
    assert text == redact(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("github_oauth", "gho_" + A36),
        ("gitlab", "glpat-" + A36),
        ("anthropic", "sk-" + "ant-api03-" + A36),
        ("openai", "sk-" + "proj-" + A36),
        ("stripe", "rk_" + "test_" + A36),
        ("slack", "https://hooks.slack.com/services/" + "T0/B0/" + A36),
        ("google", "AI" + "za" + A36[:35]),
        ("aws_key_id", "AK" + "IA" + "ABCDEFGHIJKLMNOP"),
        ("aws_secret", "aws_secret_access_key = " + A36 + "/+aZ"),
        ("npm", "npm" + "_" + A36),
        ("pypi", "pypi-" + "AgE" + A36 + A36),
        ("auth_header", '"Authorization": "Basic ' + 'dXNlcjpodW50ZXIy"'),
        ("auth_header", "curl -H 'X: bearer " + A36 + "'"),
        ("cookie", "Set-Cookie: session=" + A36 + "; Path=/"),
        ("basic_url", "https://app:p@ss:w@rd@example.com/"),
        ("dsn", "redis://default:" + A36 + "@cache:6379/0"),
        ("phone_e164", "+1 (415) 555-0100"),
        ("card_luhn", "4111 1111 1111 1111"),
        ("card_luhn", "3782-822463-10005"),
        ("github_pat_classic", "\uff47\uff48\uff50\uff3f" + A36),
        ("github_pat_classic", "\U0001d420\U0001d421\U0001d429_" + A36),
        ("github_pat_classic", "g\u200bh\u00adp_" + A36),
    ],
)
def test_other_kinds_are_found(kind: str, text: str) -> None:
    """Further providers, headers and disguises are found as well."""
    shown = redact(text)
    assert f"[redacted:{kind}]" in shown
    assert A36[10:30] not in shown


def test_the_shortest_credential_is_found() -> None:
    """A text too short to search is shorter than anything that holds a credential."""
    assert redact("a://:p@") == "a://[redacted:dsn]@"


def test_hosts_stay_readable() -> None:
    """Of an address with a login only the login goes, so the reader still knows the place."""
    assert "postgresql://[redacted:pg_dsn]@db/app" == redact(FOUND["pg_dsn"])
    assert "https://[redacted:basic_url]@example.com/x" == redact(FOUND["basic_url"])


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\\n", "\n2031-01-02 INFO "])
def test_a_key_goes_as_a_whole(separator: str) -> None:
    """A private key is one hit however its lines are joined, and what surrounds it stays."""
    lines = ("-----BEGIN EC " + "PRIVATE KEY-----", A36, A36, "-----END EC PRIVATE KEY-----")
    assert "a [redacted:pem] b" == redact(f"a {separator.join(lines)} b")


def test_a_piece_of_a_key_goes_too() -> None:
    """A key that is cut by a size limit leaves nothing behind on either side of the cut."""
    begin, end = "-----BEGIN " + "PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    assert "a [redacted:pem]" == redact(f"a {begin}\n{A36}\n{A36[:9]}")
    assert "a\n[redacted:pem] b" == redact(f"a\n{A36}\n{A36}\n{end} b")


def test_overlapping_hits_become_one() -> None:
    """No piece of a secret survives between two hits."""
    assert "Authorization: [redacted:auth_header]" == redact(f"Authorization: Bearer {TOKEN}")


def test_values_are_redacted_all_the_way_down() -> None:
    """Strings, lists, objects and keys lose their secrets; other values and the shape stay."""
    value: JsonValue = {
        "a": [TOKEN, {"b": f"x {TOKEN}"}],
        TOKEN: 1,
        "n": 4111111111111111,
        "z": None,
    }
    shown = "[redacted:github_pat_classic]"
    expected = {"a": [shown, {"b": f"x {shown}"}], shown: 1, "n": 4111111111111111, "z": None}
    assert expected == redact_value(value)


def test_no_value_is_lost_when_keys_become_one() -> None:
    """Two secret keys stay two keys."""
    other = TOKEN.replace("A1", "B2")
    assert ["one", "two"] == list(_object(redact_value({TOKEN: "one", other: "two"})).values())


def _object(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value


PIECES = st.sampled_from(
    [*FOUND.values(), *HARMLESS.values(), " ", "\n", "@", ":", "//", "-", ".", "\u200b", "ü", "x="]
)
TEXTS = st.one_of(st.text(max_size=100), st.lists(PIECES, max_size=12).map("".join))


@pytest.mark.parametrize("kind", FOUND)
def test_redacting_again_changes_nothing(kind: str) -> None:
    """A text can pass several boundaries, and the marks of the first stay as they are."""
    shown = redact(f"before {FOUND[kind]} after")
    assert shown == redact(shown)


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(sorted(FOUND)))
def test_a_secret_never_survives_its_surroundings(before: str, after: str, kind: str) -> None:
    """Whatever stands around it, a token of a provider is not in the result."""
    if KIND_OF.get(kind, kind).startswith("github"):
        assert FOUND[kind] not in redact(before + FOUND[kind] + after)


UNITS = (
    "eyJ", "eyJ.", "ghp_", "sk-", "://a:", "a://b:c", "@a.", "a@", "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----", "A" * 40 + "\n", "1", "1.", "1-", "+1", "4111 ", "cookie:",
    "authorization: bearer ", "aws secret ", "\u200b", "\uff47", "A1b2C3d4", "hooks.slack.com/",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: ascii(unit[:12]))
def test_the_work_grows_linearly(unit: str) -> None:
    """Four times the text takes about four times as long, whatever pattern it teases."""
    short, long = (unit * (size // len(unit)) for size in (50_000, 200_000))
    assert _seconds(long) < 10 * max(_seconds(short), 0.005)


def _seconds(text: str) -> float:
    spent = []
    for _ in range(3):
        started = time.thread_time()
        redact(text)
        spent.append(time.thread_time() - started)
    return min(spent)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_any_value_keeps_its_shape(value: JsonValue) -> None:
    """Redaction changes strings only: the count of items and the other values stay."""
    shown = redact_value(value)
    assert type(value) is type(shown)
    if isinstance(value, list | dict) and isinstance(shown, list | dict):
        assert len(value) == len(shown)


def test_credentials_alone_can_be_taken_out() -> None:
    """What is looked up keeps its addresses, and loses its tokens all the same."""
    token = "ghp_" + "a1B2" * 9
    path = f"docs/ann@example.org/203.0.113.7/{token}"
    assert "docs/ann@example.org/203.0.113.7/[redacted:github_pat_classic]" == redact_secrets(path)
    assert "@" not in redact(path)
