"""`thoughtline service`: files that systemd and launchd read, and the commands for them."""

from __future__ import annotations

import os
import plistlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from thoughtline.commands.service import LABEL, service_of
from thoughtline.values.errors import Declined

COMMAND = ["/opt/my tools/50%/thoughtline", "serve", "--config", "/etc/t.toml"]


def asked(folder: Path, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    """The command in a home of its own, with a program of the system that notes what it is asked."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    script = f'#!/bin/sh\necho "$@" >> "{folder}/asked"\n{"echo no bus >&2; exit 1" if fails else ""}\n'
    (programs / "systemctl").write_text(script)
    (programs / "systemctl").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("THOUGHTLINE_", "XDG_"))}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "service", *words],
        env=kept | {"HOME": str(folder), "PATH": f"{programs}:/usr/bin:/bin", "THOUGHTLINE_PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_installed_looked_at_and_uninstalled(tmp_path: Path) -> None:
    """A user's unit is written and started; afterwards nothing is left of it."""
    unit = tmp_path / ".config/systemd/user/thoughtline.service"
    done = asked(tmp_path, "install")
    assert done.returncode == 0, done.stderr
    assert "service uninstall" in done.stdout
    assert f"ExecStart={sys.executable} -m thoughtline.cli serve" in unit.read_text()
    status = asked(tmp_path, "status")
    assert status.returncode == 1
    assert f"installed: yes, {unit}" in status.stdout
    assert "answers:   no" in status.stdout
    assert asked(tmp_path, "uninstall").returncode == 0
    assert not unit.exists()
    assert "nothing to undo" in asked(tmp_path, "uninstall").stdout
    assert (tmp_path / "asked").read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable --now thoughtline.service",
        "--user is-active thoughtline.service",
        "--user disable --now thoughtline.service",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_an_unsupported_system_is_reported_with_the_command(tmp_path: Path) -> None:
    """The file stays, and the line can be run by hand."""
    failed = asked(tmp_path, "install", fails=True)
    assert failed.returncode == 2
    assert "`systemctl --user daemon-reload` failed: no bus. Are you logged in" in failed.stderr
    assert "systemctl --user daemon-reload && systemctl --user enable --now thoughtline.service\n" in failed.stderr
    assert "running:   no" in asked(tmp_path, "status", fails=True).stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_loads_the_unit(tmp_path: Path) -> None:
    """Also with a space and a percent sign in the program's path."""
    program = tmp_path / "my tools 50%" / "thoughtline"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    service = service_of("linux", [str(program), "serve"], tmp_path, {})
    unit = tmp_path / "thoughtline.service"
    unit.write_bytes(service.text)
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_launchd_reads_the_list(tmp_path: Path) -> None:
    """The program with its words as they are, started at login and after a crash."""
    service = service_of("darwin", COMMAND, tmp_path, {})
    content = plistlib.loads(service.text)
    assert content["ProgramArguments"] == COMMAND
    assert (content["RunAtLoad"], content["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert service.path == tmp_path / "Library/LaunchAgents" / f"{LABEL}.plist"
    assert service.start[0][:2] == ("launchctl", "bootstrap")
    assert service.stop[0][:2] == ("launchctl", "bootout")


def test_windows_gets_the_command_of_its_scheduler(tmp_path: Path) -> None:
    with pytest.raises(Declined) as caught:
        service_of("win32", COMMAND, tmp_path, {})
    assert "schtasks /create /sc onlogon" in caught.value.remedy
