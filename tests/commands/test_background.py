"""A gateway in the background that does not start. One that does: test_run.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from thoughtline.commands.background import start_gateway
from thoughtline.values.errors import Declined


def test_why_it_did_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of its log, which is its own run's and only its owner's to read."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "wrong.toml"
    config.write_text("[server]\nprot = 1\n")
    log = tmp_path / "thoughtline" / "gateway.log"
    log.parent.mkdir()
    log.write_text("of an earlier run\n" * 100)
    log.chmod(0o600)
    with pytest.raises(Declined) as error:
        start_gateway(config, lambda: False)
    lines = log.read_text().splitlines()
    assert "of an earlier run" not in lines
    assert str(error.value) == f"The gateway did not start. {lines[-1]}"
    assert "prot" in log.read_text()
    assert str(log) in error.value.remedy
    assert log.stat().st_mode & 0o777 == 0o600
