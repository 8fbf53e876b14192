"""Promises of the answers: kinds of faults that others reported, and GitHub's own example."""

from __future__ import annotations

import time
from typing import Final

import pytest

from triage.policy.codeowners import (
    MAX_FILE_BYTES,
    BadPathError,
    CodeOwners,
    Ownership,
    OwnershipStatus,
    UnknownReason,
    parse_codeowners,
)
from triage.policy.codeowners_findings import Code, Severity
from triage.trackers.abilities import FetchedOwners

OWNED, UNOWNED, UNKNOWN = OwnershipStatus

# The rules of the example in GitHub's page "About code owners", in their order.
EXAMPLE: Final = """\
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/*  docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
"""


def _owners(text: str | bytes) -> CodeOwners:
    return parse_codeowners(text.encode() if isinstance(text, str) else text)


def _found(owners: CodeOwners) -> list[tuple[int | None, Code]]:
    return [(found.line, found.code) for found in owners.diagnostics]


@pytest.mark.parametrize(
    ("path", "line", "owners"),
    [
        ("README.md", 1, ("@global-owner1", "@global-owner2")),
        ("src/deep/app.js", 2, ("@js-owner",)),
        ("cmd/main.go", 3, ("docs@example.com",)),
        ("notes/a.txt", 4, ("@octo-org/octocats",)),
        ("build/logs/deep/x.bin", 10, ("@octocat",)),
        ("docs/getting-started.md", 8, ("@doctocat",)),
        ("docs/build-app/troubleshooting.md", 8, ("@doctocat",)),
        ("src/apps/web.css", 7, ("@octocat",)),
        ("scripts/run.sh", 9, ("@doctocat", "@octocat")),
        ("deeply/nested/logs", 10, ("@octocat",)),
        ("apps/web/index.html", 11, ("@octocat",)),
        ("apps/github/index.html", 12, ()),
    ],
)
def test_github_s_example(path: str, line: int, owners: tuple[str, ...]) -> None:
    """Each rule of GitHub's documented example says what its comment there says."""
    answer = _owners(EXAMPLE).lookup(path)
    status = OWNED if owners else UNOWNED
    assert (status, line, owners) == (answer.status, answer.line, answer.owners)


def test_github_s_example_with_an_owner_for_the_folder_in_the_folder() -> None:
    """The example's other ending: the folder within has an owner of its own."""
    owners = _owners("/apps/ @octocat\n/apps/github @doctocat\n")
    answers = owners.lookup_all(["apps/x", "apps/github/x", "apps/github"])
    assert [("@octocat",), ("@doctocat",), ("@doctocat",)] == [one.owners for one in answers]


def test_github_s_example_has_no_findings() -> None:
    """A file that is right is told nothing."""
    assert () == _owners(EXAMPLE).diagnostics


def test_kind_1_a_star_at_the_end_goes_no_deeper() -> None:
    """`docs/*` takes nothing from a rule for what lies deeper."""
    owners = _owners("docs/generator/build.py @a\ndocs/* @b\n")
    assert ("@a",) == owners.lookup("docs/generator/build.py").owners
    assert ("@b",) == owners.lookup("docs/build.py").owners


def test_kind_3_the_last_match_wins() -> None:
    """Of a general, a specific and a general rule the last one counts, wherever it matches."""
    owners = _owners("* @first\n/src/api.py @specific\n/src/ @last\n")
    answers = owners.lookup_all(["src/api.py", "README.md"])
    assert [("@last",), ("@first",)] == [answer.owners for answer in answers]


def test_kind_4_owners_of_several_matches_are_never_joined() -> None:
    """The last rule's owners are all the owners."""
    assert ("@b",) == _owners("* @a\n*.js @b\n").lookup("x.js").owners


def test_kind_5_of_a_repeated_pattern_only_the_last_counts() -> None:
    """The earlier line is named in a warning, with the later one's number."""
    owners = _owners("apps/ @octocat\n*.md @m\napps/ @doctocat\n")
    assert ("@doctocat",) == owners.lookup("apps/x").owners
    [found] = owners.diagnostics
    assert (1, Code.REPEATED_PATTERN, Severity.WARNING) == (found.line, found.code, found.severity)
    assert "line 3 has the same pattern" in found.message


def test_kind_5_two_ways_to_write_one_pattern() -> None:
    """What differs only in writing is the same pattern."""
    assert [(1, Code.REPEATED_PATTERN)] == _found(_owners("docs/**/** @a\n/docs/ @b\n"))


def test_kind_6_an_exclamation_mark_negates_nothing() -> None:
    """`!dir/*` is reported and is no rule of any kind."""
    owners = _owners("* @all\n!dir/* @x\n")
    assert ("@all",) == owners.lookup("dir/a").owners
    assert [(2, Code.NEGATION)] == _found(owners)


def test_kind_8_an_escaped_blank_belongs_to_the_pattern() -> None:
    """The pattern is one name with blanks, the owner is the owner."""
    owners = _owners(r"/AI\ Fair\ X/ @o")
    assert Ownership("AI Fair X/a.py", OWNED, ("@o",), 1, r"/AI\ Fair\ X/") == owners.lookup(
        "AI Fair X/a.py"
    )
    assert ((), UNOWNED) == (owners.diagnostics, owners.lookup("AI").status)


@pytest.mark.parametrize(
    ("text", "matched", "missed"), [(r"/a\#b @o", "a#b", "a"), (r"/a\*b @o", "a*b", "axb")]
)
def test_kind_9_a_backslash_makes_a_sign_ordinary(text: str, matched: str, missed: str) -> None:
    """Other escaped signs stand for themselves."""
    owners = _owners(text)
    assert [OWNED, UNOWNED] == [one.status for one in owners.lookup_all([matched, missed])]
    assert () == owners.diagnostics


@pytest.mark.parametrize("bad", ["/src/**foo @x", "!x @x", "/a [ x", "\\", "/ @x", "/b c\xff"])
def test_kind_11_one_bad_line_discards_no_other(bad: str) -> None:
    """999 good lines work, and the bad one is one finding."""
    lines = [f"/dir{number}/ @o{number}" for number in range(999)]
    lines.insert(500, bad)
    owners = _owners("\n".join(lines).encode("latin-1"))
    answers = owners.lookup_all(f"dir{number}/x" for number in range(999))
    assert [(f"@o{number}",) for number in range(999)] == [one.owners for one in answers]
    assert [501] == [found.line for found in owners.diagnostics]


def test_kind_12_words_of_a_comment_are_no_owners() -> None:
    """From the # on, nothing on the line counts."""
    owners = _owners("*.js @js #inline @fake-owner\n")
    assert (("@js",), ()) == (owners.lookup("x.js").owners, owners.diagnostics)


def test_kind_15_a_nested_path_may_be_unowned() -> None:
    """`/*` covers the root's files alone, and no line is given for the rest."""
    answer = _owners("/* @root\n").lookup("dir/nested.txt")
    assert Ownership("dir/nested.txt", UNOWNED) == answer


def test_kind_16_a_file_of_4_mb_is_unknown() -> None:
    """GitHub loads no such file, so it says neither who owns a path nor that nobody does."""
    owners = parse_codeowners(b"* @a\n" * 800_000)
    assert Ownership("x", UNKNOWN, reason=UnknownReason.TOO_LARGE) == owners.lookup("x")
    assert [(None, Code.TOO_LARGE)] == _found(owners)


@pytest.mark.parametrize(
    ("data", "size", "status"),
    [
        (b"", 2_000_000, UNKNOWN),
        (b"", 1, UNKNOWN),
        (b"* @a\n", 9, UNKNOWN),
        (b"", 4_000_000, UNKNOWN),
        (b"", 0, UNOWNED),
        (b"", None, UNOWNED),
        (b"* @a\n", 5, OWNED),
    ],
)
def test_kind_16_content_that_is_not_the_file_is_unknown(
    data: bytes, size: int | None, status: OwnershipStatus
) -> None:
    """Empty content of a file that has a size is unknown, not "no owner"; so is a part of it."""
    assert status is parse_codeowners(data, size=size).lookup("x").status


def test_kind_16_the_limit() -> None:
    """A file of exactly 3 MB is not under 3 MB."""
    fill = b"#" * (MAX_FILE_BYTES - 6)
    found = [parse_codeowners(b"* @a\n" + fill + more).lookup("x").status for more in (b"", b"#")]
    assert [OWNED, UNKNOWN] == found


@pytest.mark.parametrize(("name", "is_lost"), [("@UsIrIn", True), ("@usirin-", False)])
def test_kind_18_logins_are_compared_without_case(name: str, is_lost: bool) -> None:
    """`@UsIrIn` is shown as written, and is the `@usirin` whom the tracker does not know."""
    owners = _owners(f"* {name}\n")
    unresolved = frozenset({(1, "@usirin")})
    fetched = FetchedOwners(owners=owners, path="CODEOWNERS", sha="1", unresolved=unresolved)
    assert (name,) == owners.lookup("x").owners
    assert is_lost == fetched.is_unresolved(1, name)


@pytest.mark.parametrize("owner", ["@Org/\u212aim", "@us\u0131rin"])
def test_kind_18_letters_that_fold_into_others(owner: str) -> None:
    """A Kelvin sign is no k, although Unicode folds it into one: such a name is no owner's."""
    read = _owners(f"* {owner}\n")
    assert UNOWNED is read.lookup("x").status
    assert [Code.INVALID_OWNER] == [found.code for found in read.diagnostics]


def test_kind_19_the_answer_names_the_rule_that_matched() -> None:
    """Not the folder's default: its line, its pattern, and where evidence finds it."""
    answer = _owners("# first\n/src/ @default\n/src/api/*.py @api\n").lookup("src/api/x.py")
    assert (3, "/src/api/*.py", ("@api",)) == (answer.line, answer.pattern, answer.owners)
    assert "CODEOWNERS@0a1b2c#L3" == answer.locator("0a1b2c")
    assert "CODEOWNERS@0a1b2c" == _owners("").lookup("x").locator("0a1b2c")


def test_kind_20_a_name_without_its_sign_is_reported_and_not_assigned() -> None:
    """`csigs` is no owner: the line is a finding and gives nobody anything."""
    owners = _owners("* @all\n/src/ @good csigs\n")
    assert ("@all",) == owners.lookup("src/x").owners
    [found] = owners.diagnostics
    assert (2, Code.INVALID_OWNER, Severity.ERROR) == (found.line, found.code, found.severity)
    assert found.message.startswith("owner 2 of the line is neither @user")


def test_a_pattern_without_owners_means_nobody() -> None:
    """Nobody owns it: the answer says by which line."""
    answer = _owners("* @a\n/private/ # nobody\n").lookup("private/x")
    assert Ownership("private/x", UNOWNED, (), 2, "/private/") == answer


def test_paths_are_compared_with_their_case() -> None:
    """GitHub's paths have a case, whatever a machine's file system makes of it."""
    owners = _owners("/Docs/ @a\n")
    assert [OWNED, UNOWNED] == [one.status for one in owners.lookup_all(["Docs/x", "docs/x"])]


@pytest.mark.parametrize(
    "path",
    ["", "/etc", "../x", "a/../b", "a/..", "./x", "a//b", "a\\b", "a\0b", "\udc80", "x" * 5000],
    ids=range(11),
)
def test_what_is_no_path_is_refused(path: str) -> None:
    """It gets no answer at all, not even from a file that is unknown, and is not quoted."""
    for owners in (_owners("* @a\n"), parse_codeowners(b"", size=1)):
        with pytest.raises(BadPathError) as caught:
            owners.lookup_all(["fine", path])
        assert not path or path not in str(caught.value)


def test_a_path_may_look_odd() -> None:
    """Dots in a name and line breaks are allowed."""
    paths = ["a..b", "...", "a\nb"]
    answers = _owners("* @a\n").lookup_all(paths)
    assert [(path, ("@a",)) for path in paths] == [(one.path, one.owners) for one in answers]


@pytest.mark.parametrize(
    ("pattern", "is_owned"), [("docs/", True), ("*", True), ("docs/*", False), ("docs/*.md", False)]
)
def test_a_folder_may_be_asked_for(pattern: str, is_owned: bool) -> None:
    """A path that ends with / is everything in the folder: what covers only some owns it not."""
    answer = _owners(f"{pattern} @d\n").lookup("docs/")
    assert is_owned is (answer.status is OWNED)


@pytest.mark.parametrize("limit", ["codeowners.MAX_RULES", "codeowners_tree.MAX_NODES"])
def test_too_many_rules_are_unknown(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that would take all memory is not half read: every answer is unknown."""
    monkeypatch.setattr(f"triage.policy.{limit}", 20)
    lines = [f"/{at} @o\n".encode() for at in range(21)]
    fits, owners = parse_codeowners(b"".join(lines[:19])), parse_codeowners(b"".join(lines))
    assert [OWNED, UNKNOWN] == [one.lookup("1").status for one in (fits, owners)]
    assert UnknownReason.TOO_COMPLEX is owners.lookup("1").reason
    assert [(None, Code.TOO_COMPLEX)] == _found(owners)


def test_a_large_repository_takes_no_time() -> None:
    """5,000 rules of all shapes and 3,000 paths take less than two seconds of a processor."""
    shapes = ("/svc/s{0}/", "*.ext{0}", "/svc/s{0}/**/*.py", "**/sub{0}/", "test_{0}_*", "s{0}/*/x")
    lines = [f"{shapes[at % 6].format(at)} @o{at}" for at in range(5_000)]
    paths = [f"svc/s{at}/pkg/sub{at % 97}/module_{at}.ext{at}" for at in range(3_000)]
    began = time.thread_time()
    answers = _owners("\n".join(lines)).lookup_all(paths)
    assert time.thread_time() - began < 2
    assert {"@o1"} == set(answers[1].owners)
    assert 2_000 > sum(one.status is UNOWNED for one in answers)
    assert all(one.status is not UNKNOWN for one in answers)
