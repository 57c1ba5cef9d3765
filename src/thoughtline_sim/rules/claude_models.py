"""Claude's models by family and version: how each thinks, what it rejects, whose blocks it reads.

Anthropic, "Troubleshooting thinking" and "Preserved thinking" (2026-09-26), and the what's-new pages of each model. An
unknown name behaves as the newest generation: bound on every account, only adaptive thinking, no sampling, no forced
tool.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Platform = Literal["api", "bedrock", "google"]
Checks = Literal["never", "by account", "always"]

_NAME = re.compile(
    r"claude-(?:(?P<old>\d(?:-\d)?)-)?(?P<family>[a-z]+)(?:-(?P<version>\d{1,2}(?:[-.]\d{1,2})?)(?!\d))?"
)
_SOME: tuple[str, ...] = ("low", "medium", "high")
_MAX: tuple[str, ...] = (*_SOME, "max")
_ALL: tuple[str, ...] = (*_SOME, "xhigh", "max")
_FAMILIES = ("opus", "sonnet", "haiku", "fable", "mythos")


class ClaudeModel(NamedTuple):
    """The behaviour of a model. The defaults are those of the newest generation."""

    family: str = ""
    version: tuple[int, int] = (99, 0)
    modes: tuple[str, ...] = ("adaptive",)
    thinks_unasked: bool = True
    efforts: tuple[str, ...] = _ALL
    takes_forced_tool: bool = False
    takes_sampling: bool = False
    takes_prefill: bool = False
    checks: Checks = "always"
    """Whether it compares the conversation before a block with the original one."""
    is_account_bound: bool = False
    """Whether its blocks are dropped in another account. Others' signatures are rejected there."""
    hides_text: bool = True
    """Whether thinking is left out of the answer by default."""

    @property
    def is_bound(self) -> bool:
        return self.checks != "never"

    @property
    def drops_unreadable(self) -> bool:
        """From 5 on, a block that the model can't read is dropped; before, it is rejected."""
        return self.version >= (5, 0)


_CLASSIC = ClaudeModel(
    modes=("enabled", "disabled"),
    thinks_unasked=False,
    efforts=(),
    takes_sampling=True,
    takes_prefill=True,
    checks="never",
    hides_text=False,
)
_FOUR_SIX = _CLASSIC._replace(modes=("adaptive", "enabled", "disabled"), efforts=_MAX, takes_prefill=False)
_FOUR_SEVEN = ClaudeModel(modes=("adaptive", "disabled"), thinks_unasked=False, checks="never")
_FIVE = _FOUR_SEVEN._replace(thinks_unasked=True, takes_forced_tool=True)
_ALWAYS = ClaudeModel(checks="never")
_BOUND = ClaudeModel(checks="by account")

_ROWS: dict[str, tuple[tuple[tuple[int, int], ClaudeModel], ...]] = {
    "opus": (
        ((3, 0), _CLASSIC),
        ((4, 5), _CLASSIC._replace(efforts=_SOME)),
        ((4, 6), _FOUR_SIX),
        ((4, 7), _FOUR_SEVEN),
        ((5, 0), _FIVE),
        ((5, 1), _BOUND),
        ((5, 5), _BOUND),
    ),
    "sonnet": (
        ((3, 0), _CLASSIC),
        ((4, 6), _FOUR_SIX),
        ((4, 7), _FOUR_SEVEN),
        ((5, 0), _FIVE),
        ((5, 1), _BOUND),
        ((5, 5), _BOUND._replace(modes=("adaptive", "between_tools"), is_account_bound=True)),
    ),
    "haiku": (
        ((3, 0), _CLASSIC),
        ((4, 6), _BOUND),
        ((5, 5), _BOUND._replace(modes=("adaptive", "disabled"), takes_forced_tool=True, is_account_bound=True)),
    ),
    "fable": (((5, 0), _ALWAYS), ((5, 1), _BOUND), ((5, 2), ClaudeModel())),
    "mythos": (((5, 0), _ALWAYS), ((5, 1), ClaudeModel()), ((5, 2), ClaudeModel())),
}
"""By family and first version. Later versions than the last row of a family are of the newest generation."""
_MYTHOS_PREVIEW = _ALWAYS._replace(family="mythos", version=(4, 9), modes=("adaptive", "enabled"))
_PINNED = {"classic": "claude-sonnet-4-5", "adaptive": "claude-opus-4-8"}
"""Profiles under which every name behaves as one older model."""


def model_named(name: str, profile: str = "") -> ClaudeModel:
    """The model of a name, in any platform's spelling: `us.anthropic.claude-opus-5-5-v1:0`, `claude-sonnet-5[1m]`,
    `claude-haiku-4-5@20251001`, `anthropic/claude-sonnet-4.5`.
    """
    if profile in _PINNED:
        return model_named(_PINNED[profile])
    if "mythos-preview" in name:
        return _MYTHOS_PREVIEW
    found = _NAME.search(name)
    if found is None or found["family"] not in _FAMILIES:
        return ClaudeModel(family=found["family"] if found else name)
    numbers = re.split("[-.]", found["version"] or found["old"] or "99")
    version = (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0)
    rows = _ROWS[found["family"]]
    is_listed = rows[0][0] <= version <= rows[-1][0] or version < (4, 5)
    row = next((row for floor, row in reversed(rows) if floor <= version), rows[0][1]) if is_listed else ClaudeModel()
    return row._replace(family=found["family"], version=version)


def reads(reader: ClaudeModel, maker: ClaudeModel, platform: Platform) -> bool:
    """Whether a model reads the blocks of another ("Preserved thinking": models that read each other)."""
    if (reader.family, reader.version) == (maker.family, maker.version):
        return True
    is_kin = {reader.family, maker.family} <= {"fable", "mythos"} and reader.version == maker.version
    match reader.family, reader.version:
        case (("fable" | "mythos"), (5, 1)):
            is_opus = (maker.family, maker.version) == ("opus", (5, 5)) and platform == "api"
            return is_kin or is_opus or maker.version <= (5, 0)
        case "opus", (5, 5):
            is_newer = maker.version == (5, 5) and maker.family in ("sonnet", "haiku") and platform != "bedrock"
            return is_newer or (maker.family in ("opus", "sonnet", "haiku") and maker.version <= (5, 0))
        case "sonnet", (5, 5):
            latest = {"sonnet": (5, 0), "opus": (4, 8), "haiku": (4, 5)}
            is_haiku = (maker.family, maker.version) == ("haiku", (5, 5)) and platform != "bedrock"
            return is_haiku or maker.version <= latest.get(maker.family, (0, 0))
    return is_kin or (not reader.is_bound and maker.version <= reader.version)
