"""GitLab: the variables of a merge request's job, and the notes on it."""

from __future__ import annotations

from collections.abc import Mapping

from npuprof.hosting.comments import ServiceComments
from npuprof.hosting.job import Job, require_address, require_commit, require_variable
from npuprof.hosting.service import Service, ServiceError
from npuprof.model import Fields, has_only_digits

_DEPTH = "let the job fetch all of it: variables: { GIT_DEPTH: 0 }"
_ACCESS_HINT = (
    "let NPUPROF_TOKEN be a masked variable of the project: a project access token with the scope "
    "api (a fork has none)"
)


def read_gitlab_job(environ: Mapping[str, str]) -> Job:
    """Return the job. Raises NpuprofError (NP060) if its variables are invalid.

    The merge request belongs to the target project, even if a fork's pipeline runs. In a merge
    train it is only checked, since its changes were reported before.
    """
    in_train = environ.get("CI_MERGE_REQUEST_EVENT_TYPE") == "merge_train"
    if not environ.get("CI_MERGE_REQUEST_IID") or in_train:
        return Job("GitLab", "text", depth=_DEPTH)
    number = int(
        require_variable(
            "CI_MERGE_REQUEST_IID", environ["CI_MERGE_REQUEST_IID"], r"[1-9][0-9]{0,9}"
        )
    )
    project = environ.get("CI_MERGE_REQUEST_PROJECT_ID") or environ.get("CI_PROJECT_ID")
    project = require_variable("CI_MERGE_REQUEST_PROJECT_ID", project, r"[1-9][0-9]{0,15}")
    pages = environ.get("CI_MERGE_REQUEST_PROJECT_URL") or environ.get("CI_PROJECT_URL")
    # in a merged results pipeline, CI_COMMIT_SHA is the merge and not the proposed commit
    head = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environ.get("CI_COMMIT_SHA")
    token = environ.get("NPUPROF_TOKEN", "").strip()
    comments = None
    if token:
        api = require_address("CI_API_V4_URL", environ.get("CI_API_V4_URL"))
        service = Service(
            "GitLab",
            api,
            ("PRIVATE-TOKEN", token),
            authority=environ.get("CI_SERVER_TLS_CA_FILE", ""),
        )
        comments = GitLabComments(service, f"/projects/{project}/merge_requests/{number}/notes")
    return Job(
        "GitLab",
        "text",
        number,
        _find_base(environ),
        require_commit("CI_COMMIT_SHA", head),
        f"{require_address('CI_MERGE_REQUEST_PROJECT_URL', pages)}/-",
        depth=_DEPTH,
        comments=comments,
        token_hint=_ACCESS_HINT,
        target=environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", ""),
    )


def _find_base(environ: Mapping[str, str]) -> str:
    """Return the merge base: its id, else the fetched target branch, as some pipelines lack it."""
    for name in ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA"):
        if environ.get(name):
            return require_commit(name, environ[name])
    name = "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"
    branch = require_variable(name, environ.get(name), r"[^ ~^:?*\[\\-][^ ~^:?*\[\\]*")
    return f"refs/remotes/origin/{branch}"


class GitLabComments(ServiceComments):
    """The notes on one merge request."""

    order = "&sort=asc&order_by=created_at"

    def update(self, ident: int, body: str) -> None:
        """Replace the text of a note. Raises ServiceError."""
        self._service.ask("PUT", f"{self._path}/{ident}", {"body": body})

    def _find_next_page(self, page: str, headers: Mapping[str, str]) -> str:
        following = headers.get("x-next-page", "").strip()
        return following if has_only_digits(following) else ""

    def _is_ours(self, comment: Fields) -> bool:
        author = comment.get("author")
        return (
            isinstance(author, dict)
            and author.get("id") == self._author
            # GitLab writes notes such as "added 1 commit" in the user's name
            and not comment.get("system")
        )

    def _find_author(self) -> int:
        """Return the author id: the bot user of a project token. Raises ServiceError."""
        user = self._service.ask("GET", "/user").data
        ident = user.get("id") if isinstance(user, dict) else None
        if type(ident) is not int:
            raise ServiceError("GitLab does not say whose the token is")
        return ident
