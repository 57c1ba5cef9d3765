"""What a line is built on: a `Replayer` prepares requests over a store and heals refused ones, a `Watch` reads
responses."""

from __future__ import annotations

from thoughtline.contract_book import ContractBook
from thoughtline.credentials import account_of, tenant_of
from thoughtline.lessons import Lessons
from thoughtline.outgoing import AskedAddress, provider_of, read_address
from thoughtline.prepared import Prepared
from thoughtline.replayer import Replayer
from thoughtline.sessions import session_of
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings, open_store
from thoughtline.watching import StreamWatch, Watch

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
