"""Python imports this as it starts where this folder is in `PYTHONPATH`: see `thoughtline.run`.

With `THOUGHTLINE_INSTALL=1`, every HTTP client of the process remembers. A `sitecustomize` of the user's or the
system's is imported as if this were not here.
"""

import os
import sys
from importlib import import_module

_HERE = os.path.dirname(os.path.abspath(__file__))


def _go_on() -> None:
    """Import the `sitecustomize` that this one stands before, if there is one."""
    ours = sys.modules.pop("sitecustomize", None)
    before = sys.path[:]
    sys.path[:] = [entry for entry in before if os.path.abspath(entry or ".") != _HERE]
    try:
        import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours
    finally:
        sys.path[:] = before


def _install() -> None:
    import thoughtline

    thoughtline.install()


try:
    _go_on()
finally:
    if os.environ.get("THOUGHTLINE_INSTALL") == "1":
        _install()
