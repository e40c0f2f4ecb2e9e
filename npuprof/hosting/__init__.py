"""Services that host pull requests: the CI job's task, and its single comment."""

from __future__ import annotations

from collections.abc import Mapping

from npuprof.hosting.job import Job
from npuprof.model import build_error


def read_job(environ: Mapping[str, str]) -> Job:
    """Return the job that runs here.

    Raises NpuprofError (NP060) outside a CI job, and for invalid variables.
    """
    if environ.get("GITHUB_ACTIONS") == "true":
        from npuprof.hosting import github

        return github.read_github_job(environ)
    if environ.get("GITLAB_CI") == "true":
        from npuprof.hosting import gitlab

        return gitlab.read_gitlab_job(environ)
    what = "no job of GitHub or GitLab runs here: neither GITHUB_ACTIONS nor GITLAB_CI is true"
    hint = "elsewhere: npuprof review --local BRANCH, for the branch that the change goes into"
    raise build_error(
        "NP060", what, "The job's own variables say which pull request it is for.", hint
    )
