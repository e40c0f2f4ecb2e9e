"""The pages of a site: which there are, and their contents."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from npuprof.site.compatibility import build_matrices, judge_everywhere
from npuprof.site.inheritance_graph import draw_family
from npuprof.site.setting_rows import Setting, build_settings
from npuprof.store import spec
from support.building import REPOSITORY
from support.repositories import Repo
from support.running import Run

pytest.importorskip("jinja2")

PRESETS = {
    "base/training": """[profile]
description = "what all trainings share"
scenario = "training"
abstract = true
[options]
hccl_timeout = 1836
""",
    "job": """profile.extends = ["base/training"]
profile.owner = "team-a"
[options]
hccl_timeout = 1904
precision_mode_v2 = "mixed_float16"
""",
    "other": """profile.extends = ["base/training"]
profile.description = "é\\u2028</script>"
[options]
precision_mode = "allow_mix_precision"
precision_mode_v2 = "mixed_float16"
""",
    "broken": 'profile.extends = ["nowhere"]\n[options]\ndeterministic = 1\n',
}


class Page(HTMLParser):
    """The text of a page, its links and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: set[str] = set()
        self.plain: list[
            bool
        ] = []  # of the spans that are open: those without attributes are parts of a path
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.plain += [not attributes] if tag == "span" else []
        self.words += [] if tag == "span" and not attributes else [" "]
        self.tags.append((tag, attributes))
        self.links += [str(attributes[name]) for name in ("href", "src") if attributes.get(name)]
        self.ids |= {str(attributes["id"])} if attributes.get("id") else set()

    def handle_endtag(self, tag: str) -> None:
        self.words += [] if tag == "span" and self.plain.pop() else [" "]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def site(repo: Repo, run: Run) -> Path:
    repo.commit(PRESETS, message="one")
    result = run("site", "public")
    assert result.code == 0, result.err
    return repo.folder / "public"


def test_settings_are_the_same_whether_a_preset_that_inherits_them_came_before() -> None:
    workspace = spec.Workspace(str(REPOSITORY / "profiles"))
    inherited: dict[Any, Setting] = {}
    kept: list[Any] = []
    cases = [*map(workspace.resolve_spec, workspace.listed_store.names())]
    assert cases
    for config in cases:
        first, again = build_settings(config, inherited), build_settings(config, {})
        assert [(table.rows, table.fields) for table in first] == [
            (table.rows, table.fields) for table in again
        ]
        kept += [mark for mark, setting in inherited.items() if setting in first]
    assert len(kept) > 2 * len(inherited) > 60


def test_each_preset_has_a_page_that_says_what_it_is_who_wrote_what_and_what_is_wrong(
    site: Path,
) -> None:
    page = Page(site / "presets/job.html").text
    for expected in (
        "team-a",
        "training",
        "hccl_timeout",
        "1904",
        "1836",
        "profiles/base/training.toml:6",
        "profiles/job.toml:4",
        "one",
    ):
        assert expected in page, expected
    assert "NP301" in Page(site / "presets/other.html").text
    broken = Page(site / "presets/broken.html").text
    assert "cannot be resolved" in broken
    assert "nowhere" in broken
    assert Page(site / "index.html").text.index("broken") < Page(site / "index.html").text.index(
        "base/training"
    )


TOLD = {  # what is in the store, and what the page of "job" says of it
    "each place of a table has its own author": (
        {
            "mix": (
                '[options.modify_mixlist.black-list]\nto-add = ["SoftmaxV2"]\nto-remove = ["Add"]\n'
            ),
            "job": (
                'profile.extends = ["mix"]\n[append.options.modify_mixlist.black-list]\n'
                'to-add = ["LayerNorm", "MatMul"]\n'
            ),
        },
        [
            'modify_mixlist.black-list.to-add ["SoftmaxV2", "LayerNorm", "MatMul"]',
            "mix [0] profiles/mix.toml:2 job [1] to [2] profiles/job.toml:3",
            'modify_mixlist.black-list.to-remove ["Add"] mix profiles/mix.toml:3',
        ],
    ),
    "what holds for some only stands apart": (
        {
            "base": (
                "[options]\nhccl_timeout = 1836\n[[override]]\n"
                'match = { product = ["atlas-a3"] }\noptions = { hccl_timeout = 1904 }\n'
            ),
            "job": 'profile.extends = ["base"]\n',
        },
        ["contexts only product atlas-a3", "hccl_timeout 1836 1904 base profiles/base.toml:5"],
    ),
    "an override that changes nothing is not told": (
        {
            "job": (
                "[options]\nhccl_timeout = 1836\n[[override]]\n"
                'match = { product = ["atlas-a3"] }\noptions = { hccl_timeout = 1836 }\n'
            )
        },
        ["Generated code", "!contexts only"],
    ),
    "exports stand there for each shell": (
        {"job": '[env]\nTMPDIR = "it\'s"\n'},
        [
            "exports for bash, zsh, sh",
            "export TMPDIR='it'\\''s'",
            "exports for fish",
            "set -gx TMPDIR 'it\\'s';",
            "exports for tcsh",
            "exports for pwsh",
            "${env:TMPDIR} = 'it''s'",
        ],
    ),
    "exports remove what the preset unsets": (
        {
            "base": 'env.HCCL_ALGO = "level0:NA;level1:ring"\n',
            "job": 'profile.extends = ["base"]\nprofile.unset = ["env.HCCL_ALGO"]\n',
        },
        ["unset HCCL_ALGO export NPUPROF_PROFILE", "set -e HCCL_ALGO;", "unsetenv HCCL_ALGO;"],
    ),
    "a shell that cannot take a value says so": (
        {"job": '[env]\nTMPDIR = "a\\nb"\n'},
        [
            (
                "1 target cannot be written exports for tcsh "
                "TMPDIR: tcsh cannot take a line end through eval"
            ),
            "export TMPDIR='a b'",
        ],
    ),
    "what render refuses is not offered, and why is told": (
        {"job": '[options]\nmodify_mixlist = { black-list = { to-add = ["Add"] } }\n'},
        [
            "cannot be written session modify_mixlist is set without a mixed precision mode",
            "exports modify_mixlist is set without",
            "!import tensorflow",
        ],
    ),
    "a file that the code needs stands there once": (
        {
            "job": (
                '[options]\nprecision_mode_v2 = "mixed_float16"\n'
                'modify_mixlist = { black-list = { to-add = ["Add"] } }\n'
            )
        },
        [
            'ops_info.json, a sidecar file { "black-list": { "to-add": [ "Add" ] } } '
            "16 other targets",
        ],
    ),
    "each target is written with the overrides for it": (
        {
            "job": '[options]\nhccl_timeout = 1836\n[[override]]\nmatch = { target = "session" }\n'
            "options = { hccl_timeout = 1904 }\n"
            '[[override]]\nmatch = { target = "env" }\noptions = { hccl_timeout = 1908 }\n'
        },
        [
            'parameter_map["hccl_timeout"].i = 1904',
            "hccl_timeout=1836",
            "NPUPROF_HCCL_TIMEOUT='1908'",
            '"target": "json"',
        ],
    ),
    "a backslash in a text stays one": (
        {"job": "[env]\nTMPDIR = 'C:\\new'\n"},
        ['"C:\\\\new"', "export TMPDIR='C:\\new'"],
    ),
}


def test_the_history_of_a_preset_stands_newest_first_whoever_was_touched(
    repo: Repo, run: Run
) -> None:
    repo.commit({**PRESETS, "last": "[options]\ndeterministic = 1\n"}, message="all of them")
    repo.commit(
        {"base/training": PRESETS["base/training"].replace("1836", "1840")}, message="the parent"
    )
    repo.commit({"job": PRESETS["job"].replace("1904", "1908")}, message="itself")
    repo.commit({"last": "[options]\ndeterministic = 0\n"}, message="another")
    assert run("site", "public").code == 0
    text = Page(repo.folder / "public/presets/job.html").text
    order = sorted(["all of them", "the parent", "itself"], key=text.index)
    assert (
        order
        == repo.git(
            "log", "--format=%s", "--", "profiles/job.toml", "profiles/base/training.toml"
        ).splitlines()
    )


def test_the_history_leaves_out_merges_that_take_a_preset_from_one_side(
    repo: Repo, run: Run
) -> None:
    own = PRESETS["job"]
    repo.commit(PRESETS, message="all of them")
    trunk = repo.git("branch", "--show-current").strip()
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"job": own.replace("1904", "1908")}, message="on the side")
    repo.git("checkout", "-q", trunk)
    repo.commit({"other": PRESETS["other"] + "deterministic = 1\n"}, message="another")
    repo.git("merge", "-q", "--no-ff", "-m", "plain merge", "side")
    repo.git("checkout", "-q", "-b", "again")
    repo.commit({"job": own.replace("1904", "1912")}, message="again")
    repo.git("checkout", "-q", trunk)
    repo.commit({"job": own.replace("1904", "1916")}, message="trunk")
    repo.git("merge", "-q", "-s", "ours", "--no-commit", "again")
    repo.commit({"job": own.replace("1904", "1920")}, message="merge with a value of its own")
    assert run("site", "public").code == 0
    text = Page(repo.folder / "public/presets/job.html").text
    assert "plain merge" not in text
    listed = ["merge with a value of its own", "trunk", "again", "on the side", "all of them"]
    assert all(message in text for message in listed)


LINKS = {  # what --source-url is, and the link to line 4 of job.toml
    "https://github.com/team/presets": "https://github.com/team/presets/blob/REV/PATH#L4",
    "https://github.com/team/cloned.git": "https://github.com/team/cloned/blob/REV/PATH#L4",
    "https://gitcode.com/team/presets/": "https://gitcode.com/team/presets/blob/REV/PATH#L4",
    "https://gitlab.com/a/b/presets": "https://gitlab.com/a/b/presets/-/blob/REV/PATH#L4",
    "https://git.corp/a/b/-": "https://git.corp/a/b/-/blob/REV/PATH#L4",
    "https://git.corp/x?p={path}&h={rev}#l{line}": "https://git.corp/x?p=PATH&h=REV#l4",
}


@pytest.mark.parametrize("url", LINKS)
def test_origins_link_to_their_lines_in_the_repository(repo: Repo, run: Run, url: str) -> None:
    repo.commit(PRESETS)
    commit = repo.git("rev-parse", "HEAD").strip()
    (repo.folder / "profiles/other.toml").write_text(PRESETS["other"] + "deterministic = 1\n")
    assert run("site", "public", "--source-url", url, "--also", "job@HEAD").code == 0
    links = Page(repo.folder / "public/presets/job.html").links
    assert LINKS[url].replace("REV", commit).replace("PATH", "profiles/job.toml") in links
    # lines of a file that is not committed as it is may be others there
    edited = Page(repo.folder / "public/presets/other.html").links
    assert not [link for link in edited if "other.toml" in link]
    assert [link for link in edited if "training.toml" in link]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "team/presets",
        "https://a b",
        "https:///a",
        "https://me:secret@git.x/a",
        "https://a/{rev}",
    ],
)
def test_a_source_url_that_is_none_is_an_error(repo: Repo, run: Run, url: str) -> None:
    repo.commit(PRESETS)
    result = run("site", "public", "--source-url", url)
    assert result.code == 2
    assert f"--source-url {url!r} is not a URL" in result.err
    assert not (repo.folder / "public").exists()


MAIN = {  # the settings of a preset, and the targets that its page shows unfolded
    "options": ("[options]\nhccl_timeout = 1836\n", ["session"]),
    "options and variables": (
        "[options]\nhccl_timeout = 1836\n[env]\nHCCL_BUFFSIZE = 200\n",
        ["session", "exports for bash"],
    ),
    "variables": ("[env]\nHCCL_BUFFSIZE = 200\n", ["exports for bash"]),
    "vLLM": ("[vllm]\ntensor-parallel-size = 4\n", ["vllm", "env.sh"]),
    "a conversion": (
        'profile.scenario = "offline-inference"\n[options]\nop_debug_level = 1\n',
        ["atc"],
    ),
    "an estimator": (
        '[options]\nhccl_timeout = 1836\n[estimator]\nmodel_dir = "x"\n',
        ["estimator"],
    ),
}


@pytest.mark.parametrize("title", MAIN)
def test_targets_that_a_preset_is_for_stand_before_folded_ones(
    title: str, store: Callable[..., Path], run: Run, tmp_path: Path
) -> None:
    preset, targets = MAIN[title]
    store({"job": preset})
    run("trust", "profiles")
    assert run("site", "public").code == 0
    text = (tmp_path / "public/presets/job.html").read_text()
    headings = re.findall("<h2[^>]*>([A-Z][a-z]+ ?[a-z]*)", text)
    assert headings[0].strip() == "Settings"
    assert headings.index("Generated code") > headings.index("Findings")
    shown, _, folded = text.partition('<details class="others">')
    assert re.findall("<summary>([^<,]*)[^<]*</summary><div>", shown) == targets
    assert "<summary>json</summary>" in folded


#: The files that a page loads at once.
LOADED = re.compile(r'<(?:script src|link rel="stylesheet" href|img src)="([^"]+)"')


def measure_first_views(folder: Path) -> dict[str, int]:
    """Return how many bytes each page loads at once: itself, its style and its scripts."""
    sizes = {}
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        files = [path, *(path.parent / name for name in LOADED.findall(text))]
        sizes[str(path.relative_to(folder))] = sum(file.stat().st_size for file in files)
    return sizes


def test_the_first_view_of_each_page_is_at_most_300_kilobytes(
    store: Callable[..., Path], run: Run, tmp_path: Path
) -> None:
    presets = {"base": "profile.scenario = 'training'\n[options]\nhccl_timeout = 1836\n"}
    presets |= {f"mixin{number}": f"[options]\nop_wait_timeout = {number}\n" for number in range(9)}
    for number in range(990):
        presets[f"team-{number % 7}/experiment-{number}"] = (
            f'[profile]\nextends = ["base", "mixin{number % 9}"]\nowner = "team-{number % 7}"\n'
            f'description = "Use it for job {number} of the nightly training, on one server with '
            f'eight devices."\ncann = ">=9.0"\nproducts = ["atlas-a2", "atlas-a3"]\n'
            f'[options]\ninput_fusion_size = {number}\n[env]\nJOB_NAME = "job-{number}"\n'
        )
    store(presets)
    assert run("site", "public").code == 0
    assert run("site", "own", "--store", REPOSITORY / "profiles").code == 0
    for folder in ("public", "own"):
        sizes = measure_first_views(tmp_path / folder)
        assert len(sizes) > 90
        assert {path: size for path, size in sizes.items() if size > 300_000} == {}


def test_defaults_say_where_they_hold() -> None:
    from npuprof.site.catalogue import list_catalogue_rows

    defaults = {row.key: row.default for row in list_catalogue_rows()}
    assert defaults["hccl_timeout"] == "1836"
    assert defaults["hcom_parallel"] == "true since 6.0.RC1"
    assert defaults["precision_mode_v2"] == '"origin" in training, "fp16" in inference'
    assert defaults["precision_mode"].endswith('"allow_fp32_to_fp16" on atlas-training')
    assert defaults["op_compiler_cache_dir"] == ""


def test_lines_to_some_names_of_a_box_end_at_these_names() -> None:
    parents = {"base": [], "mix": [], "a": ["base"], "b": ["base", "mix"], "c": ["base", "mix"]}
    family = draw_family(parents)
    lines = {(line.parent, line.second): line.path for line in family.lines}
    assert lines["base", False].count("M") == 1
    assert lines["mix", True].count("M") == 2
    box = next(box for box in family.boxes if "b" in box.names)
    ends = [int(end.split()[-1]) for end in lines["mix", True].split("M")[1:]]
    assert ends == [box.place_name(index)[1] - 4 for index in (1, 2)]


def test_versions_stand_newest_first_and_say_which_were_yanked_and_why(
    repo: Repo, run: Run
) -> None:
    for version in ("1.9.0", "1.10.0", "2.0.0"):
        repo.commit({"job": f"# {version}\n[options]\nhccl_timeout = 600\n"})
        repo.release("job", version)
    repo.git("tag", "job/v3.0.0")  # no annotated tag, and so no version
    assert run("yank", "job@1.10.0", "--why", "<b>hangs</b>").code == 0
    for folder in ("public", "again"):
        assert run("site", folder).code == 0
    text = Page(repo.folder / "public/presets/job.html").text
    assert (
        "versions 2.0.0 2026-01-04 1.10.0 2026-01-03 , yanked: <b>hangs</b> 1.9.0 2026-01-02"
        in text
    )
    before = read_files(repo.folder / "public")
    assert run("yank", "job@2.0.0", "--why", "slow").code == 0
    assert run("site", "public").code == 0
    assert {
        path
        for path, content in read_files(repo.folder / "public").items()
        if content != before[path]
    } == {"presets/job.html"}


@pytest.mark.parametrize("title", TOLD)
def test_the_page_of_a_preset_tells(
    title: str, store: Callable[..., Path], run: Run, tmp_path: Path
) -> None:
    presets, messages = TOLD[title]
    store(presets)
    run("trust", "profiles")  # presets with faults in them cannot be trusted
    assert run("site", "public").code == 0
    text = Page(tmp_path / "public/presets/job.html").text
    assert messages
    for message in messages:
        assert (message[1:] not in text) if message.startswith("!") else (message in text), (
            message,
            text,
        )


def test_a_platform_on_which_a_preset_cannot_be_resolved_is_an_error_in_its_own_column(
    store: Callable[..., Path],
) -> None:
    append = (
        '[[override]]\nmatch = { product = "atlas-a3" }\n'
        "append = { options = { hccl_timeout = [1] } }\n"
    )
    home = spec.Workspace(
        str(store({"job": f'profile.scenario = "training"\noptions.hccl_timeout = 1904\n{append}'}))
    )
    matrix = build_matrices({"job": judge_everywhere(home.resolve_spec("job"), ())})[1]
    (row,) = matrix.rows
    assert [
        column
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        if cell.errors and not cell.codes
    ] == ["atlas-a3"]


def test_a_folder_may_be_reached_through_a_link(
    store: Callable[..., Path], run: Run, tmp_path: Path
) -> None:
    store(PRESETS)
    (tmp_path / "there").mkdir()
    (tmp_path / "public").symlink_to("there")
    assert run("site", "public").code == 0
    assert (tmp_path / "there/index.html").is_file()


OWNERS = [
    (None, "", "!owner"),
    ("* @org/all\n", "", "owner @org/all"),
    ("* @org/all\n/profiles/job.toml @nlp @me\n", "", "owner @nlp, @me"),
    ("/profiles/ @nlp\n", 'profile.owner = "team-a"\n', "owner team-a, @nlp"),
    ("/elsewhere/ @nlp\n", 'profile.owner = "team-a"\n', "owner team-a file"),
]


@pytest.mark.parametrize(("rules", "preset", "message"), OWNERS)
def test_owners_are_those_of_the_preset_and_of_codeowners(
    repo: Repo, run: Run, rules: str | None, preset: str, message: str
) -> None:
    if rules is not None:
        (repo.folder / "CODEOWNERS").write_text(rules)
    repo.commit({"job": f"{preset}[options]\nhccl_timeout = 1836\n"})
    assert run("site", "public").code == 0
    text = Page(repo.folder / "public/presets/job.html").text
    assert (message[1:] not in text) if message.startswith("!") else (message in text), text


def test_every_link_of_every_page_leads_to_a_file_and_a_place_in_it(site: Path) -> None:
    shown = {path: Page(path) for path in site.rglob("*.html")}
    targets = [
        (path, link, Path(os.path.normpath(path.parent / file)) if file else path, place)
        for path, page in shown.items()
        for link in page.links
        if path.parent.name != "docs" or not link.startswith("https://")
        for file, _, place in [link.partition("#")]
    ]
    lost = [(path, link) for path, link, target, _ in targets if not target.is_file()]
    placed = [
        (path, link, place in shown[target].ids)
        for path, link, target, place in targets
        if place and (target.name == "rules.html" or target.parent.name in ("catalogue", "docs"))
    ]
    assert lost == []
    assert [row for row in placed if not row[2]] == []
    assert {target.parent.name for _, _, target, _ in targets} >= {"presets", "docs"}
    assert len(placed) > len(shown)


def test_a_setting_links_to_its_place_in_the_catalogue_if_there_is_one(
    repo: Repo, run: Run
) -> None:
    repo.commit({"job": "[torch_npu]\nmatmul.allow_hf32 = false\n[env]\nMY_OWN = 1\n"})
    assert run("site", "public").code == 0
    links = Page(repo.folder / "public/presets/job.html").links
    record = "torch_npu.matmul.allow_hf32"
    assert f"../catalogue/settings-torch_npu.html#{record}" in links
    assert record in Page(repo.folder / "public/catalogue/settings-torch_npu.html").ids
    assert not [link for link in links if "MY_OWN" in link]


def test_no_two_regions_of_a_page_have_one_name(repo: Repo, run: Run) -> None:
    override = '[[override]]\nmatch = { product = "atlas-a3" }\noptions = { hccl_timeout = 1 }\n'
    repo.commit({**PRESETS, "job": PRESETS["job"] + override})
    (repo.folder / "train.py").write_text('custom_op.parameter_map["op_debug_level"].i = 1\n')
    assert run("site", "public", "--scripts", "train.py").code == 0
    cases = [*(repo.folder / "public").rglob("*.html")]
    assert cases
    for path in cases:
        text = path.read_text()
        regions = re.findall(r'role="region" aria-label="([^"]*)"', text)
        regions += [
            html.escape(re.search(rf'id="{heading}">([^<]*)', text)[1])
            for heading in re.findall(r'<section aria-labelledby="([^"]*)"', text)
        ]
        assert len(set(regions)) == len(regions), (path, regions)


def test_the_catalogue_says_how_many_presets_have_each_setting_in_force(
    repo: Repo, run: Run
) -> None:
    mixlist = 'modify_mixlist = { black-list = { to-add = ["Add"], to-remove = ["Mul"] } }\n'
    repo.commit({**PRESETS, "mix": f"[options]\n{mixlist}[env]\nHCCL_ALGO = 'x'\n"})
    assert run("site", "public").code == 0
    pages = (repo.folder / "public").glob("catalogue/*.html")
    rows = [row for page in pages for row in page.read_text().split("<tr id=")[1:]]
    counts = {row.split('"')[1]: re.search(r">in (\d+) preset", row) for row in rows}
    shown = {key: int(found[1]) for key, found in counts.items() if found}
    assert shown == {
        "hccl_timeout": 3,
        "precision_mode": 1,
        "precision_mode_v2": 2,
        "modify_mixlist": 1,
        "env.HCCL_ALGO": 1,
    }


def test_the_documentation_is_part_of_a_site(site: Path) -> None:
    from npuprof.docs import load_topics

    topics = load_topics()
    listed = Page(site / "docs/index.html")
    assert [
        link
        for link in listed.links
        if f"{link}".startswith("../docs/") and link != "../docs/index.html"
    ] == [f"../docs/{topic.name}.html" for topic in topics]
    assert topics
    for topic in topics:
        text = (site / f"docs/{topic.name}.html").read_text(encoding="utf-8")
        assert f"<h1>{topic.title}</h1>" in html.unescape(text)
        assert "style=" not in text
        assert "<!--" not in text.removeprefix("<!DOCTYPE html>")
    assert (site / "docs/sources.svg").is_file()


@pytest.mark.parametrize(
    ("written", "html"),
    [
        pytest.param("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>", id="a tag"),
        pytest.param("## It's a test", '<h2 id="its-a-test">It\'s a test</h2>', id="a heading"),
        pytest.param(
            "see [it](two.md#x)",
            '<p>see <a href="two.html#x">it</a></p>',
            id="a link with an anchor",
        ),
        pytest.param(
            "see [it](guides/three.md)",
            '<p>see <a href="three.html">it</a></p>',
            id="a link into a folder",
        ),
        pytest.param(
            "[it](javascript:alert(1))",
            "<p>[it](javascript:alert(1))</p>",
            id="a link that runs script",
        ),
        pytest.param(
            "```sh\na <b>\n```",
            '<pre tabindex="0"><code>a &lt;b&gt;\n</code></pre>',
            id="a block of code",
        ),
        pytest.param(
            "| a | b |\n|---|---:|\n| c | 1 |",
            '<div class="wide" role="region" aria-label="One, table" tabindex="0"><table>\n'
            '<thead>\n<tr>\n<th scope="col">a</th>\n'
            '<th class="number" scope="col">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>c</td>\n'
            '<td class="number">1</td>\n</tr>\n'
            "</tbody>\n</table></div>",
            id="a table",
        ),
        pytest.param(
            "| | b |\n|---|---|",
            '<div class="wide" role="region" aria-label="One, table" tabindex="0"><table>\n'
            "<thead>\n<tr>\n<td></td>\n"
            '<th scope="col">b</th>\n</tr>\n</thead>\n</table></div>',
            id="a table without rows",
        ),
    ],
)
def test_markdown_becomes_markup_that_the_policy_takes(written: str, html: str) -> None:
    from npuprof.docs import Topic
    from npuprof.site.manual import build_topic_pages

    topics = [
        Topic("one", "one.md", "One", "What.", f"# One\n\n{written}\n", 1, "start"),
        Topic("two", "two.md", "Two", "What.", "# Two\n", 2, "start"),
        Topic("three", "guides/three.md", "Three", "What.", "# Three\n", 3, "start"),
    ]
    assert next(iter(build_topic_pages(topics))).html == f"{html}\n"


def test_the_same_presets_give_the_same_bytes_and_a_second_run_writes_nothing(
    site: Path, run: Run, repo: Repo
) -> None:
    before = {name: (site / name).stat().st_mtime_ns for name in read_files(site)}
    assert " 0 written, 0 removed" in run("site", "public").err
    assert {name: (site / name).stat().st_mtime_ns for name in read_files(site)} == before
    assert run("site", "again").code == 0
    assert read_files(repo.folder / "again") == read_files(site)


def test_presets_whose_names_are_those_of_pages_and_differ_in_case_only_have_pages_side_by_side(
    store: Callable[..., Path], run: Run, tmp_path: Path
) -> None:
    names = ["a", "a.html/b", "a.HTML/b", "A", "a.html/b.html/c", "index", "x.y..z"]
    store(
        {name: f'profile.description = "this is {number}"\n' for number, name in enumerate(names)}
    )
    assert run("site", "public").code == 0
    for number in range(len(names)):
        found = [
            path
            for path in (tmp_path / "public/presets").rglob("*.html")
            if f"this is {number}" in path.read_text()
        ]
        assert len(found) == 1, names[number]
    files = [str(path) for path in (tmp_path / "public").rglob("*") if path.is_file()]
    assert len({path.lower() for path in files}) == len(files)
    (tmp_path / "profiles/a.toml").unlink()
    assert run("site", "public").code == 0


def test_pages_are_not_waited_for_and_what_a_crash_left_of_them_is_made_again(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: waited.append(handle) or fsync(handle))
    repo.commit(PRESETS)
    assert run("site", "public").code == 0
    assert len(waited) == 1  # the list of what is ours
    before = read_files(repo.folder / "public")
    for name in ("index.html", "presets/job.html", "data/search.js"):
        (repo.folder / "public" / name).write_bytes(b"")
    assert run("site", "public").code == 0
    assert read_files(repo.folder / "public") == before


def test_a_page_goes_with_its_preset_unless_git_tracks_it(site: Path, run: Run, repo: Repo) -> None:
    (repo.folder / "profiles/broken.toml").unlink()
    assert run("site", "public").code == 0
    assert not (site / "presets/broken.html").exists()
    repo.git("add", "-f", "public")
    (repo.folder / "profiles/job.toml").unlink()
    assert run("site", "public").code == 0
    assert (site / "presets/job.html").exists()


@pytest.mark.parametrize(
    "mark",
    [None, "{", '{"schema": "other"}', '{"schema": "npuprof.site/1", "files": ["../job.toml"]}'],
)
def test_a_folder_that_holds_something_else_is_refused(
    repo: Repo, run: Run, mark: str | None
) -> None:
    repo.commit(PRESETS)
    folder = repo.folder / "docs"
    folder.mkdir()
    (folder / "index.html").write_text("somebody's")
    if mark is not None:
        (folder / ".npuprof-site.json").write_text(mark)
    result = run("site", "docs")
    assert result.code == 2
    assert "NP980" in result.err
    assert (folder / "index.html").read_text() == "somebody's"


def test_no_page_names_a_folder_of_this_machine(site: Path, run: Run, repo: Repo) -> None:
    assert run("site", repo.folder / "whole", "--store", repo.folder / "profiles").code == 0
    there = read_files(repo.folder / "whole")
    assert not [name for name, content in there.items() if str(repo.folder).encode() in content]
    assert there == read_files(site)


def test_a_store_outside_of_git_has_pages_without_a_history(
    store: Callable[..., Path], run: Run, tmp_path: Path
) -> None:
    store(PRESETS)
    assert run("site", "public").code == 0
    assert "History" not in Page(tmp_path / "public/presets/job.html").text


def test_what_scripts_read_is_one_line_of_json_in_a_call(site: Path) -> None:
    texts = [path.read_text() for path in (site / "data").glob("*.js")]
    assert len(texts) > 1
    for text in texts:
        assert text.isascii() is True
        assert text.startswith("npuprof.")
        assert text.count("\n") == 1
        assert json.loads(f"[{text.partition('(')[2].rpartition(')')[0]}]")


CHAINS = [
    ({}, 0, 0),
    ({"a": []}, 1, 0),
    ({"a": [], "b": ["a"]}, 2, 1),
    ({"a": [], "b": ["a"], "c": ["a"]}, 2, 1),
    ({"a": [], "b": ["a"], "c": ["b"]}, 3, 2),
    ({"a": ["b"], "b": ["a"]}, 1, 0),  # what extends itself is without lines
    ({"a": ["gone"]}, 2, 1),
    ({"a": [], "b": ["a", "a"]}, 2, 1),
]


@pytest.mark.parametrize(("parents", "boxes", "lines"), CHAINS)
def test_presets_that_extend_the_same_share_a_box(
    parents: dict[str, list[str]], boxes: int, lines: int
) -> None:
    family = draw_family(parents)
    assert len(family.boxes) == boxes
    assert len(family.lines) == lines


def test_no_two_boxes_overlap_and_parents_stand_to_the_left() -> None:
    parents = {f"base{number}": [f"base{number // 3}"] if number else [] for number in range(40)}
    parents |= {
        f"leaf{number}": [f"base{number % 40}", f"base{number % 7}"] for number in range(260)
    }
    family = draw_family(parents)
    home = {name: box for box in family.boxes for name in box.names}
    assert set(home) == set(parents)
    assert family.boxes
    for place, left in enumerate(family.boxes):
        for right in family.boxes[place + 1 :]:
            apart = (
                left.x + left.width <= right.x
                or right.x + right.width <= left.x
                or left.y + left.height <= right.y
                or right.y + right.height <= left.y
            )
            assert apart, (left, right)
    assert all(
        home[above].x < home[name].x
        for name, those in parents.items()
        for above in those
        if above != name
    )
