"""Other frameworks are found when they are asked for, and nothing of them is needed before."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.arms import Arm
from benchmarks.peers.case import call_number, questions, request_text
from benchmarks.peers.loading import NoPeer, find_peer, peer_versions
from benchmarks.peers.peer import Peer
from benchmarks.plan import W_API, Plan, Shape, W, long_run, read_plan
from tests.workflow.decisions import a_request

PEERS = {
    "benchmarks.peers.dbos": "dbos",
    "benchmarks.peers.langgraph": "langgraph.graph",
    "benchmarks.peers.openai_agents": "agents",
    "benchmarks.peers.pydantic_ai": "pydantic_ai",
}
OURS = f"{__name__}:an_arm"


def an_arm(plan: Plan, folder: Path) -> AbstractAsyncContextManager[Arm]:
    """Stand for an arm of somebody's own, which is never opened."""
    raise NotImplementedError(plan, folder)


@pytest.fixture(autouse=True)
def _none_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, needed in PEERS.items():
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setitem(sys.modules, needed, None)


@pytest.mark.parametrize(("module", "needed"), PEERS.items())
def test_a_peer_that_is_not_installed_says_in_one_line_what_to_do(
    module: str, needed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names what is missing and the make target, before any server is started."""
    assert 2 == main(["--arms", "W", "--peer", f"{module}:opened"])
    expected = (
        f"bench: NoPeer: {module} needs {needed}, which is not installed here:"
        " `make bench-peers` installs it in a place of its own and measures with it\n"
    )
    assert ("", expected) == capsys.readouterr()


def test_a_peer_of_ones_own_is_found_by_its_name() -> None:
    """Any module that can be imported may hold one, and need not say what it measures."""
    assert an_arm is find_peer(OURS)
    assert OURS == peer_versions(OURS)


@pytest.mark.parametrize("name", [f"{__name__}:nothing", "no_such_module:opened"])
def test_a_name_that_leads_nowhere_is_refused(name: str) -> None:
    """Neither a wrong module nor a wrong member ends in a traceback."""
    with pytest.raises(NoPeer):
        find_peer(name)


@pytest.mark.parametrize("text", ["langgraph", ":opened", "langgraph:"])
def test_a_peer_is_named_by_module_and_member(text: str) -> None:
    """The command line refuses everything else."""
    with pytest.raises(SystemExit):
        read_plan(["--peer", text])


@pytest.mark.parametrize("shape", [W, W_API])
def test_a_peer_s_plain_run_gets_the_product_s_request(shape: Shape) -> None:
    """Not a byte is added to what the product is sent, and the tool is called once."""
    assert json.dumps(a_request()) == request_text(a_request(), shape)
    assert [1, None] == [call_number(json.dumps(a_request()), answered) for answered in range(2)]


def test_a_peer_s_long_run_has_a_call_between_its_questions() -> None:
    """The request says how many, and each call has a number of its own."""
    request = request_text(a_request(), long_run(4))
    assert 4 == questions(request)
    assert [1, 2, 3, None] == [call_number(request, answered) for answered in range(4)]


@pytest.mark.parametrize("arm", ["A", "waiting"])
async def test_a_peer_that_has_no_approval_refuses_to_wait_for_one(
    arm: str, tmp_path: Path
) -> None:
    """It says so before it runs anything, also where other arms are asked for that it plays."""
    peer = Peer("ours", __name__, object, NotImplemented)
    with pytest.raises(NoPeer, match=f"ours has no approval, and so does not play {arm}$"):
        async with peer.opened(Plan(arms=("W", "steps", arm)), tmp_path):
            pass
