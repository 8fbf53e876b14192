"""What is read of GitHub's answers: only the fields that are used, and anything else is ignored.

Why it exists: GitHub adds fields whenever it likes, so these models, and no others in this system,
take what they do not know. What they do name must be there and of its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from triage.contracts.moments import Moment
from triage.trackers.base import TrackerUnavailable

Id = Annotated[int, Field(ge=1)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, hide_input_in_errors=True)


Model = TypeVar("Model", bound=_Answer)
Item = TypeVar("Item")


class User(_Answer):
    """Somebody with a login: a person, a bot, an organisation."""

    login: str


class App(_Answer):
    """A GitHub App, as the events that it caused name it."""

    id: Id
    client_id: str | None = None

    def is_called(self, app_id: str) -> bool:
        """Whether it is the App that a setting names by either of its ids."""
        return app_id in {str(self.id), self.client_id}


class Label(_Answer):
    """A label of a repository."""

    id: Id
    name: str


class _LabelOnIssue(_Answer):
    id: Id | None = None
    name: str


class Issue(_Answer):
    """An issue, or a pull request: to this part of the API that is one, too."""

    number: Id
    title: str
    body: str | None = None
    state: Literal["open", "closed"]
    locked: bool
    labels: list[_LabelOnIssue | str]
    user: User | None = None
    pull_request: JsonValue = None

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels on it."""
        return tuple(x if isinstance(x, str) else x.name for x in self.labels)

    @property
    def label_ids(self) -> tuple[str, ...]:
        """The ids of the labels on it, in the same order; none if one has none."""
        ids = [None if isinstance(x, str) else x.id for x in self.labels]
        return tuple(str(id_) for id_ in ids if id_ is not None) if None not in ids else ()


class ListedItem(Issue):
    """An issue in a list, or a pull request."""

    created_at: Moment
    updated_at: Moment


class RepositoryItem(_Answer):
    """A repository."""

    id: Id
    full_name: str


class _EventLabel(_Answer):
    name: str


class Event(_Answer):
    """Something that happened to an issue; only changes of labels name one."""

    event: str
    label: _EventLabel | None = None
    actor: User | None = None
    performed_via_github_app: App | None = None
    created_at: Moment


class Commit(_Answer):
    """A commit."""

    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]


class ContentFile(_Answer):
    """A file; above 1 MB its content is empty and its size is not."""

    type: str
    size: Annotated[int, Field(ge=0)]
    encoding: str = ""
    content: str = ""


class OwnersError(_Answer):
    """Something that GitHub finds wrong in a CODEOWNERS file; lines and columns count from 1."""

    line: int
    column: int
    kind: str
    source: str | None = None

    @property
    def owner(self) -> str:
        """The word that it is about; empty if that cannot be told."""
        return next(iter((self.source or "")[max(self.column - 1, 0) :].split()), "")


class OwnersReport(_Answer):
    """What GitHub finds wrong in a CODEOWNERS file."""

    errors: list[OwnersError]


class Collaborator(_Answer):
    """Somebody with rights in a repository; `type` is ``User`` for a person."""

    id: Id
    login: str
    type: str


class Permission(_Answer):
    """What somebody may do in a repository.

    `role_name` may be the name of a role that an organisation made; `permission` is then what that
    role contains, and never ``triage`` or ``maintain``.
    """

    permission: str
    role_name: str = ""
    user: Collaborator | None = None


class Installation(_Answer):
    """An App's installation on an account."""

    id: Id


class _Repository(_Answer):
    id: Id


class Grant(_Answer):
    """A token of an installation, and what it was narrowed to."""

    token: Annotated[str, Field(repr=False, min_length=1, max_length=4_096)]
    expires_at: Moment
    repositories: list[_Repository] = Field(default_factory=list)


class OwnApp(_Answer):
    """The App that a key belongs to."""

    id: Id
    slug: str
    permissions: dict[str, str]
    installations_count: int | None = None


class Rate(_Answer):
    """The part of the rate limit that this system spends."""

    limit: int
    remaining: int


class _Resources(_Answer):
    core: Rate


class RateLimit(_Answer):
    """What is left of the rate limit."""

    resources: _Resources


LABELS: Final = TypeAdapter(list[Label])
LISTED: Final = TypeAdapter(list[ListedItem])
EVENTS: Final = TypeAdapter(list[Event])
COMMITS: Final = TypeAdapter(list[Commit])


def read_list(items: TypeAdapter[list[Item]], value: JsonValue, *, writing: bool) -> list[Item]:
    """Return an answer's value as a list; raises what `read` raises."""
    with _of_its_kind(writing=writing):
        return items.validate_python(value)


def read(model: type[Model], value: JsonValue, *, writing: bool) -> Model:
    """Return an answer's value as `model`.

    Raises:
        TrackerUnavailable: it is nothing of the kind, so it proves nothing.
    """
    with _of_its_kind(writing=writing):
        return model.model_validate(value)


@contextmanager
def _of_its_kind(*, writing: bool) -> Iterator[None]:
    try:
        yield
    except ValidationError:
        message = "the answer is not of the kind that was asked for"
        raise TrackerUnavailable(message, effect_possible=writing) from None
