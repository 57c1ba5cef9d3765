"""Build a release and try it as a stranger would.

python -m tools.dist    (or `make dist`, with PROJECT_URL=https://… if the project is published)

The wheel and the source distribution are built and checked; then, in an empty environment with nothing but the wheel
and what it asks for: `thoughtline demo`, and `thoughtline serve --sim deepseek` with the requests that it prints.
"""

from __future__ import annotations

import email
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
WANTED = ("Name", "Version", "Summary", "Author", "License-Expression", "Requires-Python", "Keywords", "Classifier")
STRANGE = re.compile(r"(^|/)(\.|__pycache__)|\.(pyc|db|log)$")
LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


def main() -> int:
    """Each step is told; the first that fails is the end."""
    wheel, source = built()
    for path in (wheel, source):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB, {len(names_in(path))} files")
    problems = [*check_metadata(metadata_of(wheel)), *check_names(wheel), *check_names(source)]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    print("metadata: complete, every link works")
    with tempfile.TemporaryDirectory() as folder:
        return tried(wheel, Path(folder))


def built() -> tuple[Path, Path]:
    """The wheel is made from the source distribution, so that this is whole too."""
    shutil.rmtree(DIST, ignore_errors=True)
    _hatch(ROOT, "sdist")
    (source,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
        _hatch(next(Path(folder).iterdir()), "wheel")
    (wheel,) = DIST.glob("*.whl")
    return wheel, source


def _hatch(folder: Path, target: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(DIST)]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def names_in(path: Path) -> list[str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as source:
        return source.getnames()


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def check_metadata(metadata: Message) -> Iterator[str]:
    """What an index shows, and what would not work there."""
    yield from (f"metadata: no {name}" for name in WANTED if not metadata.get(name))
    if not (metadata.get("Description-Content-Type") or "").startswith("text/markdown"):
        yield "metadata: the description is not Markdown"
    description = str(metadata.get_payload())
    yield from (f"metadata: {target} leads nowhere on an index" for target in LINK.findall(description))
    if os.environ.get("PROJECT_URL") and not metadata.get_all("Project-URL"):
        yield "metadata: no Project-URL"


def check_names(path: Path) -> Iterator[str]:
    """Nothing gets in that was lying around."""
    parts = (name.partition("/")[2] if path.suffix == ".gz" else name for name in names_in(path))
    yield from (f"{path.name}: {name} does not belong there" for name in parts if STRANGE.search(name))


def tried(wheel: Path, folder: Path) -> int:
    """In an environment of its own, in an empty folder, with an empty home."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    command = str(folder / "venv" / "bin" / "thoughtline")
    home = folder / "home"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    print(_said([command, "version"], home, environment).strip())
    if "The same client, the same provider." not in _said([command, "demo"], home, environment):
        print("thoughtline demo: the session did not go on", file=sys.stderr)
        return 1
    print("thoughtline demo: works")
    return _served(command, home, environment)


def _said(command: list[str], home: Path, environment: dict[str, str]) -> str:
    return subprocess.run(command, cwd=home, env=environment, check=True, capture_output=True, text=True).stdout


def _served(command: str, home: Path, environment: dict[str, str]) -> int:
    words = [command, "serve", "--sim", "deepseek", "--port", "0"]
    with subprocess.Popen(words, cwd=home, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        printed = list(itertools.islice((line for line in server.stderr if line.startswith("curl ")), 2))
        threading.Thread(target=server.stderr.read, daemon=True).start()
        answers = [subprocess.run(line, shell=True, capture_output=True, text=True).stdout for line in printed]
        server.terminate()
    if not answers or "x-thoughtline-replay: restored=1" not in answers[-1]:
        print("thoughtline serve --sim deepseek: the second request was not restored", file=sys.stderr)
        return 1
    print("thoughtline serve --sim deepseek: both requests as printed, restored=1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
