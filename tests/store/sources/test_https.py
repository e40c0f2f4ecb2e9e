"""Sources fetched over https, from git's own server behind a certificate of the test's own."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import find_cache_folder
from support.repositories import ENVIRONMENT, Repo
from support.running import Run
from support.teams import BASE, HEIR, Team

BACKEND = shutil.which("git-http-backend", path=subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip())
HELPER = shutil.which("git-remote-https", path=subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip())

pytestmark = pytest.mark.skipif(
    not (BACKEND and HELPER and shutil.which("openssl")), reason="needs git-http-backend, git-remote-https and openssl"
)


class Handler(BaseHTTPRequestHandler):
    """Hands requests to git-http-backend; the first part of the path says what is done besides."""

    top = ""

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def answer(self, body: bytes) -> None:
        way, _, path = self.path.lstrip("/").partition("/")
        path, _, query = path.partition("?")
        wanted = f"Basic {base64.b64encode(b'ada:secret').decode()}"
        if way == "auth" and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="team"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif way == "404":
            self.send_error(404)
        elif way == "hang":
            time.sleep(1000)
        else:
            self.run_backend(path, query, body)

    def run_backend(self, path: str, query: str, body: bytes) -> None:
        environ = {
            **os.environ, "GIT_PROJECT_ROOT": self.top, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": f"/{path}", "QUERY_STRING": query,
            "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }  # fmt: skip
        assert BACKEND is not None
        done = subprocess.run([BACKEND], input=body, capture_output=True, env=environ, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.partition(": ")[::2] for line in head.decode().split("\r\n")]
        self.send_response(next((int(text.split()[0]) for name, text in headers if name == "Status"), 200))
        for name, text in headers:
            if name != "Status":
                self.send_header(name, text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(words, check=True, capture_output=True)
    return folder


@pytest.fixture
def server(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the server; the user's git trusts its certificate."""
    made = ThreadingHTTPServer(("localhost", 0), type("Mine", (Handler,), {"top": str(tmp_path)}))
    made.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    made.socket = context.wrap_socket(made.socket, server_side=True)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    given = tmp_path / "gitconfig"
    given.write_text(f"[http]\n\tsslCAInfo = {certificate / 'cert.pem'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(given))
    yield f"https://localhost:{made.server_port}"
    made.shutdown()
    made.server_close()


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path)
    made.publish({"base": BASE.format(600)}, "1.0.0", "base/v1.0.0")
    return made


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = Repo(tmp_path / "app")
    made.write({"job": HEIR})
    monkeypatch.chdir(made.folder)
    return made


def test_a_password_comes_from_gits_own_helpers_and_stands_nowhere(
    server: str, app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{server}/auth/team.git"
    done = run("source", "add", "team", url)
    assert (done.code, "never prompts" in done.err) == (2, True), done.err
    (tmp_path / "passwords").write_text(f"{server.replace('https://', 'https://ada:secret@')}\n")
    with (tmp_path / "gitconfig").open("a") as file:
        file.write(f"[credential]\n\thelper = store --file={tmp_path / 'passwords'}\n")
    done = run("source", "add", "team", url)
    assert done.code == 0, done.err
    assert "secret" not in done.out + done.err
    held = [path.read_bytes() for top in (app.folder, Path(find_cache_folder())) for path in top.rglob("*") if path.is_file()]
    assert not any(b"secret" in content for content in held)


#: What the server does, and a word of what is said.
FAULTS = {"404": "not found", "hang": "less than 10 bytes a second"}


@pytest.mark.parametrize("way", FAULTS)
def test_a_server_in_trouble_ends_in_an_error_within_the_stated_time(
    way: str, server: str, app: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPROF_TIMEOUT", "1")
    done = run("source", "add", "team", f"{server}/{way}/team.git")
    assert done.code == 2
    assert "NP045" in done.err
    assert FAULTS[way] in done.err, done.err
    assert "the source 'team'" in done.err
    assert not (app.folder / "npuprof.lock").exists()


def test_a_certificate_that_nobody_has_vouched_for_is_refused(server: str, app: Repo, team: Team, run: Run, tmp_path: Path) -> None:
    (tmp_path / "gitconfig").write_text("")
    done = run("source", "add", "team", f"{server}/git/team.git")
    assert (done.code, "certificate" in done.err) == (2, True), done.err
