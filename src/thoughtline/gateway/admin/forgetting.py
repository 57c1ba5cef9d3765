"""A person's data deleted: turns, conversations, history and what is in memory, here and at other workers and replicas.

DELETE ─▶ store ─▶ history, with a mark ─▶ memory of this process
                        └─ every few seconds, by the others ─▶ theirs
"""

from __future__ import annotations

from typing import NamedTuple

from thoughtline.gateway.state import State
from thoughtline.stores import Filter
from thoughtline.stores.history import tenant_digest


class Forgotten(NamedTuple):
    """How much went."""

    turns: int
    requests: int


async def forget_person(state: State, tenant: str) -> Forgotten:
    """Delete all that is kept of a tenant, and what files still hold of it."""
    turns = await state.store.delete(Filter(tenant=tenant))
    await state.words.forget(Filter(tenant=tenant))
    state.recent.history.forget(tenant)
    in_memory = _forget_here(state, tenant_digest(tenant), int(state.clock() * 1_000_000))
    requests = await state.recent.history.history.forget(tenant)
    await state.store.scrub()
    return Forgotten(turns, max(requests, in_memory))


async def take_over(state: State) -> None:
    """Forget those here who were deleted elsewhere, once."""
    known = state.recent.forgotten
    if state.recent.history.history.is_kept:
        for digest, at in (await state.recent.history.history.forgotten()).items():
            if known.get(digest, -1) < at:
                _forget_here(state, digest, at)
                await state.store.scrub()


def _forget_here(state: State, digest: str, at: int) -> int:
    state.recent.forgotten[digest] = at
    state.replayer.forget_conversations()
    return state.recent.forget(
        lambda served: served.began_at * 1_000_000 <= at and tenant_digest(served.line.tenant) == digest
    )
