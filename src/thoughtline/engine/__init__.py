"""The engine: restores reasoning in a request, heals a refused one, and records what a response contains.

    request ─▶ replayer.prepare ─▶ Prepared ─▶ provider ─▶ response ─▶ capture.Watch ─▶ Record ─▶ replayer.save
                 │  sessions: which session it belongs to             │
                 │  contracts: what the provider demands              ├─ refused: heal finds what to change,
                 │  request: decode, find records, plan, encode       │  learned keeps what the refusal taught,
                 └─ resume: only the end, if the rest is cached       └─ and replayer.heal returns the next request

The gateway and the library both use it; `threads` runs long work in threads, `audit` reports what a provider would
refuse in a request. The names below are for programs.
"""

from __future__ import annotations

from thoughtline.destinations.credentials import account_of, tenant_of
from thoughtline.destinations.request_url import AskedAddress, provider_of, read_address
from thoughtline.engine.capture import StreamWatch, Watch
from thoughtline.engine.contracts import ContractBook
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import Prepared
from thoughtline.engine.sessions import session_of
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings, open_store

__all__ = [
    "AskedAddress",
    "ContractBook",
    "Lessons",
    "Prepared",
    "Replayer",
    "Settings",
    "StoreSettings",
    "StreamWatch",
    "Watch",
    "account_of",
    "open_store",
    "provider_of",
    "read_address",
    "session_of",
    "tenant_of",
]
