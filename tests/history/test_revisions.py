"""Revisions, versions and trees of a repository, and the error of each unknown name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof.model import Finding, NpuprofError
from npuprof.store.gitstore.repository import TreeFile
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.spec import Workspace
from support.repositories import Link, Node, Repo, import_graph

BASE = "[options]\nhccl_timeout = 1\n"
LEAF = '[profile]\nextends = ["base"]\n'


def describe_finding(finding: Finding) -> tuple[Any, ...]:
    place = (finding.path, finding.line, finding.column)
    return (
        finding.code,
        finding.severity,
        finding.message,
        finding.why,
        finding.hint,
        place,
        finding.key,
        finding.profiles,
    )


def list_error_findings(spec: str, text: str | None = None) -> list[tuple[Any, ...]]:
    """Return the findings for what cannot be resolved, ``SHA`` for the last commit's id."""
    with pytest.raises(NpuprofError) as error:
        npuprof.loads(text, store=npuprof.open_store()) if text else npuprof.open_store().resolve(
            spec
        )
    return [describe_finding(finding) for finding in error.value.findings]


@pytest.fixture
def two(repo: Repo) -> Repo:
    repo.commit({"base": BASE, "leaf": LEAF, "team/other": BASE})
    for version in ("1.0.0", "1.2.0", "1.10.0"):
        repo.release("leaf", version)
    return repo


NOWHERE = (None, 0, 0)
RELEASED = "A released version is an annotated tag leaf/vX.Y.Z."
SHOWS = (
    "write a version (1.2.0, or 1 for the newest 1.x.y), a branch, a tag, or a commit of git log "
    "--oneline"
)

#: What is asked for, and the message, why and hint of the finding.
UNKNOWN = {
    "leaf@nowhere": ("unknown revision 'nowhere'", "", SHOWS),
    "leaf@mian": ("unknown revision 'mian'", "", "did you mean 'main'?"),
    "leaf@leaf/v1.0.1": (
        "unknown revision 'leaf/v1.0.1'",
        "",
        "did you mean 'leaf/v1.0.0' or 'leaf/v1.10.0' or 'leaf/v1.2.0'?",
    ),
    "leaf@-n1": ("unknown revision '-n1'", "A revision cannot start with '-'.", SHOWS),
    "leaf@HEAD~9": ("unknown revision 'HEAD~9'", "", SHOWS),
    "leaf@HEAD^{tree}": ("unknown revision 'HEAD^{tree}'", "", SHOWS),
    "leaf@": (
        "the revision after @ is missing",
        "",
        "write one, NAME@HEAD or NAME@1.2.0, or omit the @",
    ),
    "leaf@^1.2": (
        "'^1.2' is a range, and a preset's revision is none",
        "A short version selects the newest one that begins with it.",
        "write NAME@1 for its newest version 1.x.y, or a version in full, NAME@1.2.0",
    ),
    "leaf@HEAD\nHEAD": ("unknown revision 'HEAD\\nHEAD'", "", SHOWS),
    "leaf@3": ("leaf has no released version 3", RELEASED, "released are 1.0.0, 1.2.0, 1.10.0"),
    "base@v1": (
        "base has no released version v1",
        "A released version is an annotated tag base/vX.Y.Z.",
        "none is released; npuprof release base makes the first",
    ),
}


@pytest.mark.parametrize("requested", UNKNOWN)
def test_a_revision_that_names_nothing_is_told_with_why_and_what_to_try(
    two: Repo, requested: str
) -> None:
    message, why, hint = UNKNOWN[requested]
    assert list_error_findings(requested) == [
        ("NP011", "error", message, why, hint, NOWHERE, "", ())
    ]
    if requested.isprintable():
        two.write({"heir": f"[profile]\nextends = ['{requested}']\n"})
        assert list_error_findings("heir") == [
            (
                "NP011",
                "error",
                message,
                why,
                hint,
                ("profiles/heir.toml", 2, 12),
                "profile.extends",
                ("heir",),
            )
        ]


def test_a_shallow_clone_says_what_it_lacks(
    two: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.commit({"base": BASE.replace("1", "2")})
    two.git(
        "clone",
        "-q",
        "--depth",
        "1",
        "--no-tags",
        f"file://{two.folder}",
        str(tmp_path / "shallow"),
    )
    monkeypatch.chdir(tmp_path / "shallow")
    why = "This clone is shallow: it contains only the newest commits."
    assert list_error_findings("leaf@HEAD~1")[0][2:5] == (
        "unknown revision 'HEAD~1'",
        why,
        "fetch the rest: git fetch --unshallow",
    )
    assert list_error_findings("leaf@mian")[0][2:5] == (
        "unknown revision 'mian'",
        why,
        "did you mean 'main'?",
    )
    hint = "this clone is shallow and may lack the tags: git fetch --tags --unshallow"
    assert list_error_findings("leaf@1")[0][2:5] == (
        "leaf has no released version 1",
        RELEASED,
        hint,
    )
    repository = StoreRepository("profiles")
    with pytest.raises(NpuprofError) as error:
        repository.find_merge_base(
            repository.resolve_commit("HEAD"), two.git("rev-parse", "HEAD~1")
        )
    assert error.value.findings[0].hint == "this clone is shallow: git fetch --unshallow"
    two.git("-C", str(tmp_path / "shallow"), "fetch", "-q", "--depth", "1", "--tags")
    assert (
        list_error_findings("leaf@1")[0][4]
        == "this clone is shallow and may not reach back to the version: git fetch --unshallow"
    )


#: What a spec names, as it is shown; SHA is the last commit's short id.
NAMED = {
    "leaf@1": "leaf@1.10.0",
    "leaf@v1": "leaf@1.10.0",
    "leaf@1.2": "leaf@1.2.0",
    "leaf@v1.0.0": "leaf@1.0.0",
    "leaf@'1.2'": "leaf@1.2.0",
    'leaf@"HEAD"': "leaf@SHA",
    "leaf@leaf/v1.0.0": "leaf@SHA",
    "leaf@HEAD^{commit}": "leaf@SHA",
    "leaf@''": None,
    "leaf@'": None,
    "team/other@main": "team/other@SHA",
    "leaf@1234": "leaf@SHA",
    "leaf@v9": "leaf@SHA",
}


@pytest.mark.parametrize("requested", NAMED)
def test_a_version_goes_before_a_branch_and_is_shown_in_full(two: Repo, requested: str) -> None:
    for branch in ("1.2", "v1", "1234", "v9"):
        two.git("branch", branch)
    if NAMED[requested] is None:
        assert list_error_findings(requested)[0][0] == "NP011"
    else:
        assert npuprof.open_store().resolve(requested).name == str(NAMED[requested]).replace(
            "SHA", two.head[:7]
        )


def test_versions_are_annotated_tags_of_three_numbers(two: Repo) -> None:
    two.git("tag", "leaf/v2.0.0")
    for tag in (
        "leaf/v2.0",
        "leaf/v02.0.0",
        "leaf/2.0.0",
        "leaf/v1.0.0-rc.01",
        "leaf/v1.0.0-rc1",
        "leaf/x/v3.0.0",
        "team/other/v0.1.0",
    ):
        two.git("tag", "-a", tag, "-m", f"about {tag}\n\nmore\n\nDigest: {'0a' * 32}\n")
    repository = StoreRepository("profiles")
    shown = [
        (version.name, version.number_text, version.digest, version.message.partition("\n")[0])
        for version in repository.load_versions()
    ]
    assert shown == [
        ("leaf", "1.0.0-rc1", "0a" * 32, "about leaf/v1.0.0-rc1"),
        ("leaf", "1.0.0", "", "leaf 1.0.0"),
        ("leaf", "1.2.0", "", "leaf 1.2.0"),
        ("leaf", "1.10.0", "", "leaf 1.10.0"),
        ("leaf/x", "3.0.0", "0a" * 32, "about leaf/x/v3.0.0"),
        ("team/other", "0.1.0", "0a" * 32, "about team/other/v0.1.0"),
    ]
    assert {
        (version.commit, version.date[:10]) for version in repository.load_versions("leaf")
    } == {(two.head, "2026-01-02")}
    assert {version.tag for version in repository.load_versions("leaf/x")} == {
        two.git("rev-parse", "leaf/x/v3.0.0")
    }
    two.git("tag", "-d", "leaf/v1.0.0")
    assert len(repository.load_versions("leaf")) == 4
    repository.clear_versions()
    assert len(repository.load_versions("leaf")) == 3


def test_commits_without_a_common_ancestor_are_told(two: Repo) -> None:
    two.git("checkout", "-q", "--orphan", "other")
    other = two.commit({"base": BASE})
    repository = StoreRepository("profiles")
    main = repository.resolve_commit("main")
    with pytest.raises(NpuprofError) as error:
        repository.find_merge_base(main, other)
    message = f"{main[:7]} and {other[:7]} have no common ancestor"
    expected = (
        "NP011",
        "error",
        message,
        "A...B compares B with where it left A.",
        "compare the two tips: A..B",
        NOWHERE,
        "",
        (),
    )
    assert describe_finding(error.value.findings[0]) == expected
    assert repository.find_merge_base(main, main) == main


def test_the_files_of_a_store_are_those_of_its_tree(tmp_path: Path) -> None:
    files = ["a", "x/y/z", "x/y.toml", ".hidden", "x/.hidden", ".x/a", "not a name", "ü"]
    tree: dict[str, str] = {**dict.fromkeys(files, BASE), "link": Link("a.toml")}
    repo = import_graph(tmp_path / "repo", [Node((), {}), Node((0,), tree)])
    (repo.folder / "profiles" / "text.txt").write_text("")
    (repo.folder / "profiles" / "folder.toml").mkdir()
    (repo.folder / "profiles" / "folder.toml" / "a.toml").write_text(BASE)
    repo.commit()
    repository = StoreRepository(str(repo.folder / "profiles"))
    blob = repo.git("rev-parse", "HEAD:profiles/a.toml")
    found = repository.list_profile_files(repo.head)
    plain = ["a", "x/y/z", "x/y.toml", "not a name", "ü", "folder.toml/a"]
    assert found.pop("link").is_link
    assert found == dict.fromkeys(plain, TreeFile("100644", blob))
    assert repository.list_profile_files(repo.git("rev-parse", "HEAD~2")) == {}
    then = repository.load_revision(repo.head)
    assert then.names() == ["a", "folder.toml/a", "link", "x/y/z"]
    assert then.stray_files() == ["not a name.toml", "x/y.toml.toml", "ü.toml"]


def test_a_store_at_the_top_of_its_repository_is_one(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    (repo.folder / "leaf.toml").write_text(BASE)
    commit = repo.commit()
    (repo.folder / "leaf.toml").unlink()
    none = repo.commit()
    repository = StoreRepository(str(repo.folder))
    layout = repository.find_layout("HEAD")
    assert layout.prefix == ""
    assert layout.pathspecs == (":(top)",)
    assert layout.path_of("a/b") == "a/b.toml"
    then = repository.load_revision(commit)
    assert then.label == f"the repository at {commit[:7]}"
    assert then.profile("leaf").document.source == "leaf.toml"
    with pytest.raises(NpuprofError) as error:
        repository.load_revision(none).profile("leaf")
    expected = (
        "NP023",
        "error",
        f"there are no presets in the repository at {none[:7]}",
        "",
        "name a later revision",
        NOWHERE,
        "",
        (),
    )
    assert describe_finding(error.value.findings[0]) == expected
    below = StoreRepository(str(repo.folder / "x y"))
    layout = below.find_layout("HEAD")
    assert layout.prefix == "x y/"
    assert layout.pathspecs == (":(top,literal)x y",)
    assert layout.path_of("a") == "x y/a.toml"


def test_a_profile_that_was_not_there_is_told_with_what_was(two: Repo) -> None:
    head = two.head
    label = f"profiles at {head[:7]}"
    two.commit({"not a name": BASE})
    expected = (
        "NP023",
        "error",
        f"no preset 'laef' in {label}",
        "",
        "did you mean 'leaf'?",
        NOWHERE,
        "",
        (),
    )
    assert list_error_findings(f"laef@{head}") == [expected]
    expected = (
        "NP023",
        "error",
        f"no preset 'zzz' in {label}",
        "",
        "npuprof list lists presets, npuprof log zzz commits",
        NOWHERE,
        "",
        (),
    )
    assert list_error_findings(f"zzz@{head}") == [expected]
    assert (
        list_error_findings("not a name@HEAD")[0][2]
        == f"no preset 'not a name' in profiles at {two.head[:7]}"
    )
    assert list_error_findings("x@HEAD", '[profile]\nextends = ["bose@1"]\n')[0][2:5] == (
        "bose has no released version 1",
        "A released version is an annotated tag bose/vX.Y.Z.",
        "none is released; npuprof release bose makes the first",
    )
    assert list_error_findings("", f'[profile]\nextends = ["bose@{head}"]\n') == [
        (
            "NP101",
            "error",
            f"<text> extends 'bose', which is not in {label}",
            "Without its parent a preset has no meaning.",
            "did you mean 'base'?",
            ("<text>", 2, 12),
            "profile.extends",
            ("<text>",),
        )
    ]


def test_links_are_followed_within_the_store_and_not_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = {
        "one": "base.toml",
        "x/two": "../one.toml",
        "out": "../other.toml",
        "ring": "ring.toml",
        "lost": "gone.toml",
        "odd": "base",
    }
    chain = {f"c{number}": f"c{number + 1}.toml" for number in range(9)}
    tree = {
        "base": BASE,
        "c9": BASE,
        **{name: Link(text) for name, text in {**links, **chain}.items()},
    }
    repo = import_graph(tmp_path / "repo", [Node((), tree)])
    monkeypatch.chdir(repo.folder)
    store = npuprof.open_store()
    for name in ("one", "x/two", "c2"):
        assert store.resolve(f"{name}@HEAD").options == {"hccl_timeout": 1}
    why = "A link is followed to other presets in the store's folder, and to nothing else."
    for name, target in (
        ("out", "../other.toml"),
        ("ring", "ring.toml"),
        ("lost", "gone.toml"),
        ("odd", "base"),
        ("c1", "c9.toml"),
    ):
        place = f"{repo.head[:7]}:profiles/{name}.toml"
        message = f"{place} is a link to {target}, which is not followed"
        assert list_error_findings(f"{name}@HEAD") == [
            ("NP005", "error", message, why, "put the file itself there", (place, 0, 0), "", ())
        ]


#: What is asked for, and the name and revision it comes to; None where it is refused.
SINGLE = {
    "leaf": ("leaf", ""),
    "leaf@1": ("leaf", "1"),
    "leaf@fix+more": ("leaf", "fix+more"),
    "profiles/leaf.toml": ("leaf", ""),
    "./profiles/team/other.toml": ("team/other", ""),
    "leaf@": ("leaf", ""),
    "team/other@HEAD~1": ("team/other", "HEAD~1"),
    "leaf+base": None,
    "leaf+base@1": None,
    "-": None,
    "other.toml": None,
    "profiles/leaf.toml@1": None,
}


@pytest.mark.parametrize("requested", SINGLE)
def test_only_one_preset_of_the_store_has_a_history(two: Repo, requested: str) -> None:
    (two.folder / "other.toml").write_text(BASE)
    expected = SINGLE[requested]
    if expected:
        assert Workspace().split_single_spec(requested, "log") == expected
    else:
        with pytest.raises(NpuprofError) as error:
            Workspace().split_single_spec(requested, "log")
        message, why, hint = (
            f"log takes one preset of the store, not {requested!r}",
            "Only presets in git under one name have a history.",
            "name one preset",
        )
        assert describe_finding(error.value.findings[0]) == (
            "NP024",
            "error",
            message,
            why,
            hint,
            NOWHERE,
            "",
            (),
        )


def test_a_file_of_the_store_is_the_preset_of_its_name(
    two: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace()
    assert workspace.profile("profiles/leaf.toml") is workspace.profile("leaf")
    assert (
        workspace.profile(str(two.folder / "profiles" / "team" / "other.toml")).name == "team/other"
    )
    assert workspace.resolve_spec("profiles/leaf.toml@1").name == "leaf@1.10.0"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alone.toml").write_text(BASE)
    assert Workspace().profile("alone.toml").home is None
    with pytest.raises(NpuprofError) as error:
        Workspace(str(tmp_path / "nowhere")).profile("alone.toml")
    assert error.value.findings[0].code == "NP010"


#: Specs, and the parts that a + joins.
JOINED = {
    "leaf@1+base": ["leaf@1", "base"],
    "leaf@a+x+base": ["leaf@a", "x", "base"],
    "leaf+b": ["leaf", "b"],
    "leaf@a+base@1": ["leaf@a", "base@1"],
    "leaf": ["leaf"],
    "leaf@a+": ["leaf@a", ""],
}


@pytest.mark.parametrize("requested", JOINED)
def test_a_plus_joins_specs_unless_it_is_in_quotes(two: Repo, requested: str) -> None:
    for branch in ("a", "a+b", "a+b+c", "a+base", "x"):
        two.git("branch", branch)
    assert Workspace().split_spec(requested) == JOINED[requested]
