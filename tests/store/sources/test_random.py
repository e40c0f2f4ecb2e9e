"""Random histories used through a source, and through a source of a source, against a second resolver: locked, late, fresh, offline."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof.store.sources.mirror import find_cache_folder
from support.lanes import more_at_night
from support.released import NAMES, BrokenError, Grower, Model, Tree
from support.repositories import ENVIRONMENT, Repo
from support.running import Run, expect
from support.teams import BASE, Team

SEEDS = range(int(os.environ.get("NPUPROF_SEEDS", "3")))


class Broken(str):
    """That a preset does not resolve, and why."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    __hash__ = str.__hash__


def resolve(store: Any, spec: str) -> Any:
    try:
        return dict(store.resolve(spec).settings)
    except npuprof.NpuprofError as error:
        return Broken(str(error))


def settle(model: Model, tree: Tree) -> list[Tree]:
    """Return a tree of a source and its ancestors, the strongest first: two versions that say the same are one, others are broken."""
    parents = list(tree[2][::-1])
    if len(set(parents)) < len(parents):
        raise BrokenError(tree[0])
    order, todo = [tree], [*(settle(model, parent) for parent in parents), parents]
    while todo := [line for line in todo if line]:
        head = next((line[0] for line in todo if not any(line[0] in other[1:] for other in todo)), None)
        if head is None:
            raise BrokenError(tree[0])
        order.append(head)
        todo = [other[1:] if other[0] == head else other for other in todo]
    first: dict[str, Tree] = {}
    kept: list[Tree] = []
    for member in reversed(order):
        other = first.setdefault(member[0], member)
        if other == member or member == tree:
            kept.append(member)
            continue
        below = [settle(model, one) for one in (other, member)]
        if other in below[1]:
            kept.append(member)
        elif [model.presets[one[1]][one[0]] for one in below[0]] != [model.presets[one[1]][one[0]] for one in below[1]]:
            raise BrokenError(tree[0])
    return kept[::-1]


def predict(model: Model, reference: str, commit: str) -> Any:
    """Return what a reference to a source means at a commit of its model."""
    name, at, version = reference.partition("@")
    try:
        if not at:
            tree = model.tree(name, commit)
        else:
            wanted = tuple(map(int, version.split(".")))
            number = wanted if len(wanted) == 3 else model.newest(name, wanted, commit)
            made = model.releases.get((name, number)) if number else None
            if made is None or made.commit not in model.behind(commit):
                return "broken"
            tree = made.tree
        found: dict[str, int] = {}
        for name, there, _ in reversed(settle(model, tree)):
            found.update(dict(model.presets[there][name][1]))
    except BrokenError:
        return "broken"
    return found


@contextmanager
def offline(*teams: Team) -> Iterator[None]:
    for team in teams:
        shutil.move(team.bare, f"{team.bare}.gone")
    yield
    for team in teams:
        shutil.move(f"{team.bare}.gone", team.bare)


def list_references(model: Model) -> list[str]:
    numbers = [(name, number) for name, number in sorted(model.releases)]
    exact = [f"{name}@{'.'.join(map(str, number))}" for name, number in numbers]
    return [*NAMES, *exact, *dict.fromkeys(f"{name}@{'.'.join(map(str, number[:place]))}" for name, number in numbers for place in (1, 2))]


def compare(expected: dict[str, Any], prefix: str) -> None:
    """Compare what is read through sources with what the model says, by the library in the current folder."""
    store = npuprof.open_store()
    for reference, settings in expected.items():
        assert resolve(store, f"{prefix}{reference}") == settings, (prefix, reference)


@pytest.mark.parametrize("seed", more_at_night(SEEDS[:1], SEEDS[1:]))
def test_what_a_source_gives_is_what_a_second_resolver_says_and_stays_so_until_an_update(
    seed: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    dice = random.Random(900 + seed)
    (tmp_path / "deep").mkdir()
    team, hub = Team(tmp_path), Team(tmp_path / "deep")
    monkeypatch.chdir(team.repo.folder)
    grown = Grower(team.repo, run, dice)
    for _ in range(30):
        grown.step()
    model = grown.model

    def choose_commit(number: int, kept: Collection[str] = ()) -> str:
        """Give the store a version at a random commit, where one is, at one that has some references."""
        commits = list(model.parents)[-12:]
        commit = dice.choice([one for one in commits if all(predict(model, name, one) != "broken" for name in kept)] or commits)
        team.repo.git("tag", "-a", f"v1.{number}.0", "-m", "x", commit)
        team.repo.git("push", "-q", "-f", str(team.bare), "--all")
        team.repo.git("push", "-q", "-f", str(team.bare), "--tags")
        return commit

    commit = choose_commit(0)
    expected = {reference: predict(model, reference, commit) for reference in list_references(model)}
    wanted = [reference for reference, settings in expected.items() if settings != "broken"]
    assert len(wanted) > 5
    presets = {f"p{place}": f'profile.extends = ["team:{reference}"]\n' for place, reference in enumerate(wanted)}
    through = {f"p{place}": expected[reference] for place, reference in enumerate(wanted)}
    hub.repo.write(presets)
    monkeypatch.chdir(hub.repo.folder)
    assert run("source", "add", "team", team.url).code == 0
    hub.publish({}, "1.0.0", *(f"{name}/v1.0.0" for name in list(presets)[:3]))
    app = Repo(tmp_path / "app")
    app.write({**presets, **{f"h{name}": f'profile.extends = ["hub:{name}"]\n' for name in presets}})
    app.write({f"r{name}": f'profile.extends = ["hub:{name}@1.0.0"]\n' for name in list(presets)[:3]})
    monkeypatch.chdir(app.folder)
    for name, url in (("team", team.url), ("hub", hub.url)):
        assert run("source", "add", name, url).code == 0
    app.commit()
    nested = {f"h{name}": settings for name, settings in through.items()}
    released = {f"r{name}": settings for name, settings in list(through.items())[:3]}

    def compare_all() -> None:
        compare(expected, "team:")
        compare(expected, "hub/team:")
        compare(through, "hub:")
        compare({**through, **nested, **released}, "")

    compare_all()
    monkeypatch.chdir(team.repo.folder)
    for _ in range(12):  # what is released now at old commits is not in the lock
        grown.step()
    now = choose_commit(1, [reference for reference in wanted if "@" in reference])
    monkeypatch.chdir(app.folder)
    locked = {key: value for key, value in expected.items() if "." in key or "@" not in key}  # a range typed in is today's
    for forget in (False, True):
        if forget:
            shutil.rmtree(find_cache_folder())
            assert run("source", "sync").code == 0
        with offline(team, hub):
            compare({key: value for key, value in locked.items() if value != "broken"}, "team:")
            compare({**through, **nested, **released}, "")
            compare(through, "hub:")
    update = run("source", "update", "team", "--yes")
    assert update.code == 0 or seed, update  # what is not there any more at random is an error
    if update.code == 0:
        later = {name: predict(model, reference, now) for name, reference in zip(through, wanted, strict=True)}
        compare({**later, **nested, **released}, "")
        compare({reference: predict(model, reference, now) for reference in list_references(model)}, "team:")


# What is hard to come by at random


@pytest.mark.parametrize("asked", more_at_night(["own", "base@1.0"], ["range", "base@1.0.0"]))
def test_sync_fetches_the_sources_that_only_an_older_release_names(
    asked: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    teams = [Team(tmp_path / name) for name in ("deep", "old", "hub") if not (tmp_path / name).mkdir()]
    deep, old, hub = teams
    deep.publish({"dust": BASE.format(70)}, "", "dust/v1.0.0")
    deep.publish({"dust": BASE.format(80)}, "1.0.0")
    monkeypatch.chdir(old.repo.folder)
    assert run("source", "add", "deep", deep.url).code == 0
    old.publish({"sand": 'profile.extends = ["deep:dust@1.0.0"]\n'}, "", "sand/v1.0.0")
    assert run("source", "remove", "deep", "--force").code == 0
    old.publish({"sand": BASE.format(90)}, "1.0.0")
    monkeypatch.chdir(hub.repo.folder)
    assert run("source", "add", "old", old.url).code == 0
    hub.publish({"base": 'profile.extends = ["old:sand@1.0.0"]\n'}, "", "base/v1.0.0")
    assert run("source", "remove", "old", "--force").code == 0
    hub.publish({"base": BASE.format(5), "own": 'profile.extends = ["base@1.0.0"]\n', "range": 'profile.extends = ["base@1"]\n'}, "1.0.0")
    app = Repo(tmp_path / "app")
    app.write({"job": f'profile.extends = ["hub:{asked}"]\n'})
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "hub", hub.url).code == 0
    shown = run("show", "job").out
    assert "hccl_timeout = 70" in shown
    shutil.rmtree(find_cache_folder())
    done = run("source", "sync")
    assert (done.code, done.err) == (0, "npuprof: fetched hub 1.0.0, hub/old 1.0.0, hub/old/deep 1.0.0\n")
    with offline(*teams):
        assert run("show", "job").out == shown
        assert run("check").code == 0
        assert run("source", "vendor", "hub").code == 0
        shutil.rmtree(find_cache_folder())
        done = run("show", "job")
        assert (done.code, done.out) == (0, shown), done.err


def test_a_source_may_build_on_what_was_released_elsewhere_and_its_users_may_not(app: Repo, team: Team, run: Run) -> None:
    team.repo.git("checkout", "-q", "-b", "old-line")
    team.publish({"base": BASE.format(444)}, "", "base/v0.9.9")
    team.repo.git("checkout", "-q", "main")
    team.publish({"back": 'profile.extends = ["base@0.9.9"]\n'}, "1.1.0")
    app.write({"job": 'profile.extends = ["team:back"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert "444" in run("show", "job").out
    for forget in (False, True):
        if forget:
            shutil.rmtree(find_cache_folder())
            assert run("source", "sync").code == 0
        assert "444" in run("show", "job").out
        expect(run("show", "team:base@0.9.9"), 2, "NP047")


def test_a_range_in_a_source_is_locked_and_a_late_release_is_told_by_update_log_and_release(app: Repo, team: Team, run: Run) -> None:
    late = team.publish({"base": BASE.format(650)})
    team.publish({"mid": 'profile.extends = ["base@1"]\n', "top": 'profile.extends = ["mid"]\n', "base": BASE.format(700)}, "1.1.0")
    app.write({"job": 'profile.extends = ["team:top"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert run("commit").code == 0
    assert run("release", "job", "1.0.0").code == 0
    team.repo.git("tag", "-a", "base/v1.0.1", "-m", "late", late)
    team.push()
    before = run("show", "job").out
    assert run("source", "sync").code == 0
    shutil.rmtree(find_cache_folder())
    assert run("source", "sync").code == 0
    assert run("show", "job").out == before, "what the lock says is what it was"
    expect(run("source", "update", "--yes"), 0, "team:base@1: 1.0.0 ")
    assert run("commit").code == 0
    changes = json.loads(run("log", "job", "hccl_timeout", "--format", "json").out)["commits"]
    assert len(changes) == 2, "the commit of the lock, and the first"
    expect(run("release", "job", "--dry-run"), 0, "600 → 650")
