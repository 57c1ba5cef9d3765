"""Every error that this package raises on purpose; `ThoughtlineError` is the base of all."""

from __future__ import annotations

from thoughtline.values.errors import (
    AddressError,
    AddressRefused,
    Declined,
    DecodeError,
    EncodeError,
    Fault,
    ForeignSeal,
    InputProblem,
    LimitExceeded,
    NewerStore,
    SettingsError,
    StoreDamaged,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    ThoughtlineError,
    Untranslatable,
    WrongKey,
)

__all__ = [
    "AddressError",
    "AddressRefused",
    "Declined",
    "DecodeError",
    "EncodeError",
    "Fault",
    "ForeignSeal",
    "InputProblem",
    "LimitExceeded",
    "NewerStore",
    "SettingsError",
    "StoreDamaged",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "ThoughtlineError",
    "Untranslatable",
    "WrongKey",
]
