"""What a server takes of a request's settings, as data: one rule for one setting."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Do = Literal[
    "drop",  # leave the setting out
    "set",  # give it the first of `values`
    "default",  # the same, if it is not there
    "one_of",  # give it the nearest of `values`, if it is none of them
    "between",  # keep it between the two `values`; one may be missing
    "below",  # keep it below the setting that `values` name
    "move",  # write it where `values` say
    "unforce",  # let the model choose whether to call a tool; with `values`, which of them
    "drop_kind",  # leave out the elements of a list whose type is the first of `values`
    "put_first",  # put the element of a list whose type is the first of `values` in front of the others
]


class SettingRule(Struct, frozen=True, gc=False, omit_defaults=True):
    """How one setting must be. `path` names it, with dots: `reasoning.effort`.

    `values` are JSON texts. `when` says in which requests it holds: empty in all, `thinking` in those that think,
    `unsaid` in those that don't say `off`, `whole` in those that don't stream, `has PATH` and `PATH=JSON` in those with
    such a setting. A path `@anthropic-beta/x` is a value of that header.
    """

    path: str
    do: Do
    values: tuple[str, ...] = ()
    when: str = ""
