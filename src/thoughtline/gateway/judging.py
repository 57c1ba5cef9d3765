"""The verdict on a provider's error, from what an attempt knows about it."""

from __future__ import annotations

from thoughtline.failover.failures import failure_of
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.verdicts import ProviderError, Verdict, of_response


def verdict_on(attempt: Attempt, status: int) -> Verdict:
    """Return the verdict. The first refusal counts: the client's own request got it."""
    note = next((one for one in attempt.log.refusals if one.status == status), None)
    error = ProviderError(attempt.ask.target.provider.name, status, is_own_key=bool(attempt.ask.key))
    if note is None:
        return of_response(error)
    failure = failure_of(status, attempt.refusal.plain) if attempt.refusal is not None else None
    return of_response(
        error._replace(
            words=note.words, code=note.code, refusal=note.refusal, failure=failure, is_changed=attempt.log.is_changed
        )
    )
