"""Edits clients' files and restores them.

    steps of a row, current files ── changes_for ──▶ changes
    changes ── ClientRecord.write ──▶ files, and the record of them ── ClientRecord.undo ──▶ files as they were

The record is in our own data directory: the previous content of each file, and a digest of what was written. Files that
changed since then are left alone.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from thoughtline.clients import Address, Client, SetupStep, lines_of
from thoughtline.clients.launching import shell_lines
from thoughtline.commands.file_edits.env_edits import edited_env
from thoughtline.commands.file_edits.json_edits import edited_json
from thoughtline.commands.file_edits.merging import Uneditable
from thoughtline.commands.file_edits.toml_edits import edited_toml
from thoughtline.commands.file_edits.yaml_edits import edited_yaml
from thoughtline.settings import make_private
from thoughtline.values.errors import Declined

_USER_FOLDERS = {
    "darwin": {"~/.config/Code/": "~/Library/Application Support/Code/"},
    "win32": {"~/.config/Code/": "~/AppData/Roaming/Code/", "~/.config/zed/": "~/AppData/Roaming/Zed/"},
}
"""Where editors keep what is in ~/.config on Linux."""


class Change(NamedTuple):
    """A file before and after; None: it does not exist."""

    path: Path
    before: bytes | None
    after: bytes


class KeptFile(msgspec.Struct):
    """A file's content before our change, and a digest of our version."""

    path: str
    before: bytes | None
    mode: int
    digest: str


class ClientRecord:
    """The changes for one client, in one file of the data directory."""

    def __init__(self, folder: Path, client: Client) -> None:
        self.path = folder / "connected" / f"{client.name}.json"
        self._client = client

    def write(self, changes: Iterable[Change]) -> None:
        """Write the changes. A file that is still our version keeps the older backup."""
        kept = {each.path: each for each in self._kept()}
        for change in changes:
            known = kept.get(str(change.path))
            mode = change.path.stat().st_mode & 0o777 if change.before is not None else 0o600
            if known is None or known.digest != _digest(change.before):
                known = KeptFile(str(change.path), change.before, mode, "")
            known.digest = _digest(change.after)
            kept[known.path] = known
            self._save(list(kept.values()))  # first: without a backup nothing is changed
            _replace(change.path, change.after, mode & 0o700 or 0o600)

    def undo(self) -> list[Path]:
        """Restore everything byte for byte, or nothing at all. Raises `Declined`."""
        kept = self._kept()
        if not kept:
            raise Declined(
                404, "nothing_written", f"There is nothing to undo for {self._client.title}.", f"({self.path})"
            )
        changed = [each.path for each in kept if _digest(_bytes(Path(each.path))) != each.digest]
        if changed:
            remedy = f"It was left unchanged; its former content is in {self.path}."
            raise Declined(409, "changed_since", f"{changed[0]} has been changed since.", remedy)
        for each in kept:
            if each.before is None:
                Path(each.path).unlink()
            else:
                _replace(Path(each.path), each.before, each.mode)
        self.path.unlink()
        return [Path(each.path) for each in kept]

    def _kept(self) -> list[KeptFile]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=list[KeptFile])
        except FileNotFoundError:
            return []

    def _save(self, kept: list[KeptFile]) -> None:
        make_private(self.path.parent)
        _replace(self.path, msgspec.json.format(msgspec.json.encode(kept)), 0o600)


def changes_for(client: Client, address: Address, key: str, file: Path | None, home: Path) -> list[Change]:
    """The changes to write, without files that are already right. Raises `Declined`."""
    steps = [step for step in client.steps if step.file] or [step for step in client.steps if file and _is_file(step)]
    if not steps:
        remedy = f"What to set in it: thoughtline connect {client.name}"
        raise Declined(400, "no_file", f"{client.title} has no settings file that we know.", remedy)
    changes = []
    for step in steps[:1] if file else steps:
        path = (file or file_of(step, home)).resolve()  # a link stays a link
        before = _bytes(path)
        after = edited(step, path, before, lines_of(client, step, address, key=key))
        if after != before:
            changes.append(Change(path, before, after))
    return changes


def file_of(step: SetupStep, home: Path) -> Path:
    """A client's file. The variant with comments is preferred, as by the programs themselves."""
    there = step.file
    for here, elsewhere in _USER_FOLDERS.get(sys.platform, {}).items():
        there = there.replace(here, elsewhere)
    path = home / there.removeprefix("~/")
    commented = path.with_suffix(".jsonc")
    return commented if path.suffix == ".json" and commented.exists() else path


def _is_file(step: SetupStep) -> bool:
    return step.language in ("json", "toml", "yaml")


def edited(step: SetupStep, path: Path, before: bytes | None, lines: str) -> bytes:
    """A client's file with the lines of a step in it. Raises `Declined`."""
    try:
        text = (before or b"").decode()
        return _edited_text(step, path, text, lines).encode()
    except UnicodeDecodeError:
        problem = "it is not UTF-8"
    except Uneditable as error:
        problem = str(error)
    remedy = "Put the lines in by hand: leave out --write to see them."
    raise Declined(409, "uneditable", f"{path} was not changed: {problem}.", remedy)


def _edited_text(step: SetupStep, path: Path, text: str, lines: str) -> str:
    if step.language == "shell":
        variables = shell_lines(lines).variables
        if path.suffix in (".json", ".jsonc"):
            return edited_json(text, msgspec.json.format(msgspec.json.encode({"env": variables}), indent=2).decode())
        return edited_env(text, variables)
    if step.language == "yaml":
        return edited_yaml(text, lines, step.kept)
    return edited_toml(text, lines) if step.language == "toml" else edited_json(text, lines)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _replace(path: Path, data: bytes, mode: int) -> None:
    """Written completely under another name, then moved into place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, written = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            os.chmod(written, mode)
            os.replace(written, path)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(written)
            raise
    except OSError as error:
        raise Declined(
            500, "unwritable", f"{path} can't be written: {error.strerror}.", "Nothing was changed."
        ) from None
