"""For all tests: no law is judged by the clock of a machine that has other things to do."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
