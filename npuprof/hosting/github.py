"""GitHub (also Enterprise): the variables of an Actions job, and a pull request's comments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from npuprof.hosting.comments import ServiceComments
from npuprof.hosting.job import Job, require_address, require_commit, require_variable
from npuprof.hosting.service import Service, ServiceError
from npuprof.model import Fields, build_error
from npuprof.system.files import read_file_content

#: The author of comments written with a job's own token.
_JOB_AUTHOR = "github-actions[bot]"
_DEPTH = "let actions/checkout fetch all of it: with: { fetch-depth: 0 }"
_ACCESS_HINT = (
    "hand the token to the step: env: { GH_TOKEN: ${{ github.token }} }, with permissions: "
    "{ pull-requests: write }"
)


def read_github_job(environ: Mapping[str, str]) -> Job:
    """Return the job. Raises NpuprofError (NP060) if its event is not supported."""
    event = environ.get("GITHUB_EVENT_NAME", "")
    summary = environ.get("GITHUB_STEP_SUMMARY", "")
    if event == "pull_request_target":
        why = (
            "It runs with the rights of the target, and what it has checked out is not what is "
            "proposed."
        )
        what = f"a job for {event} is not looked at"
        raise build_error("NP060", what, why, "let the workflow run on: pull_request")
    pull_request = {}
    if event.startswith("pull_request"):
        pull_request = _read_pull_request(environ.get("GITHUB_EVENT_PATH", ""))
    if not pull_request:
        return Job("GitHub", "github", summary=summary, depth=_DEPTH)
    number = require_variable(
        "pull request's number", _reach(pull_request, "number"), r"[1-9][0-9]{0,9}"
    )
    repository = require_variable(
        "GITHUB_REPOSITORY", environ.get("GITHUB_REPOSITORY"), r"(?!\.+/)[\w.-]+/(?!\.+$)[\w.-]+"
    )
    server = require_address(
        "GITHUB_SERVER_URL", environ.get("GITHUB_SERVER_URL") or "https://github.com"
    )
    service = _open_service(environ)
    branch = _reach(pull_request, "base", "ref")
    return Job(
        service="GitHub",
        format="github",
        number=int(number),
        base=require_commit("pull request's base", _reach(pull_request, "base", "sha")),
        head=require_commit("pull request's head", _reach(pull_request, "head", "sha")),
        pages=f"{server}/{repository}",
        summary=summary,
        depth=_DEPTH,
        comments=GitHubComments(service, repository, int(number)) if service else None,
        token_hint=_ACCESS_HINT,
        target=branch if isinstance(branch, str) else "",
    )


def _open_service(environ: Mapping[str, str]) -> Service | None:
    """Return GitHub's API, None without a token."""
    token = (environ.get("GH_TOKEN") or environ.get("GITHUB_TOKEN") or "").strip()
    if not token:
        return None
    api = require_address(
        "GITHUB_API_URL", environ.get("GITHUB_API_URL") or "https://api.github.com"
    )
    more = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return Service("GitHub", api, ("Authorization", f"Bearer {token}"), more)


class GitHubComments(ServiceComments):
    """The comments of one pull request."""

    def __init__(self, service: Service, repository: str, number: int) -> None:
        super().__init__(service, f"/repos/{repository}/issues/{number}/comments")
        self._comments = f"/repos/{repository}/issues/comments"

    def update(self, ident: int, body: str) -> None:
        """Replace the text of a comment. Raises ServiceError."""
        self._service.ask("PATCH", f"{self._comments}/{ident}", {"body": body})

    def _find_next_page(self, page: str, headers: Mapping[str, str]) -> str:
        return str(int(page) + 1) if 'rel="next"' in headers.get("link", "") else ""

    def _is_ours(self, comment: Fields) -> bool:
        return bool(_reach(comment, "user", "login") == self._author)

    def _find_author(self) -> str:
        """Return the author name of the token.

        App tokens, like a job's own, have no user and are queried differently.
        """
        try:
            login = _reach(self._service.ask("GET", "/user").data, "login")
        except ServiceError as error:
            if not error.refused:
                raise
            return self._find_app()
        if not isinstance(login, str) or not login:
            raise ServiceError("GitHub does not say whose the token is")
        return login

    def _find_app(self) -> str:
        """Return the author name of an app: from GraphQL, else that of a job's own token."""
        address = self._service.address
        if address.endswith("/api/v3"):  # Enterprise: REST at /api/v3, GraphQL at /api/graphql
            address = address.removesuffix("/v3")
        graphql = self._service.at(f"{address}/graphql")
        try:
            reply = graphql.ask("POST", "", {"query": "query { viewer { login } }"})
            login = _reach(reply.data, "data", "viewer", "login")
        except ServiceError as error:
            if error.passing:
                raise
            return _JOB_AUTHOR
        return login if isinstance(login, str) and login else _JOB_AUTHOR


def _read_pull_request(path: str) -> Fields:
    """Return the pull request of the job's event. Raises NpuprofError."""
    if not path:
        require_variable("GITHUB_EVENT_PATH", "", r".+")
    try:
        pull_request = _reach(json.loads(read_file_content(path)), "pull_request")
    except (ValueError, RecursionError):
        pull_request = None
    if not isinstance(pull_request, dict):
        what = f"{path} describes no pull request"
        why = "The runner writes there which pull request the job is for."
        raise build_error("NP060", what, why, "let the workflow run on: pull_request")
    return pull_request


def _reach(value: Any, *names: str) -> Any:
    """Return the value below some names in an answer, None if it is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
