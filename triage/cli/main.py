"""The `triage` command: its shape, and the one way out of it.

Why it exists: `triage --help` must answer at once. So nothing here, nor in the modules that declare
commands, loads a client, a database or a table printer; each command loads what it needs.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import Annotated, Final

import typer

from triage.cli import (
    check_commands,
    data_commands,
    edit_command,
    evaluate_command,
    intake_commands,
    key_commands,
    learn_commands,
    operator_commands,
    outcomes_command,
    owner_commands,
    policy_commands,
    resume_command,
    run_commands,
    serve_command,
    stack_commands,
    undo_command,
)
from triage.cli.errors import UnreachableError, report
from triage.cli.output import prepare_streams, put, say
from triage.cli.running import leave

HELP: Final = """\
A model proposes, deterministic code decides, a person approves, and every write happens once.

Exit status: 0 done, 1 the answer is no or a check failed, 2 usage or bad input, 3 a service is
unreachable. With --format json the answer is one JSON document on standard output; messages go to
standard error.
"""

app = typer.Typer(
    help=HELP,
    invoke_without_command=True,
    add_completion=False,
    # Plain help loads no Rich, which takes as long as all the rest.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for commands in (
    stack_commands,
    serve_command,
    intake_commands,
    run_commands,
    resume_command,
    edit_command,
    data_commands,
    key_commands,
    learn_commands,
    operator_commands,
    undo_command,
    outcomes_command,
    owner_commands,
    policy_commands,
    evaluate_command,
    check_commands,
):
    commands.register(app)

_NOT_WRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
YES: Final = "--yes"
"""Commands that ask have it, so it is typed where nobody is asked, too."""
_options: dict[str, bool] = {"debug": False}


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - only --version needs it

        put(f"triage {version('bounded-triage')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="TRIAGE_DEBUG", show_envvar=False, help="Show tracebacks."),
    ] = False,
) -> None:
    """Hold what applies to every command."""
    del version
    _options["debug"] = debug
    if context.invoked_subcommand is None:
        say(*context.get_help().splitlines())
        raise typer.Exit(2)


def main() -> None:
    """Run the command line and end the process with its exit status."""
    # Loading a client makes many objects that live to the end: looking for garbage among them
    # again and again takes a tenth of a short command's time.
    gc.set_threshold(50_000)
    prepare_streams()
    leave(_status(sys.argv[1:]))


def _status(arguments: list[str]) -> int:
    try:
        result = app(args=arguments, prog_name="triage", standalone_mode=False)
    except typer.TyperException as error:
        return _misused(error)
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001 - the boundary: every error ends here
        return report(_told(error), debug=_options["debug"])
    return result if isinstance(result, int) else 0


def _told(error: Exception) -> Exception:
    """Give a name to what goes wrong with standard output, whoever wrote to it."""
    if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
        why = f"the answer cannot be written: {os.strerror(error.errno)}"
        return UnreachableError(why, "look at where standard output goes, and at its disk")
    return error


def _misused(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    if context is not None and getattr(error, "option_name", None) == YES:
        say(
            f"error: '{context.command_path}' has no {YES}",
            f"hint: it asks nobody: leave {YES} out",
        )
        return 2
    say(*f"error: {error.format_message()}".splitlines())
    if context is not None:
        say(*context.get_usage().splitlines(), f"hint: '{context.command_path} --help' tells more")
    return 2
