"""Pages of stores with hostile texts, read by a parser and opened in Chromium, run nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support import hostile
from support.browsing import CHROMIUM
from support.building import REPOSITORY, build_store
from support.lanes import rest_at_night
from support.logged import write_run
from support.repositories import Repo
from support.running import Run

pytest.importorskip("playwright.sync_api")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site whose presets, other files and commits have hostile texts."""
    from npuprof.__main__ import main
    from npuprof.document.keys import format_key_segment, format_toml_value

    folder = tmp_path_factory.mktemp("hostile")
    presets = {
        "root": "[options]\nhccl_timeout = 1836\n",
        "syntax": f"[profile\n{hostile.TEXTS[0]}\n",
    }
    for number, text in enumerate(hostile.TEXTS):
        value, key, comment = (
            format_toml_value(text),
            format_key_segment(text),
            "".join(filter(str.isprintable, text)),
        )
        presets[f"h{number}"] = (
            f'# {comment}\n[profile]\nextends = ["root"]\n'
            f"description = {value}\nowner = {value}\ndeprecated = {value}\n"
            f"[options]\nop_debug_config = {value}\n"
            f"dump_path = {value} # {comment}\n{key} = {value}\n"
            f"[options.modify_mixlist.black-list]\nto-add = [{value}]\n"
            f"[env]\nX = {value}\nLD_PRELOAD = {value}\n"
            "[[override]]\nmatch = { product = 'atlas-a3' }\n"
            f"options = {{ dump_path = 'x', {key} = 1 }}\n"
        )
        presets[f"b{number}"] = f"[profile]\nextends = [{value}, 'root']\ndescription = {value}\n"
    build_store(folder / "profiles", presets)
    (folder / "CODEOWNERS").write_text(
        "".join(
            f"/profiles/h{number}.toml @{''.join(text.split())[:60]}\n"
            for number, text in enumerate(hostile.TEXTS)
        )
    )
    reason = format_toml_value(hostile.TEXTS[0])
    (folder / "npuprof.toml").write_text(
        f'[[ignore]]\ncode = "NP505"\npresets = ["*"]\nreason = {reason}\n'
        f'[[rule]]\ncode = "TEAM-1"\nrequire = "deterministic == 1"\nmessage = {reason}\n'
    )
    repo = Repo(folder)
    for number, text in enumerate(hostile.TEXTS[:12]):
        author = "".join(char for char in text if char not in "<>\n") or "nobody"
        (folder / "profiles/root.toml").write_text(
            f"# {number}\n[options]\nhccl_timeout = {1836 + number}\n"
        )
        repo.git("add", "-A")
        repo.git(
            "-c",
            f"user.name={author}",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            text,
            f"--author={author} <a@b>",
        )
    assert main(["site", str(folder / "public"), "--store", str(folder / "profiles")]) == 0
    return folder / "public"


@pytest.mark.parametrize("third", rest_at_night(3, range(3)))
def test_pages_of_a_store_where_all_is_hostile_run_nothing_ask_for_nothing_and_show_it(
    browser: Any, hostile_site: Path, third: int
) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    context.add_init_script(
        "document.addEventListener('securitypolicyviolation', "
        "(event) => console.error('policy', event.blockedURI))"
    )
    page = context.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(f"{page.url} {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"{page.url} {error}"))
    page.on("dialog", lambda dialog: messages.append(f"{page.url} {dialog.message}"))
    page.on(
        "request",
        lambda request: (
            messages.append(request.url)
            if not request.url.startswith(f"file://{hostile_site}/")
            else None
        ),
    )
    presets = [
        f"presets/{kind}{number}.html"
        for number in range(len(hostile.TEXTS))
        for kind in "hb"
        if kind == "h" or not number % 4
    ]
    lists = [
        "index.html",
        "compatibility.html",
        "rules.html",
        "catalogue.html",
        "family.html",
        "family.html#b0",
        "compare.html#" + "&".join(f"h{n}" for n in range(8)),
    ]
    searched = ("search.html", "index.html", "family.html#x", "compare.html")
    searches = [
        f"{searched[number % 4]}#q={quote(text, safe='')}"
        for number, text in enumerate(hostile.TEXTS[:24])
    ]
    plain = {
        number: text
        for number, text in enumerate(hostile.TEXTS)
        if text.isprintable() and text == " ".join(text.split())
    }
    shown = {f"presets/h{number}.html": text for number, text in plain.items()}
    assert len(shown) > 20
    for path in [*presets, *lists, *searches, "search.html#q=dump"][third::3]:
        if page.url.partition("#")[0].endswith(path.partition("#")[0]):
            page.goto("about:blank")  # of a page that is open only another part would be shown
        page.goto(f"file://{hostile_site}/{path}")
        page.evaluate("new Promise((done) => setTimeout(done, 20))")
        assert page.title().endswith(" · npuprof"), path
        assert (
            page.locator(
                "img, iframe, object, base, form[action], "
                "main script:not([src]), [onerror], [onload]"
            ).count()
            == 0
        ), path
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        if path in shown:
            assert shown[path] in page.locator("main p").first.text_content()
    assert messages == []
    context.close()


#: What stays as it is in a record, for that to be one.
_KEPT = (
    "schema",
    "npuprof",
    "by",
    "state",
    "digest",
    "preset_digest",
    "layer",
    "commit",
    "start",
    "end",
)


def put_text(value: Any, text: str, key: str = "") -> Any:
    """Return what a record holds with a text in place of all that somebody may have written."""
    if isinstance(value, dict):
        return {name: put_text(item, text, name) for name, item in value.items()}
    if isinstance(value, list):
        return [put_text(item, text, key) for item in value]
    return text if isinstance(value, str) and key not in _KEPT else value


def name_file(text: str, number: int) -> str:
    return f"{number}{''.join(char for char in text if char.isprintable() and char != '/')[:40]}"


def test_what_records_logs_scripts_and_versions_say_is_shown_and_never_run(
    browser: Any, run: Run, repo: Repo, monkeypatch: Any
) -> None:
    repo.commit({"job": "[options]\nhccl_timeout = 600\n"})
    monkeypatch.chdir(repo.folder)
    command = [sys.executable, "-m", "npuprof", "run", "job", "--record", "runs", "--", "true"]
    subprocess.run(
        command, check=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
    )  # it forks
    (record,) = repo.folder.glob("runs/*.run.json")
    record_data, scripts = json.loads(record.read_text()), repo.folder / "scripts"
    scripts.mkdir()
    arguments: list[str] = ["--scripts", "scripts"]
    texts = [text for text in hostile.TEXTS if text.isprintable()][:10]
    for number, text in enumerate(texts):
        hostile_record = put_text(record_data, text)
        hostile_record["settings"] += [
            {**hostile_record["settings"][0], "key": key}
            for key in ("dump_path", "env.X", "modify_mixlist")
        ]
        name = name_file(text, number)
        (repo.folder / f"runs/{name}.run.json").write_text(json.dumps(hostile_record))
        (repo.folder / f"runs/{name}.log").write_text(
            write_run({"dump_path": text, "ge.exec.dumpPath": text, text: text}, pid=7)
        )
        (scripts / f"{name}.py").write_text(
            f'custom_op.parameter_map["op_debug_level"].i = 1  # {text}\n'
        )
        for spec in (f"runs/{name}.run.json", f"runs/{name}.log"):
            if run("show", spec).code == 0:  # some texts are no key, and their records none
                arguments += ["--also", spec]
    assert len(arguments) > 2 + 2 * len(texts)
    assert run("release", "job", "1.0.0").code == 0
    assert run("yank", "job@1.0.0", "--why", texts[0]).code == 0
    result = run("site", "public", *arguments)
    assert result.code == 0, result.err
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.on(
        "request",
        lambda request: (
            messages.append(request.url)
            if not request.url.startswith(f"file://{repo.folder}/")
            else None
        ),
    )
    sides = [argument for argument in arguments if argument.startswith("runs/")]
    for path in (
        "compare.html#" + "&".join(quote(side, safe="") for side in ["job", *sides]),
        "compatibility.html",
        "presets/job.html",
    ):
        page.goto("about:blank")
        page.goto(f"file://{repo.folder}/public/{path}")
        page.wait_for_timeout(300)
        assert page.title().endswith(" · npuprof"), path
        assert (
            page.locator(
                "img, iframe, object, base, form[action], "
                "main script:not([src]), [onerror], [onload]"
            ).count()
            == 0
        ), path
        if path.startswith("compare"):
            assert page.locator("#compared thead th").count() == 2 + len(sides)
        elif path == "presets/job.html":
            assert f"yanked: {texts[0]}" in page.inner_text("dl")
    assert messages == []
    page.close()
