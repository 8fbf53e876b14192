"""A module that the environment names adds tools, trackers and models, or is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from triage import extensions
from triage.cli.doctor import _extensions
from triage.cli.findings import Level
from triage.cli.tracker_check import check
from triage.contracts.payloads import DecideResult
from triage.extensions import ATTRIBUTE, Extension, ExtensionError, ReadTool, install
from triage.models.base import ModelRequest, PaidAnswer, PaidModel
from triage.models.factory import BrokenModel, UnknownModel, build_model
from triage.models.quotes import Quote
from triage.models.rules import RulesModel
from triage.policy.tools import (
    BUILTIN_TOOLS,
    LOCAL_READ,
    NO_RETRY,
    Effect,
    Kind,
    ToolSpec,
    normalise_by_digest,
)
from triage.settings import Settings, SettingsError, load_settings
from triage.settings_sources import config_values
from triage.storage.engine import Store
from triage.trackers.factory import open_trackers

MODULE = "x_extension_of_a_test"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules; what they register is gone afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extensions, "_INSTALLED", {})
    monkeypatch.setattr(BUILTIN_TOOLS, "_specs", dict(BUILTIN_TOOLS._specs))
    yield tmp_path
    sys.modules.pop(MODULE, None)


def a_spec(**changes: Any) -> ToolSpec:  # noqa: ANN401 - any part of a specification
    """A complete tool, with some parts changed."""
    parts: dict[str, Any] = {
        "name": "count_words",
        "purpose": "Count words",
        "arguments": {"text": Kind.TEXT},
        "timeout_ms": 200,
        "retry": LOCAL_READ,
        "effect": Effect.READ,
        "idempotency": False,
        "normalise": normalise_by_digest,
    }
    return ToolSpec(**(parts | changes))


def untyped(**parts: Any) -> Extension:  # noqa: ANN401 - that is what is refused
    """An extension whose parts are of any type."""
    return Extension(**parts)


async def handler(*_: object) -> None:
    """Stand for a handler that is never called."""


def install_value(folder: Path, value: object) -> None:
    """Install a module whose EXTENSION is `value`."""
    (folder / f"{MODULE}.py").write_text(f"import {__name__} as t\n{ATTRIBUTE} = t.VALUE\n")
    globals()["VALUE"] = value
    install([MODULE])


def test_what_a_module_adds_is_found_by_its_name(folder: Path) -> None:
    """A tool is registered with its handler, a tracker and a model by their names."""
    tool = ReadTool(a_spec(), handler)
    extension = Extension(tools=(tool,), trackers={"x-mine": dict}, models={"x-mine": len})
    install_value(folder, extension)
    assert tool.spec is BUILTIN_TOOLS.get("count_words")
    assert {"count_words": handler} == extensions.handlers()
    assert ({"x-mine": dict}, {"x-mine": len}) == (extensions.trackers(), extensions.models())
    install([MODULE])


async def test_a_model_of_an_extension_is_built_by_its_name(folder: Path) -> None:
    """What follows the colon reaches its maker; another name is still unknown."""
    made: list[str] = []

    def make(argument: str) -> RulesModel:
        made.append(argument)
        return RulesModel()

    async def no_script(_digest: str) -> None:
        return None

    install_value(folder, Extension(models={"x-mine": make}))
    await build_model("x-mine:large", load_script=no_script)
    assert ["large"] == made
    with pytest.raises(UnknownModel, match=r"known: .*x-mine"):
        await build_model("x-other", load_script=no_script)


class Odd(RulesModel):
    """A model that says of itself what a test wants."""

    def __init__(self, **labels: Any) -> None:  # noqa: ANN401 - any type
        super().__init__()
        vars(self).update(labels)


def _raises(error: BaseException) -> RulesModel:
    raise error


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(lambda _: _raises(ValueError("hunter2")), r"made \(ValueError\)", id="raises"),
        pytest.param(lambda _: _raises(SystemExit(0)), r"made \(SystemExit\)", id="exits"),
        pytest.param(lambda _: None, r"made \(AttributeError\)", id="nothing"),
        pytest.param(lambda _: Odd(name=None), "no name and revision", id="no name"),
        pytest.param(lambda _: Odd(revision=""), "no name and revision", id="no revision"),
        pytest.param(lambda _: Odd(revision="r" * 3_000_000), "no name and rev", id="a long one"),
        pytest.param(lambda _: Odd(revision="1\0"), "no name and revision", id="NUL"),
    ],
)
async def test_a_model_that_cannot_be_made_is_none(
    folder: Path, make: Callable[[str], Any], words: str
) -> None:
    """What a maker raises, or gives, ends as a refusal that quotes nothing of it."""

    async def no_script(_digest: str) -> None:
        return None

    install_value(folder, Extension(models={"x-mine": make}))
    with pytest.raises(BrokenModel, match=words) as told:
        await build_model("x-mine:large", load_script=no_script)
    assert len(str(told.value)) < 100


class Costly(PaidModel):
    """A model that gives its calls the time that a test says."""

    name, revision, prompt, prices = "costly", "1", "p", "table"

    def __init__(self, timeout: Any) -> None:  # noqa: ANN401 - any type
        self.timeout = timeout

    def quote(self, request: ModelRequest) -> Quote:
        """Never be asked."""
        raise AssertionError

    async def ask(self, request: ModelRequest, quote: Quote) -> PaidAnswer:
        """Never be asked."""
        raise AssertionError

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Never be asked."""
        raise AssertionError


@pytest.mark.parametrize("time", [5, None, timedelta(), timedelta(-1), timedelta.max])
async def test_a_model_that_costs_something_names_the_time_of_a_call(
    folder: Path, time: object
) -> None:
    """Of another time no run could wait, nor be told: a workflow cannot even add to the longest."""

    async def no_script(_digest: str) -> None:
        return None

    install_value(folder, Extension(models={"x-mine": lambda _: Costly(time)}))
    with pytest.raises(BrokenModel, match="gives a call no time, or more than ten minutes"):
        await build_model("x-mine", load_script=no_script)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param("text", f"has no {ATTRIBUTE} of the type", id="no extension"),
        pytest.param(Extension(trackers={"local": dict}), "the name of a tracker", id="ours"),
        pytest.param(Extension(models={"x-": len}), "the name of a tracker", id="no name"),
        pytest.param(
            Extension(
                tools=(
                    ReadTool(
                        a_spec(effect=Effect.WRITE, idempotency=True, retry=NO_RETRY), handler
                    ),
                )
            ),
            "writes, and an extension only reads",
            id="a write",
        ),
        pytest.param(
            Extension(tools=(ReadTool(a_spec(about_issue=True), handler),)),
            "asks the run's tracker",
            id="a read of the tracker",
        ),
        pytest.param(
            Extension(tools=(ReadTool(a_spec(name="apply_labels"), handler),)),
            "registered twice",
            id="a tool of ours",
        ),
        pytest.param(
            Extension(tools=(ReadTool(a_spec(name="decide"), handler),)),
            "the name decide is one of our own activities'",
            id="an activity of ours",
        ),
        pytest.param(
            Extension(tools=(ReadTool(a_spec(name="pin_run_context"), handler),)),
            "one of our own activities'",
            id="the first activity of a run",
        ),
        pytest.param(untyped(tools=None), "tools is a tuple of ReadTool", id="tools None"),
        pytest.param(untyped(tools=(a_spec(),)), "each with its ToolSpec", id="a bare spec"),
        pytest.param(
            untyped(tools=(ReadTool(a_spec(), cast("Any", None)),)),
            "handler of the tool count_words cannot be called",
            id="no handler",
        ),
        pytest.param(untyped(models=None), "are mappings of a name", id="models None"),
        pytest.param(untyped(models={1: len}), "the name of a tracker", id="a number as name"),
        pytest.param(untyped(models={"x-a": None}), "cannot be called", id="no maker"),
        pytest.param(untyped(trackers=["x-a"]), "are mappings of a name", id="trackers a list"),
        *(
            pytest.param(
                Extension(tools=(ReadTool(a_spec(**{part: None}), handler),)),
                f"it has no {part}",
                id=f"no {part}",
            )
            for part in ("arguments", "timeout_ms", "retry", "effect")
        ),
    ],
)
def test_what_cannot_be_added_is_refused(folder: Path, value: object, words: str) -> None:
    """A tool without schema, timeout, retry rule or effect, or an unsafe one, does not register."""
    with pytest.raises(ExtensionError, match=words):
        install_value(folder, value)
    assert ({}, {}, {}) == (extensions.handlers(), extensions.trackers(), extensions.models())
    assert BUILTIN_TOOLS.get("count_words") is None


def test_a_module_that_raises_is_told_without_its_words(folder: Path) -> None:
    """Only the type of what a foreign module raised is shown."""
    (folder / f"{MODULE}.py").write_text("raise ValueError('hunter2')\n")
    with pytest.raises(ExtensionError) as told:
        install([MODULE])
    assert f"{MODULE} cannot be imported (ValueError)" == str(told.value)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param("import sys; sys.exit(0)", "SystemExit", id="an exit"),
        pytest.param("import asyncio; raise asyncio.CancelledError", "CancelledError", id="a stop"),
        pytest.param("def __getattr__(_): raise OSError", "OSError", id="an attribute"),
    ],
)
def test_a_module_does_not_say_how_we_end(folder: Path, body: str, kind: str) -> None:
    """Whatever it raises is a module that cannot be used, not an end without a word."""
    (folder / f"{MODULE}.py").write_text(f"{body}\n")
    with pytest.raises(ExtensionError, match=rf"cannot be imported \({kind}\)"):
        install([MODULE])


def test_ctrl_c_is_a_persons(folder: Path) -> None:
    """Only who waits for a module to load may end that."""
    (folder / f"{MODULE}.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        install([MODULE])


def test_the_setting_loads_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the settings has the extensions; a bad name is a setting to correct."""
    (folder / f"{MODULE}.py").write_text("")
    monkeypatch.setenv("TRIAGE_EXTENSIONS", MODULE)
    with pytest.raises(SettingsError, match=rf"TRIAGE_EXTENSIONS: {MODULE} has no {ATTRIBUTE}"):
        load_settings()
    monkeypatch.setenv("TRIAGE_EXTENSIONS", "../evil")
    with pytest.raises(SettingsError, match="no name of a Python module"):
        load_settings()


def test_no_file_names_code_to_run(tmp_path: Path) -> None:
    """A folder may be somebody else's, so the environment alone names modules."""
    file = tmp_path / "triage.toml"
    file.write_text('extensions = "evil"\n')
    with pytest.raises(SettingsError, match="TRIAGE_EXTENSIONS alone can set it"):
        config_values(file, {"extensions"})


def _broken(*_: object) -> None:
    raise RuntimeError("postgres://me:s3cret@there")


async def test_a_tracker_that_cannot_be_used_is_told_by_its_setting(
    folder: Path, tmp_path: Path
) -> None:
    """One that nothing adds, and one that cannot be made, whose own words go nowhere."""
    store = cast("Store", None)
    with pytest.raises(SettingsError, match="there is no tracker x-mine; there are local, github"):
        open_trackers(Settings(home=tmp_path, tracker="x-mine"), store)
    install_value(folder, Extension(trackers={"x-mine": _broken}))
    with pytest.raises(SettingsError) as caught:
        open_trackers(Settings(home=tmp_path), store)
    told = "TRIAGE_EXTENSIONS: the tracker x-mine cannot be made (RuntimeError)"
    assert told == str(caught.value)


async def test_doctor_says_what_was_added(folder: Path, tmp_path: Path) -> None:
    """Modules with what each adds in a row of its own, and a tracker that is missing as a fault."""
    install_value(folder, Extension(trackers={"x-mine": dict}, models={"x-one": len}))
    found = Settings(home=tmp_path, extensions=(MODULE,), tracker="x-mine")
    [row] = _extensions(found)
    assert f"{MODULE}: trackers x-mine; models x-one" == row.detail
    [tracker] = await check(found)
    assert (Level.OK, "x-mine, of an extension; it is not asked") == (tracker.level, tracker.detail)
    [tracker] = await check(Settings(home=tmp_path, tracker="x-other"))
    assert Level.FAIL is tracker.level
    assert [] == [*_extensions(Settings(home=tmp_path))]
