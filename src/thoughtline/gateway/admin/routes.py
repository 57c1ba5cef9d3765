"""Routes with the health of their targets, and the providers that can be asked."""

from __future__ import annotations

from thoughtline.gateway.admin.status_answers import ProvidersView, RoutesView
from thoughtline.gateway.state import State
from thoughtline.values.errors import Declined


def routes_view(state: State) -> RoutesView:
    raise Declined(501, "not_yet", "Not yet.")


def providers_view(state: State) -> ProvidersView:
    raise Declined(501, "not_yet", "Not yet.")
