"""Replacements for secrets in a recording: the same original always gets the same one.

A replacement has only the shape of its original, so no key could reverse it. They are drawn from a random source that
the caller provides.
"""

from __future__ import annotations

import random
import re
import string

from thoughtline.recording.secrets import PLACEHOLDER
from thoughtline.replay.ids import random_parts

_HEX = re.compile(r"(?:[0-9a-f]+|[0-9A-F]+)\Z")
_UUID = re.compile(r"([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})")
_CJK, _CJK_SIZE = 0x4E00, 0x5000
_MAX_DRAWS = 200
_USUAL_HOMES = re.compile(r"(?:user[0-9]*|root|Public|Shared|\.\.?|~|\$\w+|%\w+%)\Z")


class StandIns:
    """The replacements of one recording."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.keys: dict[str, str] = {}
        self.runs: dict[str, str] = {}
        self._seals: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._mails: dict[str, str] = {}
        self.homes: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._issued: set[str] = set()

    def key(self, original: str) -> str:
        """Replace a key or password."""
        if PLACEHOLDER.fullmatch(original):
            return original
        return self.keys.setdefault(original, f"KEY_REDACTED_{len(self.keys) + 1}")

    def seal(self, original: str) -> str:
        """A signature or ciphertext: short, and base64 in both of its alphabets, as some clients turn one into the
        other."""
        plain = original.translate(str.maketrans("-_", "+/")).rstrip("=")
        if plain in self._issued or not plain:
            return original
        if plain not in self._seals:
            self._seals[plain] = self._issue(f"SIGREDACTED{len(self._seals) + 1:05d}")
        return self._seals[plain]

    def seal_pieces(self, pieces: list[str]) -> list[str]:
        """A signature that came in pieces, or the same place of a stream with several: each and all of them joined have
        a stand-in, and the one is made of the others."""
        if len(pieces) == 1 or len(pieces) > 4 or any(len(piece) < 16 for piece in pieces):
            return [self.seal("".join(pieces)), *("" for _ in pieces[1:])]
        shown = [self.seal(piece) for piece in pieces]
        joined = "".join(pieces).translate(str.maketrans("-_", "+/")).rstrip("=")
        if joined not in self._issued:
            self._seals[joined] = self._issue("".join(shown))
        return shown

    def file(self, original: str) -> str:
        """Replace an image or document: still base64."""
        if original in self._issued:
            return original
        if original not in self._files:
            self._files[original] = self._issue(f"FILE{len(self._files) + 1:08d}")
        return self._files[original]

    def mail(self, original: str) -> str:
        if PLACEHOLDER.fullmatch(original):
            return original
        return self._mails.setdefault(original.lower(), f"user{len(self._mails) + 1}@example.com")

    def home(self, original: str) -> str:
        """Replace the name of a user's home folder."""
        if _USUAL_HOMES.match(original):
            return original
        return self.homes.setdefault(original, f"user{len(self.homes) + 1}")

    def id(self, original: str) -> str:
        """Replace an id, keeping its prefix and shape: random parts are drawn again, counters stay."""
        pieces = _UUID.split(original)
        for at in range(0, len(pieces), 2):
            for part in random_parts(pieces[at]):
                pieces[at] = pieces[at].replace(part, self.run(part))
        pieces[1::2] = map(self.uuid, pieces[1::2])
        return "".join(pieces)

    def uuid(self, original: str) -> str:
        if original in self._issued:
            return original
        if original not in self.runs:
            self.runs[original] = self._issue("-".join(map(self._draw, original.split("-"))))
        return self.runs[original]

    def run(self, original: str) -> str:
        """Replace letters and digits of an id."""
        if original in self._issued:
            return original
        if original not in self.runs:
            self.runs[original] = self._issue(self._fresh(original))
        return self.runs[original]

    def word(self, original: str) -> str:
        """Replace a word of a text: same length, with capitals and digits in the same places."""
        if original not in self._words:
            self._words[original] = self._issue(self._fresh(original))
        return self._words[original]

    def _issue(self, shown: str) -> str:
        self._issued.add(shown)
        return shown

    def _fresh(self, original: str) -> str:
        """Return one that is not used yet, as long as there are any."""
        shown = self._draw(original)
        for _ in range(_MAX_DRAWS):
            if shown not in self._issued and (shown != original or len(original) < 3):
                break
            shown = self._draw(original)
        return shown

    def _draw(self, original: str) -> str:
        """Return characters of the same classes, so that the shape of an id stays recognisable."""
        letters = "abcdef" if _HEX.match(original) and len(original) >= 4 else string.ascii_lowercase
        drawn = [self._drawn(char, letters) for char in original]
        if original[:1].isdigit():  # a run of digits that begins with 0 is a counter
            drawn[0] = "0" if original[0] == "0" else self._chance.choice("123456789")
        return "".join(drawn)

    def _drawn(self, char: str, letters: str) -> str:
        if char.isdigit():
            return self._chance.choice(string.digits)
        if not char.isalpha():
            return char
        if char.isascii() or char.lower() != char.upper():
            drawn = self._chance.choice(letters)
            return drawn.upper() if char.isupper() else drawn
        return chr(_CJK + self._chance.randrange(_CJK_SIZE))
