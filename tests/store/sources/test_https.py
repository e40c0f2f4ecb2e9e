"""Sources over https, from git's own server, with a certificate of the test's own."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import find_mirror_folder
from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Team

SECRET = "open-sesame-7"


class Handler(BaseHTTPRequestHandler):
    """Hands requests to ``git http-backend``; what is below ``/closed`` takes a password."""

    def do_GET(self) -> None:
        wanted = f"Basic {base64.b64encode(f'ada:{SECRET}'.encode()).decode()}"
        if self.path.startswith("/closed/") and self.headers["Authorization"] != wanted:
            self.reply(401, [("WWW-Authenticate", 'Basic realm="team"')], b"")
            return
        path, _, query = self.path.removeprefix("/closed").partition("?")
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        requested = {
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
        }
        content_headers = {
            "CONTENT_TYPE": self.headers["Content-Type"] or "",
            "HTTP_CONTENT_ENCODING": self.headers["Content-Encoding"] or "",
        }
        environ = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(Path.cwd().parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            **requested,
            **content_headers,
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True, env=environ, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        assert b"Status" not in head, head
        self.reply(
            200, [line.partition(": ")[::2] for line in head.decode().split("\r\n")], content
        )

    do_POST = do_GET  # noqa: N815

    def reply(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(content)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(
    repo: Repo, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of a server with the team's presets.

    Its certificate is in ``tmp_path``, and nobody vouches for it.
    """
    arguments = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    arguments += [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "key.pem",
        "-out",
        "certificate.pem",
    ]
    subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    with ThreadingHTTPServer(("localhost", 0), Handler) as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield f"https://localhost:{made.server_port}"
        made.shutdown()


def test_a_server_needs_a_certificate_that_the_user_vouches_for(
    server: str, repo: Repo, run: Run, tmp_path: Path
) -> None:
    repo.git("config", "http.sslVerify", "false")
    url = f"{server}/team.git"
    expect(run("source", "add", "team", url), 2, "NP045", "certificate")
    assert not (repo.folder / "npuprof.lock").exists()
    (tmp_path / "gitconfig").write_text(f"[http]\n\tsslCAInfo = {tmp_path}/certificate.pem\n")
    expect(run("source", "add", "team", url), 0)


def test_a_password_comes_from_the_users_helper_alone_and_is_kept_and_shown_nowhere(
    server: str, repo: Repo, team: Team, run: Run, tmp_path: Path
) -> None:
    gitconfig, url = tmp_path / "gitconfig", f"{server}/closed/team.git"
    theirs = f"!touch {tmp_path}/asked; echo password=no; echo username=ada"
    gitconfig.write_text(f"[http]\n\tsslCAInfo = {tmp_path}/certificate.pem\n")
    repo.git("config", "credential.helper", theirs)
    output = [expect(run("source", "add", "team", url), 2, "NP045", "never prompts")]
    gitconfig.write_text(
        f"{gitconfig.read_text()}[credential]\n"
        f'\thelper = "!echo username=ada; echo password={SECRET}; :"\n'
    )
    output += [expect(run("source", "add", "team", url), 0)]
    repo.git("config", "--file", f"{find_mirror_folder(url)}/config", "credential.helper", theirs)
    team.publish({"base": BASE.format(700)}, "1.1.0")
    output += [expect(run("source", "update", "--yes", "team"), 0, "1.1.0")]
    files_with_secret = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert files_with_secret == [gitconfig]
    assert SECRET not in "".join(output)
    assert not ((tmp_path / "asked").exists())
