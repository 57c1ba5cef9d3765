"""Build a release and try it as a stranger would.

python -m tools.dist    (or `make dist`, with PROJECT_URL=https://… if the project is published)

The wheel and the source distribution are built and checked; then, in an empty environment with nothing but the wheel
and what its gateway asks for: `thoughtline demo`, and `thoughtline serve --sim deepseek` with the requests that it
prints. In another one with the library alone: its size, its import, and what `thoughtline serve` says there.
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
STRANGE = re.compile(r"(^|/)(\.(?!gitignore$)|__pycache__)|\.(pyc|log)$")
LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


def main() -> int:
    """Each step is told; the first that fails is the end."""
    wheel, source = built()
    for path in (wheel, source):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB, {len(names_in(path))} files")
    problems = [*check_metadata(metadata_of(wheel)), *check_names(wheel), *check_names(source)]
    if not problems:
        print("metadata: complete, every link works")
        with tempfile.TemporaryDirectory() as folder:
            problems = check_commands(installed(wheel, Path(folder)), Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            problems += check_library(installed(wheel, Path(folder), extra=""))
    print("\n".join(problems or ["demo and serve --sim deepseek: work as printed"]))
    return 1 if problems else 0


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


def installed(wheel: Path, folder: Path, extra: str = "[gateway]") -> str:
    """With what it asks for, in an environment of its own; gives the command."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}{extra}"], check=True)
    return str(folder / "venv" / "bin" / "thoughtline")


def check_library(command: str) -> list[str]:
    """What the library brings, and how long it takes to be imported; a command says what it lacks."""
    python = Path(command).with_name("python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    sizes = {
        one.name: _size(one) for one in site.iterdir() if not one.name.startswith(("pip", "setuptools", "_distutils"))
    }
    told = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sorted(sizes.items(), key=lambda pair: -pair[1])[:5])
    print(f"the library alone: {sum(sizes.values()) / 1e6:.1f} MB ({told})")
    code = "import time; began = time.process_time(); import thoughtline; thoughtline.Line('memory://'); "
    code += "print(round(1000 * (time.process_time() - began)))"
    took = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    print(f"the import and a line: {took} ms of CPU")
    done = subprocess.run([command, "serve"], capture_output=True, text=True)
    is_said = done.returncode == 2 and "pip install 'thoughtline[gateway]'" in done.stderr
    return [] if is_said else [f"serve without the gateway: {done.stderr}"]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(_size(one) for one in path.iterdir())


def check_commands(command: str, folder: Path) -> list[str]:
    """What a stranger tries first, with an empty home and nothing in the environment."""
    home = folder / "home"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    demo = subprocess.run([command, "demo"], cwd=home, env=environment, capture_output=True, text=True)
    problems = [] if "The same client, the same provider." in demo.stdout else [f"demo: {demo.stdout}{demo.stderr}"]
    answers = pasted([command, "serve", "--sim", "deepseek", "--port", "0"], home, environment)
    if len(answers) != 2 or "x-thoughtline-replay: restored=1" not in answers[1]:
        problems.append(f"serve --sim deepseek: nothing restored in {answers}")
    return problems


def pasted(command: list[str], home: Path, environment: dict[str, str]) -> list[str]:
    """What is answered to the requests that a server prints for pasting."""
    with subprocess.Popen(command, cwd=home, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        printed = list(itertools.islice((line for line in server.stderr if line.startswith("curl ")), 2))
        threading.Thread(target=server.stderr.read, daemon=True).start()  # it goes on, and must not wait for us
        answers = [subprocess.run(line, shell=True, capture_output=True, text=True).stdout for line in printed]
        server.terminate()
    return answers


if __name__ == "__main__":
    sys.exit(main())
