"""What the activities work with; built once by the worker and handed in."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import JsonValue, ValidationError

from activities.rules_source import RulesInForce
from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.models.base import ModelAdapter
from triage.models.classifier import Classifier
from triage.models.factory import MissingScript, build_model
from triage.models.llm_setup import LlmSetup
from triage.models.second_opinion import SecondOpinion
from triage.policy.rules import Rules
from triage.policy.tools import ToolRegistry
from triage.signing.files import KeyringFile
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.evidence import EvidenceStore
from triage.storage.ledger import Ledger
from triage.storage.spending import Spending
from triage.storage.switches import Switches
from triage.trackers.base import Tracker

SCRIPTS_KEPT: Final = 64
"""A run asks for its script at each step."""
CLASSIFIERS_KEPT: Final = 4
"""Likewise, and each takes some ten megabytes."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Stores, trackers and what this worker was told to pin for new runs."""

    store: Store
    documents: DocumentStore
    evidence: EvidenceStore
    ledger: Ledger
    trackers: Mapping[str, Tracker]
    tools: ToolRegistry
    rules: RulesInForce
    orchestrator: str
    default_model: str
    default_tracker: str
    local_trust: bool
    keyring: KeyringFile
    approval_skew: timedelta = timedelta(0)
    llm: LlmSetup = field(default_factory=LlmSetup)
    model_timeout: timedelta = timedelta(seconds=5)
    retention: timedelta = timedelta(days=30)
    write_timeout: timedelta = timedelta(seconds=20)
    ledger_retention: timedelta = timedelta(days=90)
    _rules: dict[str, Rules] = field(default_factory=dict)
    _scripts: OrderedDict[str, list[JsonValue]] = field(default_factory=OrderedDict)
    _classifiers: OrderedDict[str, Classifier] = field(default_factory=OrderedDict)

    @property
    def switches(self) -> Switches:
        """What stops writes; every question reads it anew."""
        return Switches(self.store)

    @property
    def spending(self) -> Spending:
        """What calls of models cost."""
        return Spending(self.store)

    async def build_model(self, name: str) -> ModelAdapter:
        """Return the model that goes by a name.

        Raises:
            UnknownModel: there is none, or this worker cannot ask it.
        """
        return await build_model(
            name,
            load_script=self.load_script,
            llm=self.llm,
            load_classifier=self.load_classifier,
        )

    async def second_opinion(self, rules: Rules) -> SecondOpinion | None:
        """Return what reads beside a run's models, if its rules want one.

        Raises:
            MissingScript: its weights are not stored.
        """
        if rules.second_opinion is None:
            return None
        classifier = await self.load_classifier(rules.second_opinion)
        if classifier is None:
            raise MissingScript("the weights of the second opinion are not stored")
        return SecondOpinion(classifier)

    async def load_classifier(self, digest: str) -> Classifier | None:
        """Return the classifier whose weights are stored under `digest`, or None."""
        if (known := self._classifiers.get(digest)) is not None:
            self._classifiers.move_to_end(digest)
            return known
        found = await self.documents.get(SHARED, DocumentKind.WEIGHTS, digest)
        if not isinstance(found, Document):
            return None
        try:
            # Checking some thousand numbers takes a moment, in which a worker does other things.
            classifier = await asyncio.to_thread(Classifier.of, found.body)
        except ContractError:
            return None
        self._classifiers[digest] = classifier
        if len(self._classifiers) > CLASSIFIERS_KEPT:
            self._classifiers.popitem(last=False)
        return classifier

    def content_expiry(self, rules: Rules | None = None) -> datetime:
        """Return when content that is stored now may be removed; a run's rules may say sooner."""
        days = None if rules is None else rules.evidence_retention_days
        kept = self.retention if days is None else min(self.retention, timedelta(days=days))
        return datetime.now(UTC) + kept

    async def pin_rules(self, rules: Rules) -> str:
        """Store rules by digest and return it; storing them again changes nothing."""
        digest = rules.digest()
        if digest not in self._rules:
            body = rules.body()
            await self.documents.put(SHARED, DocumentKind.POLICY, body)
            # As every other worker reads them: their labels are in the order of the stored form.
            self._rules[digest] = Rules.model_validate_json(body)
        return digest

    async def pinned_rules(self, digest: str) -> Rules:
        """Return the rules that a run pinned: by digest, whole or abbreviated, never from a file.

        Raises:
            LookupError: the store does not have them.
        """
        if digest not in self._rules:
            found = await self.documents.get(SHARED, DocumentKind.POLICY, digest)
            if not isinstance(found, Document):
                raise LookupError("the rules of this run are not in the store")
            self._rules[digest] = Rules.model_validate_json(found.body)
        return self._rules[digest]

    async def load_script(self, digest: str) -> list[JsonValue] | None:
        """Return the recorded decisions stored under `digest`, or None; not to be changed."""
        if (known := self._scripts.get(digest)) is not None:
            self._scripts.move_to_end(digest)
            return known
        script = await self._read_script(digest)
        if script is not None:
            self._scripts[digest] = script
            if len(self._scripts) > SCRIPTS_KEPT:
                self._scripts.popitem(last=False)
        return script

    async def _read_script(self, digest: str) -> list[JsonValue] | None:
        found = await self.documents.get(SHARED, DocumentKind.SCRIPT, digest)
        if not isinstance(found, Document):
            return None
        try:
            script = parse_json(found.body, "script")
        except (ContractError, ValidationError):
            return None
        return script if isinstance(script, list) else None
