"""Stand-ins for the services that hold pull requests: they ask for the token, know rights, and refuse what the real ones refuse."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

#: GitHub takes no longer comment, in characters.
LONGEST = 65_536


class Token(NamedTuple):
    """Who has a token, and whether it may write; an ``app`` may not ask who it is."""

    author: str
    may_write: bool = True
    app: bool = False
    ident: int = 0


class Fault(NamedTuple):
    """What is answered instead, once; ``done`` says whether the request is carried out all the same."""

    method: str
    status: int
    headers: dict[str, str] = {}
    done: bool = False
    text: str = '{"message": "fault"}'


class RefusalError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class StandIn:
    """A service with one pull request; ``comments`` is what stands on it, ``calls`` all that was asked, ``seen`` the headers."""

    prefix = ""
    header = ""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.tokens: dict[str, Token] = {}
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        self.seen: list[dict[str, str]] = []
        self.url = ""

    @property
    def written(self) -> list[str]:
        """All that was asked besides reading."""
        return [call for call in self.calls if not call.startswith("GET") and "graphql" not in call]

    def bodies(self, author: str) -> list[str]:
        """What somebody has written."""
        return [one["body"] for one in self.comments if author in (self.author_of(one), str(self.author_of(one)))]

    def author_of(self, comment: dict[str, Any]) -> Any:
        raise NotImplementedError

    def say(self, author: str, body: str) -> dict[str, Any]:
        """Let somebody write a comment."""
        raise NotImplementedError

    def answer(self, method: str, path: str, query: dict[str, str], token: Token, data: Any) -> tuple[Any, dict[str, str]]:
        raise NotImplementedError

    def find_token(self, headers: Any) -> Token:
        raise NotImplementedError


def take_body(data: Any) -> str:
    if not isinstance(data, dict) or set(data) != {"body"} or not isinstance(data["body"], str):
        raise RefusalError(422, "Invalid request")
    if not data["body"] or len(data["body"]) > LONGEST:
        raise RefusalError(422, "body is too long (maximum is 65536 characters)")
    return data["body"]


def cut_page(items: list[Any], query: dict[str, str]) -> tuple[list[Any], int]:
    """Return one page, and the number of the next, 0 where there is none."""
    size, page = min(int(query.get("per_page", "30")), 100), int(query.get("page", "1"))
    return items[(page - 1) * size : page * size], page + 1 if len(items) > page * size else 0


class GitHub(StandIn):
    """GitHub's REST API for pull request 7 of team/presets."""

    def find_token(self, headers: Any) -> Token:
        kind, _, text = (headers["Authorization"] or "").partition(" ")
        if kind not in ("Bearer", "token") or text not in self.tokens:
            raise RefusalError(401, "Bad credentials")
        return self.tokens[text]

    def author_of(self, comment: dict[str, Any]) -> Any:
        return comment["user"]["login"]

    def say(self, author: str, body: str) -> dict[str, Any]:
        kind = "Bot" if author.endswith("[bot]") else "User"
        self.comments.append({"id": 100 + len(self.comments), "body": body, "user": {"login": author, "type": kind}})
        return self.comments[-1]

    def answer(self, method: str, path: str, query: dict[str, str], token: Token, data: Any) -> tuple[Any, dict[str, str]]:
        below = f"{self.prefix}/repos/team/presets/issues"
        if (method, path) == ("GET", f"{self.prefix}/user"):
            if token.app:
                raise RefusalError(403, "Resource not accessible by integration")
            return {"login": token.author, "id": 1}, {}
        if (method, path) == ("POST", f"{self.prefix.removesuffix('/v3')}/graphql"):
            return {"data": {"viewer": {"login": token.author}}}, {}
        if (method, path) == ("GET", f"{below}/7/comments"):
            page, after = cut_page(self.comments, query)
            link = f'<{self.url}{path}?per_page=100&page={after}>; rel="next", <{self.url}{path}?page=9>; rel="last"'
            return page, {"Link": link} if after else {}
        if method in ("POST", "PATCH") and not token.may_write:
            raise RefusalError(403, "Resource not accessible by integration")
        if (method, path) == ("POST", f"{below}/7/comments"):
            return self.say(token.author, take_body(data)), {}
        found = [one for one in self.comments if path == f"{below}/comments/{one['id']}"]
        if method != "PATCH" or not found:
            raise RefusalError(404, "Not Found")
        if self.author_of(found[0]) != token.author:
            raise RefusalError(403, "Must have admin rights to Repository.")
        found[0]["body"] = take_body(data)
        return found[0], {}


class GitLab(StandIn):
    """GitLab's REST API for merge request 5 of project 3."""

    prefix = "/api/v4"

    def find_token(self, headers: Any) -> Token:
        if headers["PRIVATE-TOKEN"] not in self.tokens:
            raise RefusalError(401, "401 Unauthorized")
        return self.tokens[headers["PRIVATE-TOKEN"]]

    def author_of(self, comment: dict[str, Any]) -> Any:
        return comment["author"]["username"]

    def say(self, author: str, body: str) -> dict[str, Any]:
        ident = next((one.ident for one in self.tokens.values() if one.author == author), 9)
        note = {"id": 100 + len(self.comments), "body": body.rstrip(), "author": {"id": ident, "username": author}, "system": False}
        self.comments.append(note)
        return note

    def answer(self, method: str, path: str, query: dict[str, str], token: Token, data: Any) -> tuple[Any, dict[str, str]]:
        notes = f"{self.prefix}/projects/3/merge_requests/5/notes"
        if (method, path) == ("GET", f"{self.prefix}/user"):
            return {"id": token.ident, "username": token.author}, {}
        if (method, path) == ("GET", notes):
            page, after = cut_page(self.comments, query)
            return page, {"x-next-page": str(after or "")}
        if method in ("POST", "PUT") and not token.may_write:
            raise RefusalError(403, "403 Forbidden")
        if (method, path) == ("POST", notes):
            return self.say(token.author, take_body(data)), {}
        found = [one for one in self.comments if path == f"{notes}/{one['id']}"]
        if method != "PUT" or not found:
            raise RefusalError(404, "404 Not found")
        if self.author_of(found[0]) != token.author:
            raise RefusalError(403, "403 Forbidden")
        found[0]["body"] = take_body(data).rstrip()
        return found[0], {}


@contextmanager
def serve(service: StandIn, certificate: Path | None = None) -> Iterator[StandIn]:
    """Let a stand-in answer at an address of this machine; with a certificate and its key, in one file, as https."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            service.calls.append(f"{self.command} {url.path}")
            service.seen.append({name.lower(): value for name, value in self.headers.items()})
            raw = self.rfile.read(int(self.headers["Content-Length"] or 0))
            fault = next((one for one in service.faults if one.method == self.command), None)
            try:
                if fault is None or fault.done:
                    token = service.find_token(self.headers)
                    if not self.headers["User-Agent"] or (raw and self.headers["Content-Type"] != "application/json"):
                        raise RefusalError(400, "Problems parsing JSON")
                    query = {name: values[0] for name, values in parse_qs(url.query).items()}
                    answer, headers = service.answer(self.command, url.path, query, token, json.loads(raw) if raw else None)
                    status = 201 if self.command == "POST" else 200
                if fault is not None:
                    service.faults.remove(fault)
                    return self.reply(fault.status, fault.text, fault.headers)
                self.reply(status, json.dumps(answer), headers)
            except RefusalError as refusal:
                self.reply(refusal.status, json.dumps({"message": refusal.message}), {})

        def do_POST(self) -> None:
            self.do_GET()

        def do_PATCH(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            self.do_GET()

        def reply(self, status: int, text: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        service.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        yield service
        server.shutdown()
        thread.join()


def describe_github_job(service: GitHub, folder: Path) -> dict[str, str]:
    """Return what the environment of a job of GitHub says, for a pull request that is told in a folder."""
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_API_URL": service.url,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "team/presets",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
