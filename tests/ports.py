"""Ports that a test keeps: nobody else on this machine is given one of them meanwhile.

Why it exists: the system gives a port that was looked up and let go to whoever asks next, and
several test processes ask all the time. One that somebody has bound is given to nobody, and a
server that may reuse addresses, as all of ours do, can listen on it as long as no other listens.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def kept_ports(count: int) -> Iterator[list[int]]:
    """Keep as many ports of this machine's own address; until a server listens, they refuse."""
    with ExitStack() as held:
        kept = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in kept:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
        yield [one.getsockname()[1] for one in kept]


@contextmanager
def kept_port() -> Iterator[int]:
    """Keep one port."""
    with kept_ports(1) as [port]:
        yield port
