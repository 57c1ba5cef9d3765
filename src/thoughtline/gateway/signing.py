"""Signs requests with the gateway's own AWS credentials: Signature Version 4, by botocore (the extra `aws`).

A key of such a provider is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, followed by another colon and a session token if there is
one; `profile:NAME`; or `chain`, which finds credentials like every AWS tool: environment, files, SSO, the machine's
role.
"""

from __future__ import annotations

import asyncio
import logging
import re
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from thoughtline.providers.bedrock import REGION_IN_HOST, SIGNED_SERVICE, USUAL_REGION
from thoughtline.values.errors import Declined

UpHeaders: TypeAlias = list[tuple[str, str]]

CHAIN = "chain"
_REGION = re.compile(REGION_IN_HOST)


def can_sign() -> bool:
    """Whether botocore is installed."""
    return find_spec("botocore") is not None


class Signers:
    """Credentials by key, each looked up once; temporary ones renew themselves."""

    def __init__(self) -> None:
        self._credentials: dict[str, Any] = {}

    async def sign(self, key: str, method: str, url: str, *, headers: UpHeaders, body: bytes) -> UpHeaders:
        """Return the headers with a signature. Runs in a thread, because finding or renewing credentials may take a
        while."""
        signature = partial(self._signature, key, method, url, headers=dict(headers), body=body)
        return [*headers, *await asyncio.to_thread(signature)]

    def _signature(self, key: str, method: str, url: str, *, headers: dict[str, str], body: bytes) -> UpHeaders:
        auth, requests = import_module("botocore.auth"), import_module("botocore.awsrequest")
        logging.getLogger("botocore").setLevel(logging.WARNING)  # below that it logs tokens and signatures
        signed = {name: value for name, value in headers.items() if name == "content-type"}
        request = requests.AWSRequest(method=method, url=url, data=body, headers=signed)
        try:
            if key not in self._credentials:
                self._credentials[key] = _found(key)
            frozen = self._credentials[key].get_frozen_credentials()
            auth.SigV4Auth(frozen, SIGNED_SERVICE, region_of(url)).add_auth(request)
        except Exception as problem:  # any part of the chain: its message may quote what it read
            raise _unsigned(type(problem).__name__) from None
        return [(name.lower(), value) for name, value in request.headers.items() if name.lower() not in signed]


def _found(key: str) -> Any:
    session = import_module("botocore.session")
    profile = key.removeprefix("profile:") if key.startswith("profile:") else None
    if profile is None and key != CHAIN:
        return import_module("botocore.credentials").Credentials(*key.split(":", 2))
    found = session.Session(profile=profile).get_credentials()
    if found is None:
        raise LookupError
    return found


def region_of(url: str) -> str:
    """Return the region of a Bedrock host; the default one for any other host."""
    found = _REGION.search(urlsplit(url).hostname or "")
    return found[1] if found else USUAL_REGION


def _unsigned(why: str) -> Declined:
    return Declined(
        502,
        "not_signed",
        f"The gateway found no AWS credentials to sign with ({why}).",
        "Set api_key, or give the gateway's process credentials: `aws sts get-caller-identity` must work there.",
    )
