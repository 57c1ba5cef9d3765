"""Which settings of a request a server accepts, as data: one rule per setting."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Do = Literal[
    "drop",  # remove the setting
    "set",  # set it to the first of `values`
    "default",  # the same, if it is missing
    "one_of",  # set it to the nearest of `values`, unless it is one of them
    "between",  # keep it between the two `values`; one may be missing
    "below",  # keep it below the setting named by `values`
    "move",  # write it to the place named by `values`
    "unforce",  # let the model choose whether to call a tool; with `values`, which of them
    "drop_kind",  # remove the elements of a list whose type is the first of `values`
    "put_first",  # move the element of a list whose type is the first of `values` to the front
]


class SettingRule(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is accepted for one setting. `path` names it, with dots: `reasoning.effort`.

    `values` are JSON texts. `when` says which requests it applies to: empty for all, `thinking` for those that think,
    `unsaid` for those without `off`, `whole` for those that don't stream, `has PATH` and `PATH=JSON` for those with
    such a setting. A path `@anthropic-beta/x` is a value of that header.
    """

    path: str
    do: Do
    values: tuple[str, ...] = ()
    when: str = ""
