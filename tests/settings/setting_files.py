"""Files of settings, written and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from thoughtline.settings import Flags, Settings, load_settings
from thoughtline.values.errors import SettingsError

HOME = Path("/nobody")
NO_FLAGS = Flags()


def loaded(file: Path, text: str, environment: Mapping[str, str] | None = None, flags: Flags = NO_FLAGS) -> Settings:
    file.write_text(text, "utf-8")
    return load_settings(file, environment or {}, flags, HOME)


def refused(file: Path, text: str, environment: Mapping[str, str] | None = None, flags: Flags = NO_FLAGS) -> list[str]:
    """The message, without the folder of the file."""
    with pytest.raises(SettingsError) as caught:
        loaded(file, text, environment, flags)
    return [str(problem).removeprefix(f"{file.parent}/") for problem in caught.value.problems]
