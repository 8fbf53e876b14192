"""Which names of repositories lead to an address."""

from __future__ import annotations

import pytest

from triage.trackers.github_names import repository_place


@pytest.mark.parametrize("name", [".github", "_site", "-x", "a.b", "x" * 100])
def test_a_repository_s_name_may_begin_with_anything_that_github_takes(name: str) -> None:
    """A repository called .github is one as any other, and is asked for under its own name."""
    assert {"owner": "acme", "repo": name} == dict(repository_place(f"acme/{name}").variables)
