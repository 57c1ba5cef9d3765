"""The engine: puts a model's thoughts back into a request, heals a refused one, and remembers what a response says.

    request ─▶ replayer.prepare ─▶ Prepared ─▶ provider ─▶ response ─▶ watching.Watch ─▶ Record ─▶ replayer.save
                 │  sessions: which session it belongs to             │
                 │  contract_book: what the provider demands          ├─ refused: healing finds what to change,
                 │  prepared: decode, find records, plan, encode      │  lessons keeps what the refusal taught,
                 └─ resuming: only the end, where the rest is known   └─ and replayer.heal gives the next request

The gateway and the library both drive it; `working` runs long work in threads, `opening` makes a contract book from
settings. The names below are for programs.
"""

from __future__ import annotations

from thoughtline.destinations.credentials import account_of, tenant_of
from thoughtline.destinations.outgoing import AskedAddress, provider_of, read_address
from thoughtline.engine.contract_book import ContractBook
from thoughtline.engine.lessons import Lessons
from thoughtline.engine.prepared import Prepared
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.sessions import session_of
from thoughtline.engine.watching import StreamWatch, Watch
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
