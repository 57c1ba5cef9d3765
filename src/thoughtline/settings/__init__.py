"""What people write: a TOML file, the environment over it, flags over that, all as one tree of values with places.

    structs        every setting with its meaning and bounds; `Settings` is all of it
    file ── tree ──┐
    environment ───┼──▶ Tree of `Given` values ── tables ──▶ members of `Settings`
    flags ─────────┘                          └─▶ `Problem`s, all of them, each with its place and its remedy

A `Key` is a row that is made from a struct's member; the documentation and the example file are made from the rows. No
value that somebody wrote is ever printed: it may be a secret.
"""

from thoughtline.catalogue import ContinuityMode
from thoughtline.settings.loading import (
    FILE_NAME,
    FILE_VARIABLE,
    check_exposure,
    data_directory,
    home_folder,
    is_loopback,
    load_settings,
    overlooked_file,
    own_files,
    settings_file,
)
from thoughtline.settings.overlay import strange_variables
from thoughtline.settings.structs import (
    CheckpointCount,
    ContentTable,
    ContinuitySettings,
    DebugSettings,
    Flags,
    ReplaySettings,
    RouteSettings,
    ServerSettings,
    Settings,
    StoreTable,
    TagsTable,
    TranslationSettings,
)

__all__ = [
    "FILE_NAME",
    "FILE_VARIABLE",
    "CheckpointCount",
    "ContentTable",
    "ContinuityMode",
    "ContinuitySettings",
    "DebugSettings",
    "Flags",
    "ReplaySettings",
    "RouteSettings",
    "ServerSettings",
    "Settings",
    "StoreTable",
    "TagsTable",
    "TranslationSettings",
    "check_exposure",
    "data_directory",
    "home_folder",
    "is_loopback",
    "load_settings",
    "overlooked_file",
    "own_files",
    "settings_file",
    "strange_variables",
]
