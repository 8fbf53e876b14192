"""What a condition asks about labels, and whether it holds for a label that it does not name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from triage.automation.conditions import Asked, Moment, ask
from triage.automation.expressions import ExpressionError, inserted, parse_expression
from triage.automation.uses import Match

LABELED = Moment(frozenset({"pull_request"}), frozenset({"labeled"}))
NAME = "github.event.label.name"
ALL = "github.event.pull_request.labels.*.name"
X = {(Match.EXACT, "x")}
XY = X | {(Match.EXACT, "y")}

# Expression, labels that it names, whether it asks openly, whether it holds for another label.
CASES: dict[str, tuple[str, set[tuple[Match, str]], bool, bool | None]] = {
    "equal": (f"{NAME} == 'x'", X, False, False),
    "the other way round": (f"'x' == {NAME}", X, False, False),
    "in other letters": ("GitHub.Event['label'].Name == 'x'", X, False, False),
    "a quote in it": (f"{NAME} == 'it''s'", {(Match.EXACT, "it's")}, False, False),
    "not equal": (f"{NAME} != 'x'", X, False, True),
    "not": (f"!({NAME} == 'x')", X, False, True),
    "one or the other": (f"{NAME} == 'x' || {NAME} == 'y'", XY, False, False),
    "with another event": (f"github.event_name == 'push' || {NAME} == 'x'", X, False, False),
    "with this event": (f"github.event_name == 'pull_request' || {NAME} == 'x'", X, False, True),
    "this event and": (f"github.event_name == 'pull_request' && {NAME} == 'x'", X, False, False),
    "another action": (f"github.event.action == 'opened' || {NAME} == 'x'", X, False, False),
    "this action": (f"github.event.action == 'labeled' && {NAME} == 'x'", X, False, False),
    "something unknown and": (f"vars.ON == '1' && {NAME} == 'x'", X, False, False),
    "something unknown or": (f"vars.ON == '1' || {NAME} == 'x'", X, False, None),
    "always": (f"always() && {NAME} == 'x'", X, False, False),
    "all labels": (f"contains({ALL}, 'x')", X, False, False),
    "all labels of an issue": (
        "contains(github.event.issue.labels.*.name, 'x')",
        X,
        False,
        False,
    ),
    "labels of anything": ("contains(github.event.*.labels.*.name, 'x')", X, False, False),
    "not among all": (f"!contains({ALL}, 'x')", X, False, True),
    "all as JSON": (f"contains(toJSON({ALL}), '\"x\"')", X, False, False),
    "some of all as JSON": (f"contains(toJSON({ALL}), 'x')", {(Match.PART, "x")}, False, False),
    "in a list": (f"""contains(fromJSON('["x", "y"]'), {NAME})""", XY, False, False),
    "in a list that varies": (f"contains(fromJSON(vars.L), {NAME})", set(), True, None),
    "in a text": (f"contains('x y', {NAME})", set(), True, None),
    "a part": (f"contains({NAME}, 'x')", {(Match.PART, "x")}, False, False),
    "the beginning": (f"startsWith({NAME}, 'x/')", {(Match.PREFIX, "x/")}, False, False),
    "the end": (f"endsWith({NAME}, '/x')", {(Match.SUFFIX, "/x")}, False, False),
    "the beginning of a text": (f"startsWith('xy', {NAME})", set(), True, None),
    "a variable": (f"{NAME} == vars.LABEL", set(), True, None),
    "an environment": (f"contains({ALL}, env.LABEL)", set(), True, None),
    "a named one and a variable": (f"{NAME} == 'x' && {NAME} != env.Y", X, True, False),
    "the first label": ("github.event.issue.labels[0].name == 'x'", set(), True, None),
    "an id": ("github.event.label.id == 7", set(), True, None),
    "joined": (f"contains(join({ALL}, ','), 'x')", set(), True, None),
    "formatted": (f"format('<{{0}}>', {NAME}) == '<x>'", set(), True, None),
    "compared by order": (f"{NAME} > 'x'", set(), True, None),
    "any label at all": (f"{NAME} != ''", set(), False, True),
    "no label": ("github.event.label == null", set(), False, False),
    "a place by a name that varies": (f"vars.X[{NAME}]", set(), True, None),
    "nothing of labels": ("github.ref == 'refs/heads/main'", set(), False, None),
    "one of two that may be": ("(vars.X || 'x') == 'y'", set(), False, None),
    "none or one that may be": ("(vars.X && '') == 'y'", set(), False, None),
    "a constant": ("false", set(), False, False),
    "a huge number": (f"0x{300 * 'f'} > 1e308 && -0x{300 * 'f'} < -1e308", set(), False, None),
    "a number": ("0x10 == 16 && -1.5e3 < 2", set(), False, None),
    "a function's part": ("fromJSON(vars.X).y.z == 1", set(), False, None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_condition_says_what_it_listens_to(name: str) -> None:
    """Labels that are named are found, and whatever else may hold for any label is open."""
    text, found, is_open, holds = CASES[name]
    asked = ask(text, LABELED)
    assert (found, is_open, holds) == (asked.found, asked.is_open, asked.holds)


PASSED = [NAME, f"{NAME} || 'none'", f"vars.X && {NAME}", f"toJSON({ALL})", "github.event.label"]


@pytest.mark.parametrize("text", PASSED)
def test_a_label_that_is_handed_on_is_seen(text: str) -> None:
    """What an expression gives may be made of labels: nobody knows what is done with it."""
    assert ask(text, LABELED).passes_on


WRONG = [
    "",
    "==",
    f"{NAME} = 'x'",
    f"{NAME} == 'x",
    "(a",
    "a)",
    "f(a,",
    "a.",
    "a b",
    "(" * 200 + "a" + ")" * 200,
    "a == " * 200 + "a",
    "!" + "a" * 21_000,
]


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_no_expression_is_refused(text: str) -> None:
    """Broken or endless expressions are an error of ours."""
    with pytest.raises(ExpressionError):
        ask(text, LABELED)


def test_long_conditions_are_read() -> None:
    """A condition may name many labels."""
    names = [f"l{number}" for number in range(500)]
    asked = ask(" || ".join(f"{NAME} == '{name}'" for name in names), LABELED)
    assert ({(Match.EXACT, name) for name in names}, False) == (asked.found, asked.holds)


def test_expressions_are_found_in_texts() -> None:
    """Between the signs that GitHub looks for, quotes respected; one that never ends too."""
    text = "a ${{ x }} b ${{ '}}' }}${{ y"
    assert [" x ", " '}}' ", " y"] == [found.expression for found in inserted(text)]
    assert len(list(inserted("${{'" * 50_000))) == 1


@PROPERTY
@given(st.text("githubevnlam.='()|&!*[], <>0", max_size=60) | st.text(max_size=30))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    """No input leads to another error."""
    try:
        tree = parse_expression(text)
    except ExpressionError:
        return
    assert tree is not None
    assert isinstance(ask(text, Moment()), Asked)
