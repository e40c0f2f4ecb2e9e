"""The page of a pull request: counts, order by risk, merged lists, owners, links, limits."""

from __future__ import annotations

import re

import pytest

from npuprof.compare.owners import match_owners, parse_owners
from support.repositories import Repo
from support.running import Run

BASE = (
    '[profile]\nabstract = true\nscenario = "training"\nowner = "cluster-team"\n[options]\n'
    'hccl_timeout = {}\nprecision_mode_v2 = "{}"\n'
)
HEIR = (
    '[profile]\ndescription = "{0}"\nextends = ["base"]\nscenario = "training"\n[options]\n'
    'variable_memory_max_size = "{0}"\n'
)


@pytest.fixture
def page(repo: Repo, run: Run) -> str:
    """A base that 24 heirs take two changes from.

    Of others one is new, one gone, one renamed, one broken.
    """
    heirs = {f"job/{number:02}": HEIR.format(number + 1) for number in range(24)}
    (repo.folder / ".github").mkdir()
    (repo.folder / ".github/CODEOWNERS").write_text("* @team/all\n/profiles/job/ @team/jobs\n")
    repo.commit(
        {
            "base": BASE.format(1836, "mixed_float16"),
            **heirs,
            "gone": HEIR.format(90),
            "old": HEIR.format(91),
            "bad": HEIR.format(92),
        }
    )
    repo.commit(
        {
            "base": BASE.format(1904, "mixed_bfloat16"),
            "gone": None,
            "old": None,
            "renamed": HEIR.format(91),
            "bad": HEIR.format(92) + 'precision_mode_v2 = "fp61"\n',
            "new": (
                '[profile]\nextends = ["base"]\nscenario = "training"\n'
                "[options]\nhcom_parallel = true\n"
            ),
        }
    )
    done = run(
        "diff",
        "--rev",
        "HEAD~1...HEAD",
        "--format",
        "markdown",
        "--link",
        "https://github.com/team/presets",
    )
    assert done.code == 0, done.err
    return done.out


def test_the_first_line_counts_presets_and_risks(page: str) -> None:
    first = page.splitlines()[0]
    assert first == "### Presets: 1 broken, 26 changed, 1 new, 1 removed, 1 renamed"
    assert "\nAt risk: numerics 27, distributed 27, memory 27, " in page


def test_a_cause_of_a_whole_block_is_in_its_title_only(repo: Repo, run: Run) -> None:
    repo.commit(
        {"base": BASE.format(1836, "mixed_float16"), "a": HEIR.format(1), "b": HEIR.format(2)}
    )
    repo.commit({"base": BASE.format(1904, "mixed_float16")})
    text = run("diff", "--rev", "HEAD~1...HEAD", "--format", "markdown").out
    assert "**`profiles/base.toml:6` → 3 presets**\n\n| | change | risk |\n" in text
    assert text.count("profiles/base.toml:6") == 1


def test_what_is_broken_comes_first_then_what_is_gone_then_by_risk(page: str) -> None:
    places = [
        page.index(text)
        for text in (
            "**Broken**",
            "NP203 `",
            "**Removed**: `gone`",
            "**New**",
            "**Renamed**",
            "Owners",
            "→ 26 presets**",
            "<details>",
        )
    ]
    assert places == sorted(places)
    assert re.findall(r"^\| `~` \| `(\w+)", page, re.MULTILINE)[:2] == [
        "precision_mode_v2",
        "hccl_timeout",
    ]


def test_without_risks_a_changed_preset_comes_before_a_new_one(repo: Repo, run: Run) -> None:
    repo.commit({"z": 'profile.scenario = "training"\nenv.JOB_ID = "1"\n'})
    more = 'profile.scenario = "training"\nenv.JOB_ID = "2"\n'
    repo.commit({"z": more, "a": more})
    shown = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    assert re.findall(r"<summary><code>(\w+)", shown) == ["z", "a"]


def test_a_list_of_presets_is_folded(page: str) -> None:
    open_text = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert "`job/07`" in page
    assert "`job/07`" not in open_text


def test_what_is_broken_links_to_its_line(page: str, repo: Repo) -> None:
    assert re.search(
        (
            r"^- NP203 `[^`]+` "
            rf"\(\[`profiles/\S+:\d+`\]\(https://\S+/blob/{repo.head}/profiles/\S+#L\d+\)\): "
            r"`\S+`  $"
        ),
        page,
        re.M,
    )


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (
            BASE.format('"q"', "fp16"),
            (
                "- NP202 `hccl_timeout takes a whole number, "
                'not "q"` (`profiles/base.toml:6`): 13 presets, '
            ),
        ),
        (
            None,
            (
                "- NP101 `extends 'base', which is not in profiles` "
                "(`profiles/p00.toml:2` and 11 more): 12 presets, "
            ),
        ),
    ],
)
def test_one_fault_of_a_base_is_told_once(
    base: str | None, message: str, repo: Repo, run: Run
) -> None:
    repo.commit(
        {
            "base": BASE.format(1836, "fp16"),
            **{f"p{n:02}": "[profile]\nextends = ['base']\n" for n in range(12)},
        }
    )
    repo.commit({"base": base})
    text = run("diff", "--rev", "HEAD~1", "--format", "markdown").out
    assert text.count(message) == 1
    assert text.count("`p07`") <= 2
    assert "INVALID NOW" not in text


def test_a_deleted_preset_is_removed_and_a_moved_one_is_renamed(page: str) -> None:
    assert "renamed from gone" not in page
    assert "\n**Renamed**: `old` → `renamed`\n" in page


def test_owners_of_what_is_reached_are_named(page: str) -> None:
    assert "Owners of affected presets: `@team/jobs` (24), `@team/all` (" in page
    assert "`cluster-team` (1)" in page


def test_causes_link_to_the_lines_of_the_last_commit(page: str, repo: Repo) -> None:
    head = repo.head
    assert (
        f"[`profiles/base.toml:6`](https://github.com/team/presets/blob/{head}/profiles/base.toml#L6)"
        in page
    )
    assert head not in re.sub(r"\(https://[^)]*\)", "", page), "ids that are shown are short"


@pytest.mark.parametrize("dots", ["..", "..."])
def test_revisions_are_shown_by_their_short_ids(repo: Repo, run: Run, dots: str) -> None:
    first = repo.commit({"base": BASE.format(1, "fp16")})
    second = repo.commit({"base": BASE.format(2, "fp16")})
    text = run("diff", "--rev", f"{first}{dots}{second}", "--format", "markdown").out
    assert not re.search("[0-9a-f]{40}", text)
    assert first[:7] in text


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "https://x) [y](z", "github.com/a/b", "https://a b"]
)
def test_only_an_address_is_linked(address: str, repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1, "fp16")})
    done = run("diff", "--rev", "HEAD", "--format", "markdown", "--link", address)
    assert done.code == 2
    assert "is not a URL" in done.err


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://github.com/a/b", "https://github.com/a/b/blob/"),
        ("https://git.example.org/a/b/-", "https://git.example.org/a/b/-/blob/"),
        ("https://gitlab.com/a/b", "https://gitlab.com/a/b/-/blob/"),
    ],
)
def test_each_service_has_its_own_form_of_links(
    address: str, link: str, repo: Repo, run: Run
) -> None:
    repo.commit({"base": BASE.format(1, "fp16")})
    repo.commit({"base": BASE.format(2, "fp16")})
    assert (
        f"]({link}{repo.head}/profiles/base.toml#L6)"
        in run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown", "--link", address).out
    )


LONG = "/" + "x" * 3000


@pytest.mark.parametrize(
    ("before", "after", "row"),
    [
        pytest.param(
            f"{LONG}1",
            f"{LONG}2",
            f'`dump_path …{"x" * 40}1"… (3,004 characters) → …{"x" * 40}2"… (3,004 characters)`',
            id="two long values that differ at their end",
        ),
        pytest.param(
            "/a",
            f"/b{LONG}",
            f'`dump_path "/a" → "/b/{"x" * 296}… (3,005 characters)`',
            id="a short value becomes long",
        ),
        pytest.param(
            None, LONG, f'`dump_path "/{"x" * 298}… (3,003 characters)`', id="a long value is added"
        ),
        pytest.param(
            "/a",
            f"/b{'x' * 296}",
            f'`dump_path "/a" → "/b{"x" * 296}"`',
            id="the longest that is shown",
        ),
    ],
)
def test_a_long_value_is_cut_in_its_row(
    before: str | None, after: str, row: str, repo: Repo, run: Run
) -> None:
    texts = [
        f'[options]\ndump_path = "{side}"\n' if side else "[options]\nhccl_timeout = 9\n"
        for side in (before, after)
    ]
    repo.commit({"base": texts[0]})
    repo.commit({"base": texts[1]})
    text = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    assert row in text
    assert max(len(line) for line in text.splitlines() if line.startswith("|")) < 900


def test_the_head_says_once_what_is_compared(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1, "fp16")})
    repo.git("checkout", "-q", "-b", "change")
    tip = repo.commit({"base": BASE.format(2, "fp16")})
    head = run("diff", "--rev", "main...change", "--format", "markdown").out.splitlines()[2]
    assert head.startswith(f"`main ({first[:7]})` → `change ({tip[:7]})`; ")
    repo.git("checkout", "-q", "main")
    repo.commit({"other": BASE.format(2, "fp16")})
    head = run("diff", "--rev", "main...change", "--format", "markdown").out.splitlines()[2]
    assert head.startswith(f"`merge base with main ({first[:7]})` → `change ({tip[:7]})`; ")


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("profiles/a.toml", ("@all",)),
        ("profiles/job/a.toml", ("@jobs", "nlp@example.org")),
        ("profiles/job/deep/a.toml", ("@jobs", "nlp@example.org")),
        ("profiles/free/a.toml", ()),
        ("x/secret.toml", ("@secret",)),
        ("one/a.toml", ("@one",)),
        ("one/two/a.toml", ("@all",)),
        ("a/b/c/deep.toml", ("@deep",)),
        ("with blank/a.toml", ("@blank",)),
    ],
)
def test_owners_are_those_of_the_last_line_that_matches(path: str, owners: tuple[str, ...]) -> None:
    text = (
        "# all\n* @all\n[Section][2] @no\n"
        "profiles/job/ @jobs nlp@example.org # both\n/profiles/free/\n"
        "secret.toml @secret\none/* @one\na/**/deep.toml @deep\nwith\\ blank/ @blank\n"
    )
    assert match_owners(parse_owners(text), path) == owners


TIMEOUT = "[options]\nhccl_timeout = {}\n"
PINNED = "[profile]\nextends = ['b@{}']\n"


def test_a_cause_in_another_commit_than_those_compared_is_told_with_it(
    repo: Repo, run: Run
) -> None:
    repo.commit(
        {
            "b": TIMEOUT.format(100),
            "one": PINNED.format("1.0.0"),
            "two": PINNED.format("1.0.0"),
            "live": "[profile]\nextends = ['b']\n",
        }
    )
    repo.release("b", "1.0.0")
    repo.commit({"b": TIMEOUT.format(200)})
    repo.release("b", "1.1.0")
    pinned = repo.head[:7]
    repo.commit(
        {
            "b": "# moved\n" + TIMEOUT.format(300),
            "one": PINNED.format("1.1.0"),
            "two": "[profile]\nextends = ['b@1.1.0']\n",
        }
    )
    page = run(
        "diff", "--rev", "HEAD~1..HEAD", "--format", "markdown", "--link", "https://example.org/x"
    ).out
    assert f"`{pinned}:profiles/b.toml:2`" not in page  # that is what the page compares with
    repo.commit({"one": PINNED.format("1.0.0"), "two": PINNED.format("1.0.0")})
    page = run(
        "diff", "--rev", "HEAD~1..HEAD", "--format", "markdown", "--link", "https://example.org/x"
    ).out
    first = repo.git("rev-parse", "b/v1.0.0^{commit}")
    assert (
        f"[`{first[:7]}:profiles/b.toml:2`](https://example.org/x/blob/{first}/profiles/b.toml#L2)"
        in page
    ), page
    repo.commit({"b": TIMEOUT.format(400)})
    assert (
        "`profiles/b.toml:2`"
        in run("diff", "--rev", "HEAD~1..HEAD", "live", "--format", "markdown").out
    )


@pytest.mark.parametrize("lost", [None, "[profile\n", "[options]\nhccl_timeout = [\n"])
@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_what_an_unreadable_preset_had_is_not_told_as_mended(
    lost: str | None, form: str, repo: Repo, run: Run
) -> None:
    child = (
        "[profile]\nextends = ['b']\n\n[options]\nprecision_mode = 'force_fp16'\n"
        "precision_mode_v2 = 'fp16'\n"
    )
    repo.commit({"b": "[options]\nhccl_timeout = 5\n", "heir": child})
    repo.commit({"b": lost})
    output = run("diff", "--rev", "HEAD~1..HEAD", "--format", form).out
    assert "no longer" not in output, output
    assert '"newly_valid": [\n' not in output, output
    assert "heir" in output
    repo.commit(
        {
            "b": "[options]\nhccl_timeout = 5\n",
            "heir": child.replace("precision_mode = 'force_fp16'\n", ""),
        }
    )
    assert ("no longer" in run("diff", "--rev", "HEAD~2..HEAD").out) == (
        "NP301" in run("diff", "--rev", "HEAD~2..HEAD").out
    )
