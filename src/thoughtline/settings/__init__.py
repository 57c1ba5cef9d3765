"""Settings: a TOML file, overridden by the environment, then by flags, all as one tree of values with their positions.

    structs        every setting with its meaning and bounds, in `Settings`
    file ── tree ──┐
    environment ───┼──▶ Tree of `Given` values ── tables ──▶ members of `Settings`
    flags ─────────┘                          └─▶ `Problem`s, all of them, each with its position and its remedy

A `Key` is a row made from a struct's member; the documentation and the example file are made from the rows. A value
that may be a secret is never printed.
"""

from thoughtline.destinations.catalogue import ContinuityMode as ContinuityMode
from thoughtline.settings.loading import FILE_NAME as FILE_NAME
from thoughtline.settings.loading import FILE_VARIABLE as FILE_VARIABLE
from thoughtline.settings.loading import check_exposure as check_exposure
from thoughtline.settings.loading import data_directory as data_directory
from thoughtline.settings.loading import home_folder as home_folder
from thoughtline.settings.loading import is_loopback as is_loopback
from thoughtline.settings.loading import load_settings as load_settings
from thoughtline.settings.loading import make_private as make_private
from thoughtline.settings.loading import overlooked_file as overlooked_file
from thoughtline.settings.loading import own_files as own_files
from thoughtline.settings.loading import settings_file as settings_file
from thoughtline.settings.overlay import strange_variables as strange_variables
from thoughtline.settings.structs import CheckpointCount as CheckpointCount
from thoughtline.settings.structs import ContentTable as ContentTable
from thoughtline.settings.structs import ContinuitySettings as ContinuitySettings
from thoughtline.settings.structs import DashboardSettings as DashboardSettings
from thoughtline.settings.structs import DebugSettings as DebugSettings
from thoughtline.settings.structs import Flags as Flags
from thoughtline.settings.structs import ReplaySettings as ReplaySettings
from thoughtline.settings.structs import RouteSettings as RouteSettings
from thoughtline.settings.structs import ServerSettings as ServerSettings
from thoughtline.settings.structs import Settings as Settings
from thoughtline.settings.structs import StoreTable as StoreTable
from thoughtline.settings.structs import TagsTable as TagsTable
from thoughtline.settings.structs import TranslationSettings as TranslationSettings
