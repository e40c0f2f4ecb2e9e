"""``review``: one comment is kept, with the rights there are.

What a service refuses is a sentence, the token stays where it belongs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npuprof.hosting import comments
from support.repositories import Repo
from support.running import Run
from support.services import (
    Fault,
    GitHub,
    GitLab,
    StandIn,
    Token,
    describe_github_job,
    describe_gitlab_job,
    serve,
)

MARKER = "<!-- npuprof: presets -->"
BASE = '[profile]\ndescription = "base"\nscenario = "training"\n\n[options]\nhccl_timeout = 1836\n'
BOT = "github-actions[bot]"
SECRET = "ghs_0123456789"


@pytest.fixture
def change(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with a branch that changes one value for two presets."""
    monkeypatch.setattr(comments, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "GH_TOKEN", "GITHUB_TOKEN", "NPUPROF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    repo.commit({"base": BASE, "leaf": '[profile]\nextends = ["base"]\n'}, "one")
    repo.git("checkout", "-q", "-b", "change")
    repo.commit({"base": BASE.replace("1836", "1904")}, "two")
    return repo


@pytest.fixture
def github(change: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """GitHub, and a job of a pull request there."""
    service = GitHub()
    service.tokens = {SECRET: Token(BOT, app=True)}
    with serve(service):
        for name, value in {**describe_github_job(service, tmp_path), "GH_TOKEN": SECRET}.items():
            monkeypatch.setenv(name, value)
        tell_event(tmp_path, change)
        yield service


def tell_event(
    tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch | None = None, **more: Any
) -> None:
    """Write the pull request into GitHub's event, and with a patch into GitLab's variables."""
    if monkeypatch is not None:
        monkeypatch.setenv("CI_COMMIT_SHA", repo.head)
    output = {
        "number": 7,
        "base": {"sha": repo.git("rev-parse", "main")},
        "head": {"sha": repo.git("rev-parse", "HEAD")},
        **more,
    }
    (tmp_path / "event.json").write_text(
        json.dumps({"action": "synchronize", "number": 7, "pull_request": output})
    )


@pytest.fixture
def gitlab(change: Repo, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLab]:
    """GitLab, and a job of a merge request there."""
    service = GitLab()
    service.tokens = {SECRET: Token("project_3_bot", ident=41)}
    with serve(service):
        job = describe_gitlab_job(service, change.git("rev-parse", "main"), change.head)
        for name, value in {**job, "NPUPROF_TOKEN": SECRET}.items():
            monkeypatch.setenv(name, value)
        yield service


@pytest.fixture(params=["github", "gitlab"])
def service(request: pytest.FixtureRequest) -> StandIn:
    """Each of the services in turn."""
    found: StandIn = request.getfixturevalue(request.param)
    return found


def list_own_comments(service: StandIn) -> list[str]:
    (author,) = {token.author for token in service.tokens.values()}
    return service.list_bodies(author)


# -- one comment ----------------------------------------------------------------------------------


def test_a_comment_is_made_once_and_kept_up_to_date(
    service: StandIn, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("review")
    assert result.code == 0, result.err
    assert "request 7: made" in result.err or "request 5: made" in result.err
    (body,) = list_own_comments(service)
    assert body.startswith(f"{MARKER}\n### Presets: 2 changed")
    assert "1836 → 1904" in body
    assert f"{change.head}/profiles/base.toml#L6" in body, (
        "links lead to the lines of the head commit"
    )
    change.commit({"base": BASE.replace("1836", "1972")}, "three")
    tell_event(tmp_path, change, monkeypatch)
    assert run("review").code == 0
    (body,) = list_own_comments(service)
    assert "1836 → 1972" in body
    assert run("review").err.endswith("as it was\n"), "what says the same is not written again"
    assert len(service.writes) == 2


def test_where_no_preset_changes_nothing_new_is_said_and_what_was_said_is_taken_back(
    service: StandIn, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.git("checkout", "-q", "-B", "change", "main")
    tell_event(tmp_path, change, monkeypatch)
    assert run("review").code == 0
    assert service.writes == []
    (author,) = {token.author for token in service.tokens.values()}
    service.add_comment(author, f"{MARKER}\nold")
    assert run("review").code == 0
    (body,) = list_own_comments(service)
    assert "no preset differs" in body


def test_only_our_own_comment_is_edited_however_many_there_are(service: StandIn, run: Run) -> None:
    forged = service.add_comment("mallory", f"{MARKER}\nlooks good")
    (author,) = {token.author for token in service.tokens.values()}
    other = service.add_comment(author, "another tool with the same token\n" + MARKER)
    for number in range(230):
        service.add_comment("ada", f"comment {number}")
    service.add_comment(author, f"{MARKER}\nold")
    assert run("review").code == 0
    assert forged["body"] == f"{MARKER}\nlooks good"
    assert other["body"].startswith("another tool")
    assert "1904" in list_own_comments(service)[1]
    assert len(service.comments) == 233
    (written,) = service.writes
    assert written.endswith("/332")


def test_stores_have_comments_of_their_own(
    service: StandIn, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = change.folder / "more --> presets"
    second.mkdir()
    (second / "one.toml").write_text("[options]\nhccl_timeout = 1\n")
    change.commit(message="a second store")
    tell_event(tmp_path, change, monkeypatch)
    for arguments in (
        [],
        ["--store", "profiles/"],
        ["--store", "more --> presets"],
        ["--store", "more --> presets"],
    ):
        assert run("review", *arguments).code == 0
    assert [body.partition("\n")[0] for body in list_own_comments(service)] == [
        MARKER,
        "<!-- npuprof: presets in more%20%2D%2D%3E%20presets -->",
    ]


@pytest.mark.parametrize(
    ("token", "author"),
    [
        (Token("ada"), "ada"),
        (Token("presets-app[bot]", app=True), "presets-app[bot]"),
        (Token(BOT, app=True), BOT),
    ],
    ids=["a user's", "an app's", "the job's"],
)
def test_who_we_are_is_asked_by_the_token(
    github: GitHub, run: Run, token: Token, author: str
) -> None:
    github.tokens = {SECRET: token}
    for other in {"ada", BOT, "presets-app[bot]"} - {author}:
        github.add_comment(other, f"{MARKER}\nanother's")
    for _ in range(2):
        assert run("review").code == 0
    assert [body.startswith(MARKER) for body in github.list_bodies(author)] == [True]
    assert len(github.comments) == 3


def test_an_enterprise_has_its_api_elsewhere(
    github: GitHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.prefix = "/api/v3"
    monkeypatch.setenv("GITHUB_API_URL", f"{github.url}/api/v3")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example.org")
    github.tokens = {SECRET: Token("presets-app[bot]", app=True)}
    assert run("review").code == 0
    (body,) = list_own_comments(github)
    assert "https://git.example.org/team/presets/blob/" in body


# -- what is refused ------------------------------------------------------------------------------


def test_a_token_that_may_only_read_leaves_the_summary_and_a_message(
    service: StandIn, run: Run, tmp_path: Path
) -> None:
    service.tokens = {SECRET: next(iter(service.tokens.values()))._replace(may_write=False)}
    result = run("review")
    assert result.code == 0
    assert "info NP062: the comment could not be written" in result.err
    shown = (tmp_path / "summary.md").read_text() if isinstance(service, GitHub) else result.out
    assert "1904" in shown
    assert ("::notice title=npuprof NP062::" in result.out) == isinstance(service, GitHub)


def test_without_a_token_nobody_is_asked(
    service: StandIn, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GH_TOKEN", raising=False)
    monkeypatch.delenv("NPUPROF_TOKEN", raising=False)
    result = run("review")
    assert result.code == 0
    assert "there is no token" in result.err
    assert service.calls == []


class RetryCase(NamedTuple):
    method: str
    status: int
    headers: dict[str, str]
    done: bool


@pytest.mark.parametrize(
    ("method", "status", "headers", "done"),
    [
        RetryCase(
            method="GET",
            status=502,
            headers={},
            done=False,
        ),
        RetryCase(
            method="POST",
            status=504,
            headers={},
            done=True,
        ),
        RetryCase(
            method="GET",
            status=429,
            headers={"retry-after": "0"},
            done=False,
        ),
        RetryCase(
            method="POST",
            status=403,
            headers={"retry-after": "0"},
            done=False,
        ),
    ],
)
def test_what_passes_is_tried_again_and_nothing_is_written_twice(
    service: StandIn, run: Run, method: str, status: int, headers: dict[str, str], done: bool
) -> None:
    service.tokens = {SECRET: next(iter(service.tokens.values()))._replace(app=False)}
    service.faults = [Fault(method, status, headers, done)]
    result = run("review")
    assert result.code == 0, result.err
    assert len(list_own_comments(service)) == 1
    assert "NP062" not in result.err


LASTING = [
    ([Fault("GET", 401)], "refuses it (401"),
    ([Fault("GET", 502)] * 4, "refuses it (502: fault)"),
    ([Fault("GET", 429, {"retry-after": "3600"})], "refuses it (429"),
    (
        [Fault("GET", 403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"})],
        "refuses it (403",
    ),
    (
        [Fault("GET", 403, text='{"message": "You have exceeded a secondary rate limit."}')],
        "secondary rate limit",
    ),
    ([Fault("POST", 422)], "refuses it (422: fault)"),
    ([Fault("GET", 200, text="<html>")], "is not the API of"),
    ([Fault("GET", 200, text='{"id": "x", "login": 3}')], "does not say whose the token is"),
    (
        [Fault("GET", 500, text=json.dumps({"message": f"what is {SECRET}?\x1b[31m\n::error::x"}))]
        * 4,
        "what is ***?",
    ),
]


@pytest.mark.parametrize(("faults", "message"), LASTING, ids=[message for _, message in LASTING])
def test_what_does_not_pass_is_said_and_fails_nothing(
    service: StandIn, run: Run, faults: list[Fault], message: str
) -> None:
    service.tokens = {SECRET: next(iter(service.tokens.values()))._replace(app=False)}
    service.faults = list(faults)
    result = run("review")
    assert result.code == 0
    assert message in result.err
    assert "warning NP062" in result.err
    assert SECRET not in result.out + result.err
    assert "\x1b" not in result.out + result.err
    assert list_own_comments(service) == []


def test_a_service_that_does_not_answer_is_said(
    service: StandIn, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_API_URL", "CI_API_V4_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/api")
    result = run("review")
    assert result.code == 0
    assert "does not answer" in result.err
    assert service.calls == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_gitlab_with_an_authority_of_its_own_is_trusted_by_what_the_job_says(
    gitlab: GitLab, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    arguments = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=gitlab",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run(
        ["openssl", *arguments, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    both = tmp_path / "both.pem"
    both.write_text(Path(key).read_text() + Path(certificate).read_text())
    own_one = GitLab()
    own_one.tokens = gitlab.tokens
    monkeypatch.setattr(comments, "PAUSES", (9e9,))  # that nobody vouches for it does not pass
    with serve(own_one, both):
        monkeypatch.setenv("CI_API_V4_URL", f"{own_one.url}/api/v4")
        result = run("review")
        assert result.code == 0
        assert own_one.calls == []
        assert "CERTIFICATE_VERIFY_FAILED" in result.err
        monkeypatch.setenv("CI_SERVER_TLS_CA_FILE", str(tmp_path / "nowhere.pem"))
        assert "NP062" in run("review").err
        monkeypatch.setenv("CI_SERVER_TLS_CA_FILE", certificate)
        assert run("review").code == 0
        assert len(list_own_comments(own_one)) == 1


@pytest.mark.parametrize(("method", "status"), [("GET", 301), ("POST", 307)])
def test_the_token_follows_no_redirect(
    service: StandIn, run: Run, status: int, method: str
) -> None:
    service.tokens = {SECRET: next(iter(service.tokens.values()))._replace(app=False)}
    with serve(GitHub()) as elsewhere:
        service.faults = [Fault(method, status, {"Location": f"{elsewhere.url}/user"})]
        result = run("review")
        assert result.code == 0
        assert f"refuses it ({status}" in result.err
        assert elsewhere.calls == []


def test_space_around_a_token_is_no_part_of_it(
    service: StandIn, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GH_TOKEN", "NPUPROF_TOKEN"):
        monkeypatch.setenv(name, f"  {SECRET}\n")
    assert run("review").code == 0
    assert len(list_own_comments(service)) == 1


@pytest.mark.parametrize("token", ["a\nb: c", "sécret"])
def test_what_can_be_no_token_is_sent_to_nobody(
    service: StandIn, run: Run, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GH_TOKEN", "NPUPROF_TOKEN"):
        monkeypatch.setenv(name, token)
    result = run("review")
    assert result.code == 0
    assert "the token contains invalid characters" in result.err
    assert service.calls == []
    assert token not in result.err


# -- what is judged -------------------------------------------------------------------------------


def test_errors_are_told_at_their_lines_and_fail_the_job_and_the_comment_is_written_all_the_same(
    service: StandIn, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.commit({"base": BASE.replace("hccl_timeout", "hccl_timout")}, "wrong")
    tell_event(tmp_path, change, monkeypatch)
    result = run("review", "--report", "report.json")
    assert result.code == 1
    if isinstance(service, GitHub):
        assert "::error file=profiles/base.toml,line=6" in result.out
        assert json.loads(Path("report.json").read_text())["version"] == "2.1.0"
    else:
        assert "profiles/base.toml:6:1: error NP201" in result.out
        assert json.loads(Path("report.json").read_text())[0]["location"] == {
            "path": "profiles/base.toml",
            "lines": {"begin": 6},
        }
    (body,) = list_own_comments(service)
    assert "**Broken**" in body


def test_what_only_the_merge_mends_is_told_and_exits_2(
    gitlab: GitLab, change: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = change.commit({"torn": "x = ["}, "torn")
    monkeypatch.setenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", torn)
    change.commit({"torn": None}, "as merged")
    monkeypatch.setenv("CI_COMMIT_SHA", change.head)
    result = run("review")
    assert result.code == 2
    assert "torn" in result.err
    assert "torn" in list_own_comments(gitlab)[0]


@pytest.mark.parametrize("event", ["push", "merge_group"])
def test_other_events_of_github_are_checked_only(
    github: GitHub, run: Run, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_EVENT_NAME", event)
    result = run("review")
    assert result.code == 0, result.err
    assert github.calls == [], result.err


@pytest.mark.parametrize(
    "more", [{"CI_MERGE_REQUEST_IID": ""}, {"CI_MERGE_REQUEST_EVENT_TYPE": "merge_train"}], ids=str
)
def test_branches_and_trains_of_gitlab_are_checked_only(
    gitlab: GitLab, run: Run, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    result = run("review")
    assert result.code == 0, result.err
    assert gitlab.calls == [], result.err


NONSENSE = [
    ({"GITHUB_ACTIONS": "", "GITLAB_CI": ""}, "neither GITHUB_ACTIONS nor GITLAB_CI"),
    ({"GITHUB_EVENT_NAME": "pull_request_target"}, "pull_request_target is not looked at"),
    ({"GITHUB_EVENT_PATH": ""}, "no GITHUB_EVENT_PATH"),
    ({"GITHUB_EVENT_PATH": "nowhere.json"}, "cannot read nowhere.json"),
    ({"GITHUB_REPOSITORY": "../x"}, "GITHUB_REPOSITORY is '../x'"),
    ({"GITHUB_API_URL": "file:///etc/passwd"}, "GITHUB_API_URL is 'file:///etc/passwd'"),
]


@pytest.mark.parametrize(
    ("variables", "message"), NONSENSE, ids=[message for _, message in NONSENSE]
)
def test_a_job_that_makes_no_sense_is_refused_by_name(
    github: GitHub,
    run: Run,
    variables: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = run("review")
    assert result.code == 2
    assert message in result.err
    assert github.calls == []


@pytest.mark.parametrize(
    "event",
    ["{", '{"pull_request": null}', '{"pull_request": {"number": 7, "base": {"sha": "-x"}}}'],
)
def test_an_event_that_tells_nothing_is_refused(
    github: GitHub, run: Run, event: str, tmp_path: Path
) -> None:
    (tmp_path / "event.json").write_text(event)
    result = run("review")
    assert result.code == 2
    assert "NP060" in result.err


# -- the checkout ---------------------------------------------------------------------------------


def clone_shallow(
    change: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> Path:
    folder = tmp_path / "runner"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", *arguments, f"file://{change.folder}", str(folder)],
        check=True,
    )
    monkeypatch.chdir(folder)
    return folder


def test_a_shallow_checkout_is_deepened(
    service: StandIn, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.release("base", "1.0.0", "main")
    change.commit({"more": '[profile]\nextends = ["base@1.0.0"]\n'}, "pinned")
    tell_event(tmp_path, change, monkeypatch)
    folder = clone_shallow(change, tmp_path, monkeypatch, "--single-branch", "--branch", "change")
    result = run("review")
    assert "1836 → 1904" in list_own_comments(service)[0], result.err
    assert (
        subprocess.run(
            ["git", "rev-parse", "--is-shallow-repository"],
            cwd=folder,
            capture_output=True,
            check=True,
        ).stdout
        == b"false\n"
    )


@pytest.mark.parametrize("address", ["", "ssh://127.0.0.1:9/x", "http://127.0.0.1:{port}/x"])
def test_a_checkout_is_deepened_with_the_header_of_its_job_and_no_program_of_its_repository(
    address: str,
    github: GitHub,
    change: Repo,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    folder = clone_shallow(change, tmp_path, monkeypatch, "--single-branch", "--branch", "change")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        program = f"touch {tmp_path}/touched;:"
        for name, value in {
            "core.sshCommand": program,
            "credential.helper": f"!{program}",
            "credential.http://127.0.0.1.helper": f"!{program}",
            "remote.origin.uploadpack": program,
            "http.extraheader": f"Authorization: Basic {SECRET}",
            "remote.origin.url": address.format(port=server.server_port),
        }.items():
            if value:
                subprocess.run(["git", "config", name, value], cwd=folder, check=True)
        result = run("review")
        server.shutdown()
    assert not (tmp_path / "touched").exists()
    assert result.code == (2 if address else 0), result.err
    assert set(seen) == ({f"Basic {SECRET}"} if address.startswith("http") else set())


def test_the_target_branch_stands_in_for_a_base_that_is_not_said(
    gitlab: GitLab, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
    result = run("review")
    assert result.code == 2
    assert "CI_MERGE_REQUEST_TARGET_BRANCH_NAME" in result.err
    monkeypatch.setenv("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
    clone_shallow(change, tmp_path, monkeypatch, "--no-single-branch", "--branch", "change")
    assert run("review").code == 0
    assert "1904" in list_own_comments(gitlab)[0]
    assert run("review", "--base", "HEAD~1").code == 0
    assert "1904" in list_own_comments(gitlab)[0]


def test_a_shallow_checkout_that_cannot_be_deepened_is_refused_by_name(
    service: StandIn, change: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clone_shallow(change, tmp_path, monkeypatch, "--single-branch", "--branch", "change")
    subprocess.run(
        [
            "git",
            "remote",
            "set-url",
            "origin",
            f"https://job-token:{SECRET}@127.0.0.1:9/nowhere.git",
        ],
        cwd=folder,
        check=True,
    )
    result = run("review")
    assert result.code == 2
    assert "the checkout is shallow" in result.err
    assert SECRET not in result.out + result.err
    assert ("fetch-depth: 0" if isinstance(service, GitHub) else "GIT_DEPTH: 0") in result.err
    assert service.writes == []


def test_a_base_that_is_nowhere_is_refused_and_the_presets_are_checked_all_the_same(
    github: GitHub, change: Repo, tmp_path: Path, run: Run
) -> None:
    change.write({"base": BASE.replace("hccl_timeout", "hccl_timout")})
    tell_event(tmp_path, change, base={"sha": "0123456789" * 4})
    result = run("review")
    assert result.code == 2
    assert "0123456" in result.err
    assert "NP061" in result.out
    assert "NP201" in result.out
    assert github.writes == []


# -- what fails the job is on the page ------------------------------------------------------------

LOCKED = BASE.replace(
    'scenario = "training"\n', 'scenario = "training"\nlocked = ["hccl_timeout"]\n'
)
OLD = "[options]\ndeterministic = true\n"
FREE = '[profile]\nscenario = "training"\n\n[env]\nLD_PRELOAD = "/opt/x.so"\n'
#: What is in main before the branch leaves, what comes to main meanwhile, what the branch does;
#: what the page says of it.
RED: dict[
    str,
    tuple[
        dict[str, str | None], dict[str, str | None], dict[str, str | None], int, tuple[str, ...]
    ],
] = {
    "a lock that came to the target": (
        {},
        {"base": LOCKED},
        {"leaf": '[profile]\nextends = ["base"]\n[options]\nhccl_timeout = 600\n', "base": None},
        1,
        (
            "1 broken by the merge\n",
            "**Broken by the merge with `main`**",
            "NP105 `hccl_timeout is",
            "profiles/leaf.toml:4",
            "try: `",
        ),
    ),
    "a parent that was lost before": (
        {"lost": '[profile]\nextends = ["nowhere"]\n'},
        {},
        {},
        2,
        (
            "1 error of before",
            "**1 error of before, which fails the job**",
            "NP101",
            "profiles/lost.toml:2",
        ),
    ),
    "an error that came to the target meanwhile": (
        {},
        {"old": OLD},
        {},
        1,
        ("1 error of before", "profiles/old.toml:2"),
    ),
    "a rename of a preset with an error": (
        {"old": OLD},
        {},
        {"old": None, "other": OLD},
        1,
        (
            "1 renamed",
            "**1 error of before, which fails the job**",
            "NP202 `",
            "profiles/other.toml:2",
            "**Renamed**: `old` → `other`",
        ),
    ),
    "a file with a name that no preset has": (
        {},
        {},
        {"we`ird": FREE},
        2,
        (
            "1 error besides",
            "**What else fails the job**",
            "NP004",
            "profiles/we`ird.toml",
            "  try: `rename the file`",
        ),
    ),
}


@pytest.mark.parametrize("way", RED)
def test_what_fails_the_job_is_on_the_page(
    way: str, github: GitHub, change: Repo, tmp_path: Path, run: Run
) -> None:
    before, meanwhile, own, code, output = RED[way]
    change.git("checkout", "-q", "main")
    change.commit({"fine": BASE, **before}, "before")
    change.git("checkout", "-q", "-B", "change")
    change.commit(
        {
            "base": BASE.replace("1836", "1904"),
            **{name: text for name, text in own.items() if name != "base"},
        },
        "own",
    )
    if "base" in own:
        change.commit({"base": BASE}, "as it was")
    head = change.head
    change.git("checkout", "-q", "main")
    if meanwhile:
        change.commit(meanwhile, "meanwhile")
    tip = change.head
    change.git("checkout", "-q", "--detach")
    change.git("merge", "-q", "--no-ff", "-m", "merge", head)
    tell_event(tmp_path, change, base={"sha": tip, "ref": "main"}, head={"sha": head})
    result = run("review")
    assert result.code == code, result.err
    (body,) = github.list_bodies(BOT)
    assert output
    for text in output:
        assert text in body
    assert (
        max(map(body.index, output[1:])) < body.index("</summary>") if "<details>" in body else True
    ), "what is broken comes first"
    assert "fine" not in body


UNREADABLE = {
    "a torn npuprof.toml": ("[[rule]\n", "NP001", "npuprof.toml:1"),
    "another npuprof": ('requires = ">=99"\n', "NP041", "npuprof.toml:1"),
    "no store at all": (None, "NP010", "try: "),
}


@pytest.mark.parametrize("way", UNREADABLE)
def test_a_store_that_cannot_be_judged_is_told_and_the_comment_of_before_goes(
    way: str,
    service: StandIn,
    change: Repo,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, code, place = UNREADABLE[way]
    assert run("review").code == 0
    if text is None:
        change.git("rm", "-rq", "profiles")
    else:
        (change.folder / "npuprof.toml").write_text(text)
    change.commit(message="torn")
    tell_event(tmp_path, change, monkeypatch)
    result = run("review", "--store", "profiles")
    assert result.code == 2
    (body,) = list_own_comments(service)
    assert "1836 → 1904" not in body
    assert code in body
    assert place in body
    assert code in result.out, "the log, or an annotation"
    if isinstance(service, GitHub):
        assert "::error " in result.out
        assert code in (tmp_path / "summary.md").read_text().rpartition("### Presets")[2]


def test_what_a_baseline_hides_fails_no_job_in_silence(
    github: GitHub, change: Repo, tmp_path: Path, run: Run
) -> None:
    change.git("checkout", "-q", "main")
    change.commit({"lost": '[profile]\nextends = ["nowhere"]\n'}, "lost")
    change.git("checkout", "-q", "-B", "change")
    tell_event(tmp_path, change)
    assert run("review", "--ignore", "NP101").code == 2
    assert (
        "**1 preset cannot be read or resolved, and a baseline hides why (npuprof check)**"
        in list_own_comments(github)[0]
    )


def test_the_summary_has_what_the_comment_has_no_room_for(
    github: GitHub, change: Repo, tmp_path: Path, run: Run
) -> None:
    many = {
        f"job/{number:03}": f'[options]\ndump_path = "/{number}/{"ä" * 600}"\n'
        for number in range(120)
    }
    change.commit(many, "many")
    start = change.head
    change.commit({name: text.replace("/ä", "/ö") for name, text in many.items()}, "other")
    tell_event(tmp_path, change, base={"sha": start})
    assert run("review").code == 0
    (body,) = list_own_comments(github)
    summary = (tmp_path / "summary.md").read_text()
    assert len(body) < 60_100
    assert f"(`npuprof diff --rev {start[:12]}...{change.head[:12]}` shows them)" in body
    assert "Left out" not in summary
    assert all(f"<code>job/{number:03}</code>" in summary for number in range(120))
    assert len(summary.encode()) < 1024 * 1024


def test_a_service_that_gives_no_reason_may_lack_a_right(github: GitHub, run: Run) -> None:
    github.faults = [Fault("POST", 403, text='{"message": ""}') for _ in range(2)]
    github.tokens = {SECRET: Token("ada")}
    result = run("review")
    assert result.code == 0
    assert "GitHub refuses it (403)" in result.err
    assert "The token may lack the right" in result.err
