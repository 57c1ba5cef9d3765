"""`python -m thoughtline.run app.py`: run a Python program whose HTTP clients remember, without a change of its code.

    python -m thoughtline.run app.py --port 8000
    python -m thoughtline.run -m uvicorn app:app --workers 4

It sets `THOUGHTLINE_INSTALL=1` and puts `at_start` first in `PYTHONPATH`, then starts the same Python: as that starts,
it calls `thoughtline.install()`, and so does every Python that the program starts. Nothing is written into the
environment's packages. `--path` prints the folder, for a container or a service that sets both variables itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from thoughtline.library.configuring import settings_of
from thoughtline.values.errors import SettingsError

AT_START = Path(__file__).parent / "at_start"
VARIABLE = "THOUGHTLINE_INSTALL"


def run(arguments: list[str]) -> int:
    """The status to exit with, if nothing is run."""
    if arguments == ["--path"]:
        sys.stdout.write(f"{AT_START}\n")
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stderr.write("usage: python -m thoughtline.run [--path | SCRIPT | -m MODULE | -c CODE] ARGUMENTS …\n")
        return 2
    try:
        settings_of(None, None)
    except SettingsError as error:
        sys.stderr.write(f"thoughtline.run: {error}\n")
        return 2
    return _replace_process(arguments)


def _replace_process(arguments: list[str]) -> NoReturn:
    paths = [str(AT_START), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {VARIABLE: "1", "PYTHONPATH": os.pathsep.join(paths)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *arguments], environment)
