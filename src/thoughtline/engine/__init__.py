"""The engine: restores reasoning in a request, heals a refused one, and records what a response contains.

    request ─▶ sessions: who asks, in which session
            ─▶ replayer.prepare ─▶ Prepared ─▶ provider ─▶ response ─▶ capture.Watch ─▶ Record ─▶ replayer.save
                 │  contracts: what the provider demands              │
                 │  replayer: decode, find records                    ├─ refused: heal finds what to change,
                 │  request: plan (replay.planner), encode            │  learned keeps what the refusal taught,
                 └─ resume: only the end, if the rest is cached       └─ and replayer.heal returns the next request

The gateway and the library both use it; `threads` runs long work in threads, `audit` reports what a provider would
refuse in a request.

    contract   what a provider and model demand of reasoning in a request         providers/contract.py
    policy     which remedies are tried for what is missing                       replay/plans.py
    lesson     a correction of a contract that a refusal taught                   engine/learned.py
    frame      system prompt and other messages before the model's first turn     replay/frames.py
    step       a model's turn in a request, with its calls and their results      replay/keys.py
    lineage    digest of everything visible up to a step: its strongest key       replay/keys.py
    spot       where in a conversation the answer of a request belongs            replay/keys.py
    seal       signature or ciphertext that only its maker can read               values/items.py
    envelope   our own seal, around reasoning for a client of another format      translation/
    filler     what stands in for reasoning that is not known, such as `" "`      providers/contract.py
    finding    what was done or could not be done, with its place                 replay/findings.py
    cut        a request without the beginning that is cached                     replay/remembering.py
    carried    what translation knows of a request, for planning                  engine/request.py
    outcome    counts of restored, blank, stripped, healed turns                  values/outcome.py
    door       an endpoint: the same provider in another format                   providers/row.py

The names below are for programs.
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
