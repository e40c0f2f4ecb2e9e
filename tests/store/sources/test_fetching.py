"""Sources fetched from real remotes over file and ssh: what arrives, and faulty remotes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npuprof.model import NpuprofError
from npuprof.store.sources import fetching, transport
from npuprof.store.sources.failures import build_failure
from npuprof.store.sources.fetching import (
    LOCKED,
    Fetched,
    fetch_locked,
    fetch_source,
    find_mirror_folder,
    pin_commits,
)
from npuprof.store.sources.mirrorgit import MovedTag
from npuprof.store.urls import find_url_fault, hide_credentials, normalize_url
from support.building import REPOSITORY
from support.repositories import Repo
from support.waiting import wait_for

BASE = "[options]\nhccl_timeout = {}\n"

#: In place of ssh: the name of the host says what it does. Its processes tell their numbers.
SSH = """\
#!/bin/sh
test "$1" = -G && exit 1
host=${{1#*@}}
echo $$ >> {folder}/pids
env > {folder}/environ
case $host in
local) exec sh -c "$2" ;;
slow) sleep 0.7; exec sh -c "$2" ;;
hang) sleep 1000 ;;
trickle) sh -c "$2" | {{
  head -c 1000
  while dd bs=1 count=1 2>{folder}/said; grep -q '^1 byte' {folder}/said; do sleep 0.2; done
}} ;;
endless) while :; do echo 0; done ;;
midway) sh -c "$2" | {{ head -c 600; kill -9 $$; }} ;;
ask)
  read -r answer < /dev/tty
  echo "git@ask: Permission denied (publickey,password)." >&2
  exit 255 ;;
gone) echo "ERROR: Repository not found." >&2; exit 1 ;;
evil) printf 'fatal: \\033[2J\\033]0;x\\007 https://user:secret@evil/x\\n' >&2; exit 1 ;;
esac
"""


def fetch_commit(url: str, commit: str) -> bool:
    """Return whether a commit is in the mirror of a source once it was asked for."""
    return not fetch_locked(url, [commit])


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bare remote of two releases and a branch, and its clone; to be copied."""
    folder = tmp_path_factory.mktemp("worked")
    repo = Repo(folder / "repo")
    repo.commit({"base": BASE.format(1800)}, "first")
    repo.release("base", "1.0.0")
    repo.git("branch", "old")
    repo.commit({"base": BASE.format(600)}, "second")
    repo.release("base", "1.1.0")
    repo.git("clone", "-q", "--bare", "--template=", ".", "../hub.git")
    repo.git("remote", "add", "hub", "../hub.git")
    return folder


@pytest.fixture
def repo(worked: Path, tmp_path: Path) -> Repo:
    """A copy of the repository."""
    shutil.copytree(worked / "repo", tmp_path / "repo", symlinks=True)
    return Repo(tmp_path / "repo", init=False)


@pytest.fixture
def hub(worked: Path, tmp_path: Path) -> Path:
    """A copy of the remote."""
    shutil.copytree(worked / "hub.git", tmp_path / "hub.git")
    return tmp_path / "hub.git"


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program that stands for ssh. Whatever it started is gone at the end."""
    script = tmp_path / "transport"
    script.write_text(SSH.format(folder=tmp_path))
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    monkeypatch.setenv("NPUPROF_TIMEOUT", "60")
    yield script
    for pid in list_living(tmp_path):
        os.kill(pid, signal.SIGKILL)


def list_living(folder: Path) -> list[int]:
    listed = (folder / "pids").read_text().split() if (folder / "pids").exists() else []
    living = []
    for pid in map(int, listed):
        try:
            os.kill(pid, 0)
            if "(zombie)" not in Path(f"/proc/{pid}/status").read_text():
                living.append(pid)
        except OSError:
            continue
    return living


def snapshot(folder: str) -> dict[str, bytes]:
    """Return all files of a folder."""
    return {
        str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()
    }


def list_refs(url: str) -> dict[str, str]:
    arguments = [
        "git",
        f"--git-dir={find_mirror_folder(url)}",
        "for-each-ref",
        "--format=%(refname) %(objectname)",
    ]
    listed = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout
    return dict(line.split(" ") for line in listed.splitlines())


def read_failure(act: Callable[[], object]) -> tuple[str, str]:
    """Return the code of an error, and all that it says."""
    with pytest.raises(NpuprofError) as caught:
        act()
    (finding,) = caught.value.findings
    assert finding.hint, finding
    return finding.code, f"{finding.message}\n{finding.why}\n{finding.hint}"


def start_fetch(url: str) -> subprocess.Popen[bytes]:
    program = (
        f"from npuprof.store.sources.fetching import *\nprint(len(fetch_source({url!r}).tags))"
    )
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


# Addresses

#: An address, and a word of why it is refused; an empty one where it is taken.
ADDRESSES = {
    "ssh://host:2222/~/presets.git": "",
    "git@host:team/presets.git": "",
    "host:presets": "",
    "git@[::1]:presets": "",
    "ssh://[::1]:22/presets": "",
    "https://git@host:8443/presets.git": "",
    "https://oauth2@host/presets.git": "",
    "https://ours@dev.azure.com/ours/_git/presets": "",
    "https://ada@host:8443/presets.git": "may be a token",
    "https://sekret@host/presets.git": "may be a token",
    "https://sek%72et@host/presets.git": "may be a token",
    "file:///srv/our%20presets.git": "",
    "/srv/presets.git": "",
    "": "empty",
    "ext::sh -c touch% touched": "ext::",
    "ext::touch": "ext::",
    "fd::3": "fd::",
    "https::https://host/x": "https::",
    "::x": "::",
    "http://host/presets.git": "https://",
    "git://host/presets.git": "https://",
    "HTTPS://host/presets": "is not ssh",
    "presets.git": "relative",
    "~/presets.git": "relative",
    "./host:x": "relative",
    "file://srv/presets.git": "absolute",
    "--upload-pack=touch touched": "starts with '-'",
    "ssh://-oProxyCommand=touch/x": "starts with '-'",
    "ssh://%2doProxyCommand=touch/x": "starts with '-'",
    "ssh://-x@host/x": "starts with '-'",
    "git@-oProxyCommand=touch:x": "starts with '-'",
    "git@host:-x": "starts with '-'",
    "/srv/our presets.git": "blank",
    "https://host/x\n": "blank",
    "https://host/x\x1b[2J": "control",
    "https://host/%0aHost:x": "control",
    "https://ada:secret@host/x": "credentials",
    "https://:secret@host/x": "credentials",
    "https://ghp_secret0123456789secret@host/x": "credentials",
    "https://host/x?private_token=secret": "credentials",
    "ssh://git:secret@host/x": "credentials",
    "ssh://git%3Asecret@host/x": "credentials",
    "git:secret@host/x": "credentials",
    "https:///x": "host",
    "https://host/": "repository",
    "git@host:": "repository",
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_is_taken_or_refused_with_the_reason(url: str) -> None:
    fault = find_url_fault(url)
    assert (fault != "") == (ADDRESSES[url] != ""), fault
    assert ADDRESSES[url] in fault
    assert "secret" not in fault + hide_credentials(url)
    if fault:
        code, output = read_failure(lambda: fetch_source(url))
        assert code == "NP048"
        assert "secret" not in output
        assert not os.path.exists(os.path.dirname(find_mirror_folder("/x")))


#: Addresses of one place, and one of another.
EQUAL = {
    "of a path": (
        (
            "/srv/x.git",
            "/srv/x.git/",
            "file:///srv/x.git",
            "file:///srv//x.git",
            "/srv/y/../x.git",
            "file:///srv/x%2Egit",
        ),
        "/srv/x",
    ),
    "of https": (("https://host/x", "https://HOST/x/", "https://host:443/x"), "https://host/x.git"),
    "of ssh": (
        ("ssh://git@host/x", "ssh://git@host:22/x/", "git@host:/x", "git@HOST:/x"),
        "git@host:x",
    ),
    "of scp": (("git@host:x", "git@Host:x/"), "host:x"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_addresses_of_one_place_have_one_mirror(name: str) -> None:
    same, other = EQUAL[name]
    assert len({normalize_url(url) for url in same}) == 1
    assert len({find_mirror_folder(url) for url in same}) == 1
    assert find_mirror_folder(other) != find_mirror_folder(same[0])
    assert re.fullmatch(r"x-[0-9a-f]{16}\.git", os.path.basename(find_mirror_folder(same[0])))


# What arrives

#: Ways to name the remote.
WAYS = ("{hub}", "file://{hub}", "ssh://git@local{hub}", "git@local:{hub}")


@pytest.mark.parametrize("way", WAYS)
def test_heads_and_tags_arrive_over_each_transport(
    way: str, repo: Repo, hub: Path, ssh: Path
) -> None:
    url = way.format(hub=hub)
    tags = {
        name: repo.git("rev-parse", f"refs/tags/{name}") for name in ("base/v1.0.0", "base/v1.1.0")
    }
    heads = {"main": repo.head, "old": repo.git("rev-parse", "old")}
    wanted = Fetched(tags, heads, repo.head, ())
    assert fetch_source(url) == wanted
    before = snapshot(find_mirror_folder(url))
    assert fetch_source(url) == wanted
    assert snapshot(find_mirror_folder(url)) == before
    assert list_refs(url) == {f"refs/heads/{name}": oid for name, oid in heads.items()} | {
        f"refs/tags/{name}": oid for name, oid in tags.items()
    }
    assert os.listdir(os.path.dirname(find_mirror_folder(url))) == [
        os.path.basename(find_mirror_folder(url))
    ]


#: What happens upstream, which refs of the mirror differ then, and which tags have moved.
UPSTREAM = {
    "a release": ("tag -a base/v1.2.0 -m x main; push hub --tags", {"refs/tags/base/v1.2.0"}, ()),
    "a tag moved": ("tag -f base/v1.0.0 main; push -f hub --tags", set(), ("base/v1.0.0",)),
    "a tag made anew": (
        "tag -f -a base/v1.0.0 -m new old; push -f hub --tags",
        set(),
        ("base/v1.0.0",),
    ),
    "a tag of no commit": (
        "tag -f base/v1.0.0 main:profiles; push -f hub --tags",
        set(),
        ("base/v1.0.0",),
    ),
    "a tag deleted": ("push -q hub :refs/tags/base/v1.0.0", {"refs/tags/base/v1.0.0"}, ()),
    "a tag in the way": (
        "push -q hub :refs/tags/base/v1.0.0; push -q hub old:refs/tags/base/v1.0.0/x",
        {"refs/tags/base/v1.0.0", "refs/tags/base/v1.0.0/x"},
        (),
    ),
    "a branch rewritten": ("push -f hub old:main", {"refs/heads/main"}, ()),
    "a branch in the way": (
        "push hub :old; push hub main:refs/heads/old/x",
        {"refs/heads/old", "refs/heads/old/x"},
        (),
    ),
}


@pytest.mark.parametrize("name", UPSTREAM)
def test_the_mirror_follows_what_happens_upstream_but_for_tags_that_move(
    name: str, repo: Repo, hub: Path
) -> None:
    commands, changed, moved_tags = UPSTREAM[name]
    fetch_source(str(hub))
    before = list_refs(str(hub))
    for command in commands.split("; "):
        repo.git(*command.split())
    fetched = fetch_source(str(hub))
    after = list_refs(str(hub))
    assert {ref for ref in before | after if before.get(ref) != after.get(ref)} == changed
    assert tuple(moved.tag for moved in fetched.moved) == moved_tags
    for moved in fetched.moved:
        assert (moved.old == moved.new) is (name == "a tag made anew")
        finding = fetching.build_moved_finding(str(hub), moved)
        assert finding.code == "NP046"
        assert moved.old[:12] in finding.message
        assert moved.new[:12] in finding.message
        fetch_source(str(hub), accept_moved=True)
        assert list_refs(str(hub))[f"refs/tags/{moved.tag}"] == fetched.tags[moved.tag]
        assert fetch_source(str(hub)).moved == ()


@pytest.mark.parametrize(("same", "shown"), [(0, 12), (11, 15), (38, 40)])
def test_ids_of_a_tag_that_moved_are_shown_so_that_they_differ(same: int, shown: int) -> None:
    old, new = "a" * 40, "a" * same + "b" * (40 - same)
    moved = MovedTag("v1.0.0", old, new)
    message = fetching.build_moved_finding("/srv/x", moved).message
    assert f"v1.0.0 was {old[:shown]}, and is {new[:shown]} now" in message
    recreated = MovedTag("v1.0.0", old, old)
    message = fetching.build_moved_finding("/srv/x", recreated).message
    assert f"v1.0.0 is at {old[:12]}, as before" in message


def test_a_locked_commit_stays_whatever_its_remote_does(repo: Repo, hub: Path) -> None:
    url, locked = str(hub), repo.head
    assert fetch_commit(url, locked)
    repo.git("push", "-q", "-f", "hub", "old:main", ":refs/tags/base/v1.1.0")
    repo.git("--git-dir=../hub.git", "gc", "-q", "--prune=now")
    fetch_source(url)
    mirror = find_mirror_folder(url)
    subprocess.run(["git", f"--git-dir={mirror}", "gc", "-q", "--prune=now"], check=True)
    hub.rename(hub.with_name("away.git"))
    assert list_refs(url)[f"{LOCKED}{locked}"] == locked
    assert fetch_commit(url, locked)  # without the remote
    pin_commits(url, [locked])
    assert read_failure(lambda: fetch_commit(url, "1" * 40))[0] == "NP045"


def test_a_commit_without_a_ref_is_rejected_while_the_remote_has_it_and_is_lost_later(
    repo: Repo, hub: Path, tmp_path: Path
) -> None:
    repo.git("push", "-q", "-f", "hub", "old:main", ":refs/tags/base/v1.1.0")
    for _ in range(2):
        assert read_failure(lambda: fetch_commit(str(hub), repo.head))[0] == "NP046"
        assert read_failure(lambda: pin_commits(str(hub), [repo.head]))[0] == "NP046"
    assert f"{LOCKED}{repo.head}" not in list_refs(str(hub))
    assert not fetch_commit(str(hub), "1" * 40)
    assert not fetch_commit(str(hub), "main")
    assert not fetch_commit(str(hub), repo.git("rev-parse", "HEAD:profiles"))  # no commit
    repo.git("--git-dir=../hub.git", "gc", "-q", "--prune=now")
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "another")}
    code = (
        "from npuprof.store.sources.fetching import *; "
        f"print(not fetch_locked({str(hub)!r}, [{repo.head!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"False\n"


# What goes wrong

#: The host, and a word of what is said.
FAULTS = {
    "hang": "less than 10 bytes a second for 1 seconds",
    "trickle": "for 1 seconds, and was given up",
    "endless": "protocol error",
    "midway": "hung up",
    "ask": "never prompts",
    "gone": "Repository not found",
    "evil": "https://***@evil/x",
}


@pytest.mark.parametrize("host", FAULTS)
def test_a_bad_remote_ends_in_an_error_and_leaves_the_mirror_and_no_process(
    host: str,
    repo: Repo,
    hub: Path,
    ssh: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if host in ("hang", "trickle"):
        monkeypatch.setenv("NPUPROF_TIMEOUT", "1")
    url = f"ssh://git@{host}{hub}"
    mirror = find_mirror_folder(url)
    for known in (False, True) if host == "midway" else (False,):
        if known:
            shutil.rmtree(mirror)
            os.rename(find_mirror_folder(str(hub)), mirror)
            repo.commit({"base": BASE.format(5)})
            repo.git("push", "-q", "hub", "main")
        before = snapshot(mirror)
        code, output = read_failure(lambda: fetch_source(url))
        assert code == "NP045"
        assert FAULTS[host] in output
        assert url in output
        assert "secret" not in output
        assert "\x1b" not in output
        wait_for(lambda: not list_living(tmp_path))
        after = snapshot(mirror)
        assert {path: after.get(path) for path in before} == before
        if not known:
            fetch_source(str(hub))


#: What git says, and the code and a word of what is made of it.
SAID = {
    "fatal: unable to access 'https://host/x/': Could not resolve host: host": (
        "NP045",
        "Could not resolve host",
    ),
    "remote: Not Found\nfatal: repository 'https://host/x/' not found": ("NP045", "not found"),
    "fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output": (
        "NP053",
        "No space left",
    ),
    (
        "error: object 1: missingSpaceBeforeDate: x\n"
        "fatal: fsck error in packed object\nfatal: index-pack failed"
    ): (
        "NP045",
        "object 1",
    ),
    "error: object file objects/12/3 is empty\nfatal: loose object 123 is corrupt": (
        "NP054",
        "object file objects/12/3",
    ),
    "": ("NP045", "git said: nothing"),
}


@pytest.mark.parametrize("expected", SAID)
def test_what_git_says_is_quoted(expected: str) -> None:
    (finding,) = build_failure("https://host/x", expected, "/cache/x.git").findings
    assert finding.code == SAID[expected][0]
    assert SAID[expected][1] in finding.why


def test_the_command_that_moves_a_damaged_mirror_away_is_one_for_a_shell() -> None:
    (finding,) = build_failure(
        "https://host/x", "fatal: loose object 123 is corrupt", "/my cache/x.git"
    ).findings
    assert "mv '/my cache/x.git' '/my cache/x.git.damaged' && npuprof source sync" in finding.hint


def test_a_remote_that_lists_nothing_any_more_takes_nothing_away(repo: Repo, hub: Path) -> None:
    fetch_source(str(hub))
    before = list_refs(str(hub))
    shutil.rmtree(hub)
    repo.git("init", "-q", "--bare", "--template=", str(hub))
    assert "no branch and no tag" in read_failure(lambda: fetch_source(str(hub)))[1]
    assert list_refs(str(hub)) == before


def test_a_password_that_the_users_git_puts_into_an_address_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {
        "COUNT": "1",
        "KEY_0": "url.https://ada:secret@localhost:1/.insteadOf",
        "VALUE_0": "https://team/",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    code, output = read_failure(lambda: fetch_source("https://team/x.git"))
    assert code == "NP045"
    assert "secret" not in output
    assert "localhost:1" in output
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url.ext::touch .insteadOf")
    assert "not allowed" in read_failure(lambda: fetch_source("https://team/touched"))[1]
    monkeypatch.setenv("NPUPROF_TIMEOUT", "soon")
    assert "NPUPROF_TIMEOUT=soon" in read_failure(lambda: fetch_source("https://team/touched"))[1]


def test_nothing_that_a_remote_a_template_or_a_mirror_names_is_started(
    repo: Repo, hub: Path, ssh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch = tmp_path / "touch"
    touch.write_text(f"#!/bin/sh\ntouch {tmp_path}/touched\ncat\n")
    touch.chmod(0o755)
    hooks = tmp_path / "template/hooks"
    hooks.mkdir(parents=True)
    for name in (
        "reference-transaction",
        "post-checkout",
        "pre-auto-gc",
        "post-merge",
        "post-rewrite",
    ):
        (hooks / name).symlink_to(touch)
    (repo.folder / ".gitmodules").write_text('[submodule "m"]\n\tpath = m\n\turl = ../hub.git\n')
    (repo.folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},m")
    repo.git("add", ".gitmodules", ".gitattributes")
    repo.git("commit", "-q", "-m", "submodule")
    repo.git("push", "-q", "hub", "main")
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "GIT_EDITOR"):
        monkeypatch.setenv(name, str(touch))
    gitconfig = tmp_path / "gitconfig"
    gitconfig.write_text(
        f"[core]\n\thooksPath = {hooks}\n\taskPass = {touch}\n\tfsmonitor = {touch}\n[fetch]\n"
        "\trecurseSubmodules = true\n"
        '[protocol "ext"]\n\tallow = always\n[filter "evil"]\n'
        f"\tsmudge = {touch}\n[submodule]\n\trecurse = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(gitconfig))
    monkeypatch.setenv("GIT_DIR", str(repo.folder / ".git"))
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(repo.folder / ".git/objects"))
    url = f"git@local:{hub}"
    before = snapshot(str(repo.folder / ".git"))
    fetch_source(url)
    assert snapshot(str(repo.folder / ".git")) == before
    mirror = find_mirror_folder(url)
    (Path(mirror) / "config").write_text(
        f"{(Path(mirror) / 'config').read_text()}[core]\n"
        f"\tsshCommand = {touch}\n\thooksPath = {hooks}\n"
        f'[remote "{url}"]\n\tuploadpack = {touch}\n'
    )
    repo.git("--git-dir=../hub.git", "branch", "new", "main")
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    assert "new" in fetch_source(url).heads
    assert fetch_commit(url, repo.git("rev-parse", "main"))
    (repo.folder / ".gitmodules").write_text(
        f'[submodule "m"]\n\tpath = m\n\turl = ext::{touch}\n\tupdate = !{touch}\n'
    )
    repo.git("-c", f"core.hooksPath={os.devnull}", "commit", "-q", "-m", "command", ".gitmodules")
    repo.git("-c", f"core.hooksPath={os.devnull}", "push", "-q", "hub", "main")
    assert "gitmodules" in read_failure(lambda: fetch_source(url))[1]
    assert not (tmp_path / "touched").exists()
    environ = dict(
        line.split("=", 1)
        for line in (tmp_path / "environ").read_text().splitlines()
        if "=" in line
    )
    wanted = {
        "GIT_ALLOW_PROTOCOL": "ssh:https:file",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "LC_ALL": "C",
    }
    assert {name: environ.get(name) for name in wanted} == wanted
    assert not {"SSH_ASKPASS", "GIT_ALTERNATE_OBJECT_DIRECTORIES"} & set(environ)


def test_ssh_itself_is_told_not_to_ask(
    repo: Repo, hub: Path, ssh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/ssh"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/words\n'
        'while test "$1" = -o; do shift 2; done\nexec sh -c "$2"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("GIT_SSH_COMMAND")
    fetch_source(f"ssh://local{hub}")
    assert "BatchMode=yes -o ConnectTimeout=60" in (tmp_path / "words").read_text()
    gitconfig = tmp_path / "gitconfig"
    gitconfig.write_text(f"[core]\n\tsshCommand = {ssh}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(gitconfig))
    (tmp_path / "words").unlink()
    fetch_source(f"ssh://local{hub}")
    assert not (tmp_path / "words").exists()  # what users say of ssh is theirs


def test_a_cache_that_is_no_folder_is_refused_and_a_relative_one_not_taken(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        assert read_failure(lambda: fetch_source(str(hub)))[0] == "NP053"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert find_mirror_folder("/x").startswith(f"{tmp_path}/home/.cache/npuprof/sources/x-")


# Runs that meet, and runs that are killed


def test_two_first_fetches_at_once_wait_for_one_another(
    repo: Repo, hub: Path, ssh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPROF_TIMEOUT", "20")
    both = [start_fetch(f"slow:{hub}") for _ in range(2)]
    assert [(process.communicate(), process.returncode) for process in both] == [
        ((b"2\n", b""), 0)
    ] * 2
    assert len(os.listdir(os.path.dirname(find_mirror_folder("/x")))) == 1


def test_what_a_run_started_ends_with_it_or_is_waited_for(
    repo: Repo, hub: Path, ssh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPROF_TIMEOUT", "30")
    url = f"ssh://git@hang{hub}"
    for number, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)):
        ended = start_fetch(url)
        wait_for(lambda: list_living(tmp_path))
        ended.send_signal(number)
        ended.communicate()
        assert ended.returncode == code
        wait_for(lambda: not list_living(tmp_path))
        (tmp_path / "pids").unlink()


def test_how_far_it_is_goes_to_the_terminal_and_nothing_else_does() -> None:
    shown: list[str] = []
    messages = transport._Messages(shown.append)
    messages.add(b"remote: Counting objects:  50% (1/2)\rremote: Coun")
    messages.add(
        b"ting objects: 100% (2/2), done.\n"
        b"Receiving objects:  10% (100/1000)\rremote: welcome\n\nfatal: it broke"
    )
    assert messages.finish() == "remote: welcome\nfatal: it broke"
    steps = (
        "remote: Counting objects:  50% (1/2)",
        "remote: Counting objects: 100% (2/2), done.",
        "Receiving objects:  10% (100/1000)",
    )
    assert shown == [f"fetching: {step}" for step in steps]
