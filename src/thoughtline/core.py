"""Replay without a store and without HTTP: the caller fetches records and sends requests.

    decode a body with `FORMATS` ── `needs` says which keys to look for ── `plan` says what to change ── `apply`, encode

`classify` says which rule a refusal is about, `learn` what it changes; `audit_replay` judges a single turn.
"""

from __future__ import annotations

from thoughtline.engine.capture import capture
from thoughtline.formats import FORMATS, Wire
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.planner import Needs, Plan, Policy, needs, plan
from thoughtline.replay.refusals import Correction, Refusal, classify, learn
from thoughtline.replay.turn_audit import ReplayAudit, ReplayContract, ReplayViolation, audit_replay, replay_contract_of
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity

__all__ = [
    "FORMATS",
    "Contract",
    "Correction",
    "Destination",
    "Dialect",
    "Finding",
    "Identity",
    "Needs",
    "Plan",
    "Policy",
    "Refusal",
    "ReplayAudit",
    "ReplayContract",
    "ReplayViolation",
    "Wire",
    "audit_replay",
    "capture",
    "classify",
    "learn",
    "needs",
    "plan",
    "replay_contract_of",
    "resolve",
]
