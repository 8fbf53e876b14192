"""Who may say anything: nothing is read, parsed or recorded without a signature that holds."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from tests.web.hooks import FIXTURES, PREVIOUS, SECRET, STRANGER, Hook, an_event, encoded, signature
from triage.web.signatures import is_signed

VECTORS: Final[list[dict[str, Any]]] = json.loads(
    (FIXTURES / "security" / "webhook_hmac_vectors.json").read_bytes()
)


async def test_all_vectors_are_answered_as_they_deserve(light_hook: Hook) -> None:
    """Each public vector gets its status; a delivery that is fine and asks for nothing gets 202."""
    answered = {}
    for vector in VECTORS:
        assert SECRET == vector["secret"]
        answer = await light_hook.post(
            base64.b64decode(vector["body_b64"]),
            X_Hub_Signature_256=vector["header"].encode("latin-1") or None,
        )
        answered[vector["name"]] = answer.status_code
    expected = {v["name"]: _status(v["expect"]) for v in VECTORS}
    assert expected == answered
    assert 12 == len(answered)
    assert ([], []) == (await light_hook.deliveries(), await light_hook.requests())


def _status(expect: int | str) -> int:
    """Read what a vector expects; 200 stands for any answer that is not an error."""
    status = int(str(expect)[:3])
    return 202 if status == 200 else status


async def test_without_a_signature_nothing_happens(light_hook: Hook) -> None:
    """401, no row, and the older SHA-1 header beside it changes nothing."""
    body = encoded(an_event())
    older = signature(body, kind="sha1")
    for header in (
        None,
        "",
        older,
        signature(body, STRANGER),
        signature(body).upper(),
        signature(body) + "00",
        signature(b"something else"),
    ):
        answer = await light_hook.post(body, X_Hub_Signature_256=header, X_Hub_Signature=older)
        assert (401, "signature") == (answer.status_code, answer.json()["code"]), header
    assert ([], []) == (await light_hook.deliveries(), await light_hook.requests())


async def test_nothing_is_parsed_before_the_signature_holds(light_hook: Hook) -> None:
    """What a stranger sends is not even looked at: broken JSON is 401, not 400."""
    body = b"[" * 100_000
    answer = await light_hook.post(body, X_Hub_Signature_256=signature(body, STRANGER))
    assert 401 == answer.status_code
    assert 400 == (await light_hook.post(body)).status_code


async def test_both_secrets_hold_during_a_rotation(light_hook: Hook) -> None:
    """A delivery that was signed with the secret before counts as well."""
    body = encoded(an_event())
    answer = await light_hook.post(body, X_Hub_Signature_256=signature(body, PREVIOUS))
    assert (202, "accepted") == (answer.status_code, answer.json()["outcome"])


def test_of_two_signatures_none_counts() -> None:
    """Whoever sends the header twice is not asked which one was meant."""
    good = signature(b"{}")
    assert is_signed(b"{}", [good], [SECRET.encode()])
    assert not is_signed(b"{}", [good, good], [SECRET.encode()])
    assert not is_signed(b"{}", [good], [])


TEXTS: Final = {
    "emoji": "\U0001f41b fails",
    "U+2028": "line\u2028separator",
    "escape": "\u001b[0m",
    "bidi": "\u202eevil",
    "NUL": "a\x00b",
    "backslash": "\\u001B",
}


async def test_any_text_is_accepted_as_it_was_signed(hook: Hook) -> None:
    """Bytes are signed, not a reading of them; the text arrives in the store unharmed."""
    for number, (name, title) in enumerate(TEXTS.items(), 1):
        event = an_event(title=title, number=number)
        raw = await hook.send(event)
        escaped = await hook.post(json.dumps(event, ensure_ascii=True).encode())
        assert [202, 202] == [raw.status_code, escaped.status_code], name
        assert ("accepted", "unchanged") == (raw.json()["outcome"], escaped.json()["code"]), name
        assert title == (await hook.document(raw.json()["request"]))["request"]["title"], name
    assert len(TEXTS) == len(await hook.requests())
