"""Sources fetched over https, from git's own server behind a certificate of the test's own."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import find_cache_folder, find_mirror_folder
from support.repositories import ENVIRONMENT, Repo
from support.running import Run, expect
from support.teams import BASE, HEIR, Team

BACKEND = shutil.which("git-http-backend", path=subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip())
HELPER = shutil.which("git-remote-https", path=subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip())

pytestmark = pytest.mark.skipif(
    not (BACKEND and HELPER and shutil.which("openssl")), reason="needs git-http-backend, git-remote-https and openssl"
)


class Handler(BaseHTTPRequestHandler):
    """Hands requests to git-http-backend; the first part of the path says what is done besides."""

    top = ""
    seen: list[str] = []

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(body)

    def answer(self, body: bytes) -> None:
        way, _, path = self.path.lstrip("/").partition("/")
        path, _, query = path.partition("?")
        self.seen.append(way)
        wanted = f"Basic {base64.b64encode(b'ada:secret').decode()}"
        if way == "auth" and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="team"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif way == "plain":
            self.send_response(301)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/git/{path}?{query}")  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")
            self.end_headers()
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
    made = ThreadingHTTPServer(("localhost", 0), type("Mine", (Handler,), {"top": str(tmp_path), "seen": []}))
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


def test_a_source_is_added_updated_and_synced_over_https(server: str, app: Repo, team: Team, run: Run) -> None:
    url = f"{server}/git/team.git"
    assert run("source", "add", "team", url).code == 0
    assert run("check").code == 0
    locked = (app.folder / "npuprof.lock").read_text()
    team.publish({"base": BASE.format(900)}, "1.1.0", "base/v1.1.0")
    expect(run("source", "update", "--yes"), 0, "600 → 900")
    (app.folder / "npuprof.lock").write_text(locked)
    shutil.rmtree(find_cache_folder())
    assert run("source", "sync").code == 0
    words = ["git", f"--git-dir={find_mirror_folder(url)}", "for-each-ref", "--format=%(refname)", "refs/tags"]
    assert subprocess.run(words, capture_output=True, check=True, text=True).stdout.split() == ["refs/tags/base/v1.0.0", "refs/tags/v1.0.0"]
    assert "600" in run("show", "job").out


def test_a_password_comes_from_gits_own_helpers_and_stands_nowhere(
    server: str, app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{server}/auth/team.git"
    expect(run("source", "add", "team", url), 2, "never prompts")
    (tmp_path / "passwords").write_text(f"{server.replace('https://', 'https://ada:secret@')}\n")
    with (tmp_path / "gitconfig").open("a") as file:
        file.write(f"[credential]\n\thelper = store --file={tmp_path / 'passwords'}\n")
    done = run("source", "add", "team", url)
    assert done.code == 0, done.err
    assert "secret" not in done.out + done.err
    held = [path.read_bytes() for top in (app.folder, Path(find_cache_folder())) for path in top.rglob("*") if path.is_file()]
    assert not any(b"secret" in content for content in held)


def test_a_certificate_that_nobody_has_vouched_for_is_refused(server: str, app: Repo, team: Team, run: Run, tmp_path: Path) -> None:
    (tmp_path / "gitconfig").write_text("")
    expect(run("source", "add", "team", f"{server}/git/team.git"), 2, "certificate")


def test_a_server_that_leads_away_from_https_is_not_followed(server: str, app: Repo, team: Team, run: Run) -> None:
    expect(run("source", "add", "team", f"{server}/plain/team.git"), 2, "NP045", "not supported", "the source 'team'")
    assert not (app.folder / "npuprof.lock").exists()
