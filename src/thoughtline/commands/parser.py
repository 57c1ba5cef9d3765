"""An argument parser that says which word was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from thoughtline.values.nearest import nearest

_CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)'")


class Parser(argparse.ArgumentParser):
    """Its subparsers are of the same kind, and each speaks of the options that it knows itself."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        strange = next((word for word in unknown if word.startswith("-")), None)
        if strange is not None:
            self.error(f"unrecognized arguments: {strange}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        super().error(message + self._remedy(message))

    def _remedy(self, message: str) -> str:
        choice = _CHOICE.search(message)
        if choice is not None:
            return _meant(choice["word"], self._words())
        if message.startswith("unrecognized arguments: -"):
            return _meant(message.rpartition(" ")[2].partition("=")[0], self._option_string_actions)
        return ""

    def _words(self) -> Sequence[str]:
        return [str(word) for action in self._actions for word in action.choices or ()]


def _meant(word: str, known: Any) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""
