"""What is looked at before anything is started, so that a mistake costs seconds and not the run."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from benchmarks.plan import Plan
from benchmarks.room import NEEDED_BYTES, need_room, temporary_folder
from benchmarks.saving import output_files
from benchmarks.stacks import product_settings
from triage.contracts.wording import in_words
from triage.settings import Settings
from triage.settings_sources import SettingsError, variable


class Refused(Exception):  # noqa: N818 - names what was found
    """The command line asks for what cannot be done; the message names the option."""


def check(plan: Plan) -> None:
    """Look whether a plan can be played to its end and its report saved.

    Raises:
        Refused: a setting or the output cannot be used; no file is left behind.
        NoSpace: the disk has too little room.
    """
    _check_settings(plan)
    for file in output_files(plan):
        _try(file)
    need_room(temporary_folder(), NEEDED_BYTES)


def _check_settings(plan: Plan) -> None:
    try:
        product_settings(plan, Path("bench"), None)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        name = str(problem["loc"][0])
        origin = f"--set {name}" if name in dict(plan.settings) else variable(name)
        field = Settings.model_fields.get(name)
        if field is None:
            raise Refused(f"{origin}: there is no such setting") from None
        raise Refused(f"{origin}: {in_words(problem)}; set it to {field.description}") from None
    except SettingsError as error:
        raise Refused(error.problems[0]) from None


def _try(file: Path) -> None:
    there = file.exists()
    try:
        file.open("ab").close()
        if not there:
            file.unlink()
    except OSError as error:
        raise Refused(f"--output: {file} cannot be written: {error.strerror}") from None
