"""`triage audit`: whether the audit trail holds, and where it ends.

Why it exists: no chain shows by itself that its tail was cut off, or that all of it was written
anew. Whoever keeps the head somewhere else, and checks against it, sees both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import read_json
from triage.cli.output import Format, put, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store
from triage.contracts.approval import Digest
from triage.contracts.base import Contract, explain
from triage.contracts.canonical import digest_of
from triage.storage.audit import AuditHead, heads
from triage.storage.audit_ledger import Difference, LedgerFinding
from triage.storage.audit_verify import Finding, FindingCode, verify

MEANING: Final[Mapping[FindingCode | Difference, str]] = {
    FindingCode.EDITED: "its content is not what was hashed",
    FindingCode.GAP: "entries before it are missing",
    FindingCode.BROKEN_LINK: "it does not follow from the entry before it",
    FindingCode.HEAD_MISMATCH: "the chain's own head does not name this last entry, or was edited",
    FindingCode.TRUNCATED: "the chain ends here, before the head that was kept",
    FindingCode.REWRITTEN: "it is not the entry that the kept head names",
    Difference.STATE: "the ledger has the operation in another state than this last entry of it",
    Difference.EPOCH: "the ledger has the operation in another epoch than this last entry of it",
    Difference.CONTENT: "the ledger has another content or receipt than the entries tell",
    Difference.APPROVAL: "an approval is missing, or another one than the entry that recorded it",
    Difference.VOUCHER: "who was vouched for is missing, or another than its entry tells",
    Difference.ACCEPTANCE: "accepted rules are missing, or others than their entry tells",
    Difference.SWITCH: "a stop switch is missing, or does not stand as its last entry tells",
    Difference.TOMBSTONE: "what is left of a purged write is missing, or not what its entry tells",
    Difference.UNAUDITED: "the ledger has an operation that no entry tells of",
    Difference.MISSING: "the ledger lacks the operation that this last entry tells of",
    Difference.UNREADABLE: "the ledger's row cannot be read, nor compared",
}
NOT_HELD: Final = (
    "times other than an approval's end, leases, when and by what an approval was used, and the"
    " login of who was vouched for are not compared"
)
UNSEEN: Final = "without --head nobody can see whether the end of the trail was cut off"

AnyFinding = Finding | LedgerFinding


class KeptHead(Contract):
    """Where one tenant's chain ended when it was looked at; the empty tenant is everybody."""

    tenant: str
    seq: Annotated[int, Field(ge=1, le=2**53)]
    hash: Digest


_HEADS: Final = TypeAdapter(list[KeptHead])


def verify_trail(head_file: Path | None, format_: Format) -> None:
    """Check every chain, and print what is wrong.

    Raises:
        RefusedError: the trail does not hold, or there is no database.
        InputError: the file holds no head.
        StorageError: the database cannot be used.
    """
    kept = [] if head_file is None else _read_heads(head_file)
    own, findings = run(_verify(kept))
    tenants = {digest_of(head.tenant): head.tenant for head in [*own, *kept]}
    if format_ is Format.JSON:
        put_json(_as_json(own, findings, tenants))
    elif findings:
        put_table(
            ("TENANT", "ENTRY", "FINDING", "OPERATION", "MEANING"),
            [_cells(finding, tenants) for finding in findings],
        )
    if findings:
        raise RefusedError(_verdict(findings))
    if format_ is Format.TEXT:
        put(f"the audit trail holds (entries: {sum(h.seq for h in own)}, chains: {len(own)})")
        say(NOT_HELD)
    if head_file is None:
        say(UNSEEN)


def print_head(format_: Format) -> None:
    """Print the newest entry of every chain: `verify_trail` takes the JSON form.

    Raises:
        RefusedError: there is no database.
        StorageError: the database cannot be used.
    """
    found = run(_heads())
    if format_ is Format.JSON:
        put_json([_kept(head).model_dump(mode="json") for head in found])
    elif found:
        rows = [(head.tenant or "(everybody)", str(head.seq), head.hash) for head in found]
        put_table(("TENANT", "ENTRIES", "HASH"), rows)
    else:
        say("there is no entry yet")


def _verdict(findings: Sequence[AnyFinding]) -> str:
    if all(isinstance(finding, LedgerFinding) for finding in findings):
        return f"the trail holds, and the database is not what it tells (findings: {len(findings)})"
    return f"the audit trail does not hold (findings: {len(findings)})"


async def _verify(kept: Sequence[AuditHead]) -> tuple[list[AuditHead], list[AnyFinding]]:
    async with open_store(create=False) as store:
        return await heads(store, skip_unreadable=True), await verify(store, kept)


async def _heads() -> list[AuditHead]:
    async with open_store(create=False) as store:
        return await heads(store)


def _read_heads(file: Path) -> list[AuditHead]:
    document = read_json(file, "the head")
    try:
        kept = _HEADS.validate_python(document)
    except ValidationError as error:
        hint = "give the file that 'triage audit head' printed"
        raise InputError(explain(error, "the head", KeptHead, to_author=True), hint) from None
    if len({head.tenant for head in kept}) != len(kept):
        raise InputError("the head names a tenant twice")
    return [AuditHead(tenant=head.tenant, seq=head.seq, hash=head.hash) for head in kept]


def _kept(head: AuditHead) -> KeptHead:
    return KeptHead(tenant=head.tenant, seq=head.seq, hash=head.hash)


def _as_json(
    own: Sequence[AuditHead], findings: Sequence[AnyFinding], tenants: Mapping[str, str]
) -> dict[str, JsonValue]:
    return {
        "holds": not findings,
        "chains": len(own),
        "entries": sum(head.seq for head in own),
        "findings": [
            {
                "tenant": tenants.get(f.tenant_key),
                "seq": f.seq,
                "code": f.code.value,
                **({"operation_key": f.operation_key} if isinstance(f, LedgerFinding) else {}),
            }
            for f in findings
        ],
    }


def _cells(finding: AnyFinding, tenants: Mapping[str, str]) -> tuple[str, ...]:
    tenant, code = tenants.get(finding.tenant_key, finding.tenant_key), finding.code
    key = finding.operation_key if isinstance(finding, LedgerFinding) else ""
    return (tenant or "(everybody)", str(finding.seq), code.value, key, MEANING[code])
