"""How soon a provider sees that a client has left: `python -m bench.leaving [--requests 50]`.

A client sends a request, and closes its connection before the provider has said anything: over http and TLS, how many
milliseconds later the provider's connection is closed. Exit status 1 where one took more than 100.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.gateway.gateways import running
from tests.gateway.test_bounds import asking
from tests.gateway.tls_front import certify

MAX_MS = 100.0


class Provider:
    """Listens, and never answers."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.has_come, self.has_gone = threading.Semaphore(0), threading.Semaphore(0)
        self.gone_at = 0.0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                connection.recv(65536)
                self.has_come.release()
                with contextlib.suppress(OSError):
                    while connection.recv(65536):
                        pass
                self.gone_at = time.perf_counter()
                self.has_gone.release()


def measure(provider: Provider, requests: int) -> list[float]:
    """Milliseconds from the client's close to the provider's."""
    took = []
    with running({"deepseek": provider.url}) as gateway:
        for _ in range(requests):
            with asking(gateway):
                provider.has_come.acquire()
                left_at = time.perf_counter()
            provider.has_gone.acquire()
            took.append(1e3 * (provider.gone_at - left_at))
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50, help="of each kind")
    asked, slowest = parser.parse_args(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        certify(Path(folder))
        os.environ["SSL_CERT_FILE"] = f"{folder}/authority.pem"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/server.pem")
        for name, provider in (("http", Provider(None)), ("TLS", Provider(context))):
            took = measure(provider, asked.requests)
            slowest = max(slowest, *took)
            print(f"{name:<5} median {statistics.median(took):.1f} ms, at most {max(took):.1f} ms")
    sys.exit(1 if slowest > MAX_MS else 0)


if __name__ == "__main__":
    main()
