"""Find Chromium for `make test-browser`; where there is none, install Debian's.

python -m tools.find_browser
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

VARIABLE = "THOUGHTLINE_CHROMIUM"
"""Names another one."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")


def found() -> str | None:
    """Where Chromium is."""
    return os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, NAMES)), None)


def main() -> int:
    if found() is None and shutil.which("apt-get") and os.geteuid() == 0:
        for command in (INSTALL, ("apt-get", "update"), INSTALL):
            if found() is None:
                subprocess.run(command, stdout=sys.stderr)
    path = found()
    if path is None:
        remedy = f"as root, `{' '.join(INSTALL)}`; or name one: {VARIABLE}=/path/to/chromium"
        print(f"There is no Chromium here. Install it: {remedy}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
