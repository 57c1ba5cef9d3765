"""Broken situations, and the verdict on each: who is at fault, why, and what helps; the same sentence everywhere."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import httpx
import pytest
from msgspec.structs import replace

from tests.commands.doctor.scripted_servers import closed_port
from tests.gateway.managed_gateways import Managed, managed
from tests.gateway.tls_front import certify
from tests.gateway.upstreams import Answer, Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.cli import main
from thoughtline.destinations.catalogue import PROVIDERS, Provider, Timeouts
from thoughtline.gateway.connecting import Cause, ConnectFailed
from thoughtline.gateway.verdicts import (
    CHANGED,
    UNCHANGED,
    ProviderError,
    Verdict,
    of_response,
    unreachable,
)
from thoughtline.settings import ServerSettings, Settings

QUESTION = [{"role": "user", "content": "hello"}]
KEY = "sk-of-the-caller"


class Situation(NamedTuple):
    """What is broken, and the verdict. `own_key`: the gateway has a key for the provider. `proxy`: what the proxy
    variables name."""

    name: str
    server: str | Answer
    whose: str
    cause: str
    remedy: str
    own_key: str = ""
    path: str = "/kimi/v1/chat/completions"
    headers: tuple[tuple[str, str], ...] = ()
    proxy: str = ""
    server_settings: ServerSettings = ServerSettings()
    body: bytes = b""


def says(status: int, body: bytes | str = b"{}", kind: str = "application/json") -> Answer:
    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, body.encode() if isinstance(body, str) else body, ("content-type", kind))

    return answer


def error(message: str, code: str = "invalid_request_error") -> str:
    return json.dumps({"error": {"message": message, "code": code, "type": code}})


async def hangs_up(got: Got, out: Out) -> None:
    out.cut()


async def never(got: Got, out: Out) -> None:
    await out.gone()


async def breaks_off(got: Got, out: Out) -> None:
    await out.stream()
    await out.chunk(b'data: {"choices":[{"delta":{"content":"first"}}]}\n\n')
    out.cut()


PAGE = "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body><h1>nginx</h1></body></html>"
LOGIN = "<html><head><title>Hotel &amp; WLAN</title></head><body>Log in</body></html>"
FAR, PLAIN, MODE = "https://thoughtline.invalid", "/v1/chat/completions", "x-thoughtline-replay"
SMALL = ServerSettings(max_body_bytes=1000)
TL_KEY = "Bearer tl-0123456789abcdefghijklmnopqrstuv"
MISSING = "The `reasoning_content` in the thinking mode must be passed back to the API."

SITUATIONS = [
    Situation("dns", "http://thoughtline.invalid", "network", "its host name is unknown (DNS)", "Check the network"),
    Situation("refused", "closed", "network", "nothing listens there (connection refused)", "Start that server"),
    Situation("unknown authority", "tls", "network", "an authority that is not known here", "Set SSL_CERT_FILE"),
    Situation("other name", "tls localhost", "network", "its certificate is", "SSL_CERT_FILE"),
    Situation("no TLS", "https to http", "network", "it does not speak TLS", "Write http://"),
    Situation("TLS where http is written", "http to https", "provider", "closed the connection", "https:// or http://"),
    Situation("hangs up", hangs_up, "provider", "closed the connection before it answered", "Send the request again"),
    Situation("late", never, "provider", "did not answer in time", "Set a longer [providers.kimi] timeout"),
    Situation("breaks off", breaks_off, "provider", "broke off in the middle", "Send the request again"),
    Situation("500", says(500, error("boom")), "provider", "answered 500: it has a fault of its own", "later"),
    Situation("503", says(503, error("busy")), "provider", "answered 503: it is overloaded or down", "later"),
    Situation("529", says(529, error("busy")), "provider", "answered 529: it is overloaded", "later"),
    Situation("504", says(504, error("slow")), "provider", "answered 504: it took too long", "later"),
    Situation("page 502", says(502, PAGE, "text/html"), "provider", "answered 502 with a web page", "later"),
    Situation("page 403", says(403, LOGIN, "text/html"), "network", "A web page answered 403", "a login page"),
    Situation("proxy login", says(407, b""), "network", "A proxy wants a login (407)", "HTTPS_PROXY=http://user"),
    Situation("401", says(401, error("no")), "client", "the key was rejected", "Correct the key that your client"),
    Situation(
        "401, own", says(401, error("no")), "gateway", "the key was rejected", "Correct [providers.kimi]", "k" * 9
    ),
    Situation("403", says(403, error("no")), "client", "this key may not do that", "Check what the key"),
    Situation("402", says(402, error("pay")), "client", "no credit or quota left", "Top it up"),
    Situation("429 quota", says(429, error("x", "insufficient_quota")), "client", "no credit or quota left", "Top it"),
    Situation("429", says(429, error("slow down")), "client", "too many requests or tokens", "Wait, or raise"),
    Situation("429, own", says(429, error("slow down")), "gateway", "too many requests or tokens", "Wait", "k" * 9),
    Situation(
        "context",
        says(400, error("This model's maximum context length is 65536 tokens")),
        "client",
        "longer than the model accepts",
        "Compact the conversation",
    ),
    Situation("413", says(413, error("large")), "client", "longer than the model accepts", "Compact the conversation"),
    Situation("no such model", says(404, error("no such model")), "client", "no such model or address", "Check the"),
    Situation("other 400", says(400, error("temperature")), "client", "not for its reasoning", UNCHANGED),
    Situation("reasoning", says(400, error(MISSING)), "client", "lacks the reasoning", "thoughtline explain"),
    Situation(
        "dead proxy", FAR, "network", "the proxy 127.0.0.1:", "Correct HTTP_PROXY and HTTPS_PROXY", proxy="closed"
    ),
    Situation(
        "proxy that wants a login", FAR, "network", "wants a login (407)", "HTTPS_PROXY=http://user", proxy="407"
    ),
    Situation("no provider", "sim", "client", "Which provider has 'kimi-k2.6'?", "kimi/kimi-k2.6?", path=PLAIN),
    Situation("unknown path", "sim", "client", "Unknown path /nobody/chat.", "Start the path", path="/nobody/chat"),
    Situation(
        "misspelt provider",
        "sim",
        "client",
        "Unknown path /kimmi/",
        "Did you mean /kimi/v1/chat/completions?",
        path=f"/kimmi{PLAIN}",
    ),
    Situation(
        "unknown mode",
        "sim",
        "client",
        '"sometimes" is not a mode',
        "one of on, observe, off",
        headers=((MODE, "sometimes"),),
    ),
    Situation("too large", "sim", "client", "larger than", "max_body", server_settings=SMALL, body=b"x" * 2000),
    Situation(
        "a client key nobody made",
        "sim",
        "client",
        "is not known here",
        "thoughtline keys list",
        headers=(("authorization", TL_KEY),),
    ),
]


@contextlib.contextmanager
def tls(folder: Path) -> Iterator[int]:
    """A server with an untrusted certificate; its port."""
    certify(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    with connection, context.wrap_socket(connection, server_side=True) as wrapped:
                        wrapped.recv(1)
                except OSError:
                    if listener.fileno() == -1:
                        return

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


@contextlib.contextmanager
def broken(situation: Situation, folder: Path) -> Iterator[Managed]:
    """A gateway in front of a broken server."""
    with contextlib.ExitStack() as stack:
        server = situation.server
        if not isinstance(server, str):
            url = stack.enter_context(upstream(server)).url
        elif server == "closed":
            url = f"http://127.0.0.1:{closed_port()}"
        elif server.startswith("tls") or server == "http to https":
            port = stack.enter_context(tls(folder))
            host = "localhost" if server.endswith("localhost") else "127.0.0.1"
            url = f"{'http' if server == 'http to https' else 'https'}://{host}:{port}"
        elif server == "https to http":
            url = served("kimi").url.replace("http:", "https:")
        elif server == "sim":
            url = served("kimi").url
        else:
            url = server
        if situation.proxy:
            stack.enter_context(proxies(situation.proxy))
        rows = {**PROVIDERS, "kimi": provider(url, situation.own_key)}
        settings = Settings(providers=rows, server=situation.server_settings)
        yield stack.enter_context(managed(settings, simulators={}))


@contextlib.contextmanager
def proxies(kind: str) -> Iterator[None]:
    """The variables name a proxy: a port where nothing listens, or a proxy that answers 407."""
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.MonkeyPatch.context() as patch:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")

        port = listener.getsockname()[1]
        if kind == "closed":
            port = closed_port()
        else:
            threading.Thread(target=serve, daemon=True).start()
        for name in ("HTTPS_PROXY", "https_proxy"):
            patch.setenv(name, f"http://127.0.0.1:{port}")
        yield


def provider(url: str, key: str = "") -> Provider:
    patience = Timeouts(connect=2.0, first_byte=0.3, read=2.0, total=5.0)
    keys = (key,) if key else ()
    return replace(PROVIDERS["kimi"], base_url=url, bases={}, timeouts=patience, api_keys=keys)


def ask(gateway: Managed, path: str = "/kimi/v1/chat/completions", **members: object) -> httpx.Response:
    body = {"model": "kimi-k2.6", "messages": QUESTION, **members}
    return gateway.anyone.post(path, json=body, headers={"authorization": f"Bearer {KEY}"})


def send(gateway: Managed, situation: Situation) -> httpx.Response:
    body = situation.body or json.dumps({"model": "kimi-k2.6", "messages": QUESTION}).encode()
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json", **dict(situation.headers)}
    return gateway.anyone.post(situation.path, content=body, headers=headers)


def told(gateway: Managed, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str]:
    """What the log, the API behind the dashboard, and `explain` say about the last request."""
    row = gateway.get("/api/requests", limit=1)["requests"][0]
    token = gateway.admin.headers["authorization"].removeprefix("Bearer ")
    assert main(["explain", row["id"], "--url", gateway.url, "--token", token]) == 0
    shown = capsys.readouterr().out
    logged = [line for line in gateway.gateway.lines if line.get("request") == row["id"]]
    return logged[-1]["verdict"], row["verdict"], shown


@pytest.mark.parametrize("situation", SITUATIONS, ids=[one.name for one in SITUATIONS])
def test_whose_why_and_what_helps(situation: Situation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, the same in the client's response, the log, the dashboard's API and `explain`."""
    with broken(situation, tmp_path) as gateway:
        if situation.server is breaks_off:
            with contextlib.suppress(httpx.RemoteProtocolError):
                ask(gateway, stream=True)
            verdict = ""
        else:
            answer = send(gateway, situation)
            assert answer.status_code >= 400
            verdict = answer.headers["x-thoughtline-verdict"]
        logged, shown, explained = told(gateway, capsys)
    verdict = verdict or logged
    assert verdict.startswith(f"{situation.whose}: ")
    assert situation.cause in verdict
    assert situation.remedy in verdict
    assert (logged, shown) == (verdict, verdict)
    assert verdict in explained
    assert explained.count(verdict) == 1
    assert KEY not in f"{verdict}{explained}"
    assert not re.search(r"<\w+[^>]*>", verdict)


def test_there_are_thirty_situations() -> None:
    """Of each kind: network, keys, proxies, certificates, provider errors, requests that can't be served."""
    assert len({one.name for one in SITUATIONS}) == len(SITUATIONS) >= 30
    assert {one.whose for one in SITUATIONS} == {"client", "provider", "gateway", "network"}


def test_the_message_of_a_declined_request_is_its_verdict() -> None:
    """Cause and remedy; the header adds who is at fault."""
    with managed(Settings()) as gateway:
        answer = ask(gateway, PLAIN)
        verdict = answer.headers["x-thoughtline-verdict"]
    assert answer.json()["error"]["message"] == verdict.removeprefix("client: ")


def test_a_client_key_without_a_provider_key_is_the_gateways(tmp_path: Path) -> None:
    """Only the gateway's operator can fix it, and the remedy names the usual variable."""
    with managed(Settings(), f"sqlite:///{tmp_path}/turns.db", takes_keys=True) as gateway:
        answer = gateway.admin.post("/api/keys", json={"name": "alice"})
        assert answer.status_code == 200, answer.text
        made = answer.json()["secret"]
        answer = gateway.anyone.post(
            "/glm/v1/chat/completions",
            json={"model": "glm-5", "messages": QUESTION},
            headers={"authorization": f"Bearer {made}"},
        )
        assert answer.status_code == 403
        verdict = answer.headers["x-thoughtline-verdict"]
        assert verdict.startswith("gateway: The gateway has no key for glm.")
        assert "${ZAI_API_KEY}" in verdict or "${GLM_API_KEY}" in verdict or "_API_KEY}" in verdict


def test_a_page_is_shown_as_its_title(tmp_path: Path) -> None:
    """In the list, and for a client of another format; within one format its bytes pass unchanged."""
    with upstream(says(502, PAGE, "text/html")) as up:
        chat = replace(provider(up.url), formats=("openai_chat",), paths={})
        settings = Settings(providers={**PROVIDERS, "kimi": chat})
        with managed(settings, simulators={}) as gateway:
            assert ask(gateway).text == PAGE
            body = {"model": "kimi-k2.6", "max_tokens": 9, "messages": QUESTION}
            translated = gateway.anyone.post("/kimi/v1/messages", json=body, headers={"x-api-key": KEY})
            assert translated.json()["error"]["message"] == "a web page: 502 Bad Gateway"
            for row in gateway.get("/api/requests")["requests"]:
                assert row["message"] == "a web page: 502 Bad Gateway"


def test_a_changed_request_says_so() -> None:
    """Then there is a way to tell who is at fault: send it unchanged."""
    error = ProviderError("kimi", 400, "no", is_changed=True)
    assert of_response(error).remedy == CHANGED
    assert of_response(error._replace(is_changed=False)).remedy == UNCHANGED


CONNECTING: list[tuple[Cause, str, str, str]] = [
    ("dns", "", "unknown (DNS)", "HTTPS_PROXY"),
    ("refused", "p:1", "the proxy p:1 can't be used, nothing listens there", "NO_PROXY"),
    ("other", "p:1", "the proxy p:1 can't be used", "NO_PROXY"),
    ("proxy_login", "p:1", "the proxy p:1 wants a login (407)", "user:password"),
    ("proxy_scheme", "p:1", "the proxy p:1 is of a kind that is not supported", "socks5://"),
    ("unknown_authority", "", "an authority that is not known here", "SSL_CERT_FILE"),
    ("self_signed", "", "self-signed", "a-certificate-of-your-own"),
    ("expired", "", "has expired", "clock"),
    ("not_valid_yet", "", "not valid yet", "clock"),
    ("other_name", "", "for another host name", "base_url"),
    ("certificate", "", "certificate is not valid", "SSL_CERT_FILE"),
    ("no_tls", "", "does not speak TLS", "http://"),
    ("unreachable", "", "no route", "network connection"),
    ("timeout", "", "no connection in time", "network connection"),
    ("other", "", "no connection could be made", "network connection"),
]


@pytest.mark.parametrize(("why", "proxy", "cause", "remedy"), CONNECTING)
def test_why_no_connection_was_made(why: Cause, proxy: str, cause: str, remedy: str) -> None:
    """Credentials in an address are not shown."""
    declined = unreachable("kimi", "https://me:secret@api.example/v1", ConnectFailed(why, proxy))
    assert cause in str(declined)
    assert remedy in declined.remedy
    assert "secret" not in f"{declined} {declined.remedy}"
    assert "(api.example)" in str(declined)


def test_every_cause_has_its_own_words() -> None:
    words = [str(unreachable("kimi", "https://api.example", ConnectFailed(why))) for why in get_args(Cause)]
    assert len(set(words)) == len(words)


def test_a_verdict_without_a_remedy_ends_with_its_cause() -> None:
    assert str(Verdict("client", "It left.", "")) == "client: It left."


# --- a certificate of one's own ---------------------------------------------------------------------------------------


def lines_of_the_page() -> str:
    """The commands that docs/gateway.md gives for one's own certificate."""
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
    section = page.partition("### A certificate of your own")[2]
    return section.partition("```sh\n")[2].partition("```")[0]


def through(folder: Path, trusted: str, port: int) -> subprocess.CompletedProcess[str]:
    """What `doctor` says about a server at this port, where that file is trusted."""
    (folder / "mine.toml").write_text(f'[providers.here]\nbase_url = "https://127.0.0.1:{port}"\nauth = "none"\n')
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("THOUGHTLINE_", "XDG_"))}
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "doctor", "here", "--config", "mine.toml", "--port", "0"],
        cwd=folder,
        env=kept | {"HOME": str(folder), "SSL_CERT_FILE": str(folder / trusted)},
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def https(folder: Path, certificate: str, key: str) -> Iterator[int]:
    """An HTTPS server with this certificate; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / certificate, folder / key)
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_remedy_for_a_self_signed_certificate_works(tmp_path: Path) -> None:
    """It is refused, and the verdict says how to make one that an authority has signed."""
    subprocess.run(["bash", "-ec", lines_of_the_page()], cwd=tmp_path, check=True, capture_output=True)
    with https(tmp_path, "ca.pem", "ca.key") as port:
        refused = through(tmp_path, "server.pem", port)
    assert "its certificate is self-signed" in refused.stdout
    assert "docs/gateway.md#a-certificate-of-your-own" in refused.stdout
    with https(tmp_path, "server.pem", "server.key") as port:
        accepted = through(tmp_path, "ca.pem", port)
        assert "ok    upstream here" in accepted.stdout
        unknown = through(tmp_path, "server.pem", port)
    assert "FAIL  upstream here" in unknown.stdout


# --- what keeps the program from starting -----------------------------------------------------------------------------


def port_in_use(folder: Path) -> tuple[list[str], dict[str, str]]:
    listener = socket.create_server(("127.0.0.1", 0))
    KEPT.append(listener)
    return ["--port", str(listener.getsockname()[1])], {}


KEPT: list[socket.socket] = []


def read_only(folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / "file").touch()
    return [], {"XDG_DATA_HOME": str(folder / "file")}


def settings(text: str) -> Callable[[Path], tuple[list[str], dict[str, str]]]:
    def write(folder: Path) -> tuple[list[str], dict[str, str]]:
        (folder / "mine.toml").write_text(text)
        return ["--config", "mine.toml"], {}

    return write


def words(*given: str) -> Callable[[Path], tuple[list[str], dict[str, str]]]:
    return lambda folder: (list(given), {})


STARTS = [
    ("port in use", port_in_use, "in use", "--port"),
    ("port out of range", words("--port", "99999"), "99999 is not a port (0 to 65,535)", "--port"),
    ("unwritable home", read_only, "file", "XDG_DATA_HOME"),
    ("unknown store", words("--store", "mysql://x"), "mysql", "sqlite:///"),
    ("variable not set", settings('[providers.kimi]\napi_key = "${NOPE}"\n'), "NOPE", "mine.toml:2"),
    ("misspelt key", settings("[server]\nprot = 1\n"), "prot", "did you mean port?"),
    ("wrong duration", settings('[store]\nttl = "7 dayz"\n'), '"7 dayz"', "7d"),
    ("no TOML", settings("[server\n"), "mine.toml:1", ""),
    ("option of a store", words("--store", "redis://127.0.0.1:1/?nonsense=1"), "unknown option 'nonsense'", "fix url"),
    (
        "published token",
        settings('[server]\nadmin_token = "change-me-to-a-long-secret"\n'),
        "an example's",
        "openssl rand",
    ),
    ("misspelt provider", settings("[providers.deepsek]\nproxy = 1\n"), "deepsek", "did you mean"),
]


@pytest.mark.parametrize(("name", "make", "cause", "remedy"), STARTS, ids=[row[0] for row in STARTS])
def test_what_keeps_it_from_starting(
    name: str,
    make: Callable[[Path], tuple[list[str], dict[str, str]]],
    cause: str,
    remedy: str,
    tmp_path: Path,
) -> None:
    """One line for each problem, with the value, the position and a remedy; never a traceback."""
    given, variables = make(tmp_path)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("THOUGHTLINE_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "serve", "--port", "0", *given],
        cwd=tmp_path,
        env=kept | {"HOME": str(tmp_path)} | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert cause in done.stderr
    assert remedy in done.stderr


# --- a store that can't be written ------------------------------------------------------------------------------------


def test_a_failing_store_is_reported_once_with_its_file_and_a_remedy(tmp_path: Path) -> None:
    """In the form of the log, and in the banner; the gateway serves anyway."""
    place = tmp_path / "store.db"
    place.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("THOUGHTLINE_", "XDG_"))}
    words = ["serve", "--port", "0", "--store", f"sqlite:///{place}", "--log", "json"]
    with subprocess.Popen(
        [sys.executable, "-m", "thoughtline.cli", *words],
        env=kept | {"HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "connect CLIENT" in line:
                process.terminate()
    lines = [json.loads(line) for line in said if line.startswith("{")]
    warned = [line["detail"] for line in lines if line["event"] == "warning"]
    assert len(warned) == 1
    assert warned[0].startswith("turns are kept in memory only until the store works again: ")
    assert str(place) in warned[0]
    assert "make it writable, or name another with --store" in warned[0]
    assert any(f"{place}   (fails now: memory only)" in line for line in said)
    assert not [line for line in said if line.startswith("turns are kept")]


FULL = 'mount -t tmpfs -o size=400k tmpfs "$HOME" && exec "$@"'
"""A home directory of 400 KiB, in namespaces of the gateway's own."""


def test_a_full_disk_is_reported_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests are answered; the response, the log, `explain` and `doctor` say what is wrong and what helps."""
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL, "sh"]
    probe = subprocess.run([*own, "true"], env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this machine gives no disk of one's own")
    simulator, token = served("deepseek"), "0123456789abcdef0123"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("THOUGHTLINE_", "XDG_"))}
    words = ["serve", "--port", "0", "--log", "json", "--upstream", simulator.url, "--provider", "deepseek"]
    with subprocess.Popen(
        [*own, sys.executable, "-m", "thoughtline.cli", *words],
        env=kept | {"HOME": str(tmp_path), "THOUGHTLINE_ADMIN_TOKEN": token},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            begun = next(line for line in process.stderr if "listening" in line)
            url = begun.split()[1]
            with contextlib.suppress(OSError):
                Path(f"/proc/{process.pid}/root{tmp_path}/fill").write_bytes(bytes(500_000))
            body = {"model": "deepseek-v4-pro", "messages": QUESTION}
            answer = httpx.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"})
            assert main(["explain", answer.headers["x-thoughtline-request"], "--url", url, "--token", token]) == 0
        finally:
            process.terminate()
        logged = [json.loads(line) for line in process.stderr if line.startswith("{")]
    assert answer.status_code == 200
    assert "store=degraded" in answer.headers["x-thoughtline-replay"]
    assert "degraded: it fails, and turns are kept in memory only" in capsys.readouterr().out
    [warned] = [one["detail"] for one in logged if "kept in memory only" in one.get("detail", "")]
    assert f"{tmp_path}/.local/share/thoughtline/thoughtline.db: database or disk is full" in warned
    assert warned.endswith("; free space on its disk")
