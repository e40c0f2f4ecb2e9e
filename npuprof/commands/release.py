"""``release``: tag released versions of presets or of the store.

Version numbers are proposed from the changes.
"""

from __future__ import annotations

from operator import attrgetter

from npuprof.commands.framework import Verb, flag, optional_argument
from npuprof.commands.framework.parameters import OUTPUT, STORE, formats
from npuprof.compare import text_changes
from npuprof.history import git_writing, planning, pushing
from npuprof.history.notes import format_release_notes
from npuprof.history.planning import PlannedRelease, ReleasePlan, format_tag_message
from npuprof.history.proposal import propose_version
from npuprof.history.releasing import build_release_record, find_last_release, list_earlier_versions
from npuprof.model import (
    TYPE_CHECKING,
    Fields,
    Finding,
    NpuprofError,
    build_error,
    build_usage_error,
)
from npuprof.report import Answer
from npuprof.report.asking import answer_refusal, confirm_on_terminal
from npuprof.report.text import count_rest, format_count
from npuprof.store.spec import Workspace
from npuprof.store.versions import VersionText, parse_version_request, parse_version_text
from npuprof.store.worktree import list_changed_paths
from npuprof.system import join_lines

if TYPE_CHECKING:
    from npuprof.history.proposal import Proposal
    from npuprof.report import Forms
    from npuprof.resolve.config import Config
    from npuprof.store.gitstore.revisions import Revision, StoreRepository
    from npuprof.store.versions import Version

#: The maximum number of presets in a note.
_SHOWN = 8


class Release(Verb):
    """Release presets as annotated git tags.

    Tags the last commit: NAME/vX.Y.Z for a preset, vX.Y.Z for the store. A tag contains the changes
    since the last release, both digests, and the version of each pinned parent. Several presets are
    tagged together, parents first, or not at all. With --changed or --all, npuprof asks before it
    tags. A+B releases the changed presets of a composition and prints it with versions.
    """

    usage_hint = (
        "npuprof release bert-training proposes the number "
        "itself; npuprof release bert-training 2.0.0 gives it."
    )
    group = "versions"
    prose = True

    spec = optional_argument(
        "NAME", "Preset to release; with --all, the version of the store", "spec"
    )
    version = optional_argument(
        "VERSION", "Version to release [default: proposed from the changes]", "next-version"
    )
    changed = flag("--changed", text="Release all presets that changed since their last release")
    everything = flag(
        "--all", text="Release all changed and unreleased presets, and the store itself"
    )
    uncompared = flag(
        "--uncompared",
        text=(
            "Increase the major version if the last release "
            "cannot be read because its source is gone"
        ),
    )
    dry_run = flag("--dry-run", text="Show the versions and the reasons without tagging")
    yes = flag("--yes", "-y", text="Tag without asking (with --changed or --all)")
    push = flag("--push", text="Push the new tags, and nothing else, to the remote of the branch")
    format = formats("text", "markdown", "json")
    store = STORE
    output = OUTPUT

    def run(self) -> Answer:
        """Tag the last commit as a version of presets; with ``dry_run``, only print the plan.

        Exit 1 if the user declines the plan, 2 if the tags were created but not pushed. Raises
        NpuprofError if a preset has errors or uncommitted changes, if nothing changed, if a tag
        exists, or if a version number decreases.
        """
        if self.spec is None and not (self.changed or self.everything):
            hint = (
                "npuprof release NAME, or --changed, or --all "
                "for the store and all that is new in it"
            )
            raise build_usage_error("release names no preset", hint)
        workspace = Workspace(self.store)
        repository = workspace.store.repository
        if self.changed or self.everything or self.spec is None:
            return self._release_many(workspace, repository)
        if self.yes:
            raise build_usage_error(
                "--yes belongs to --changed and --all",
                "omit it: a single preset is released without a prompt",
            )
        if "+" in self.spec and self.version is None:
            return self._release_many(workspace, repository, self.spec)
        plan = self._plan_one(workspace, repository, self.spec)
        planned = plan.releases[0]
        proposal = planned.proposal
        notes = _list_uncompared(plan)
        if self.dry_run:
            return Answer(
                self._build_forms(plan, _format_dry_run(planned, plan.commit)), early_notes=notes
            )
        if (
            not notes
            and proposal.step in ("major", "minor")
            and planned.number.number < proposal.number
        ):
            notes = (
                (
                    f"the changes ask for {VersionText(proposal.number)} "
                    f"({proposal.step}): {proposal.reasons[0]}"
                ),
            )
        if self.push:
            pushing.find_remote(repository)  # fails before the tag is created
        git_writing.create_tags(repository, plan.commit, {planned.tag: format_tag_message(planned)})
        return self._answer_tagged(repository, plan, f"{planned.tag}\n", notes)

    def _plan_one(
        self, workspace: Workspace, repository: StoreRepository, spec: str
    ) -> ReleasePlan:
        """Return the plan for one preset. Raises NpuprofError."""
        requested = _parse_number(self.version) if self.version is not None else None
        name, revision = workspace.split_single_spec(spec, "release")
        if revision:
            what = f"cannot release {spec!r}"
            hint = f"npuprof release {name} {parse_version_text(revision) or ''}".rstrip()
            raise build_error("NP026", what, "A release is made of the last commit.", hint)
        head = repository.resolve_commit("HEAD")
        committed = repository.load_revision(head)
        if name not in committed.files:
            workspace.profile(name)  # raises an error that names similar presets
            raise NpuprofError(_build_uncommitted_finding(name, [name]))
        config = workspace.resolver.resolve_profile(committed.profile(name), name)
        planning.require_no_errors(planning.list_errors(config))
        # the tag names the commit: an edit that is only in the work tree would be missing
        _require_committed(committed, [config], self.dry_run)
        earlier = list_earlier_versions(repository, {name}, head)[name]
        last = find_last_release(earlier)
        # an explicit number is the way out if the last version cannot be trusted
        if last and requested is None:
            _require_unchanged_release(workspace, last)
        pair, proposal = propose_version(
            workspace, config, last, requested is None, self.uncompared
        )
        number = requested or VersionText(proposal.number)
        _require_free_number(repository, name, number, proposal, earlier)
        # with a number, the user releases the same content on purpose
        if proposal.step == "none" and requested is None:
            number = (
                VersionText((*number.number[:2], number.number[2] + 1))
                if last and number.order <= last.text.order
                else number
            )
            what = f"nothing has changed in {name} since {last.number_text if last else 'ever'}"
            raise build_error(
                "NP026", what, "", f"to release it all the same: npuprof release {name} {number}"
            )
        was = last.number_text if last else ""
        planned = PlannedRelease(
            name, number, was, config, proposal, pair, build_release_record(config)
        )
        return ReleasePlan(head, (planned,))

    def _release_many(
        self, workspace: Workspace, repository: StoreRepository, composition: str = ""
    ) -> Answer:
        if self.changed and self.everything:
            raise build_usage_error(
                "--changed and --all are two ways", "--all also releases changed presets"
            )
        number = None if composition else self._parse_store_number()
        head = repository.resolve_commit("HEAD")
        if composition:
            plan = planning.plan_composition(workspace, head, composition, self.uncompared)
        else:
            plan = planning.plan_releases(workspace, head, self.everything, number, self.uncompared)
        skipped = _describe_skipped(plan)
        configs = [planned.config for planned in plan.releases]
        if plan.composed:  # its unchanged presets, too
            configs = [plan.composed]
        _require_committed(repository.load_revision(head), configs, self.dry_run)
        text = plan.spec and f"{plan.spec}\n"
        if not plan.tags:  # success for jobs that run after every merge
            return Answer(
                self._build_forms(plan, text),
                ("nothing has changed since the last releases", *skipped),
            )
        counted = format_count(len(plan.tags), "tag")
        text = f"{planning.format_plan(plan)}{counted} at {head[:7]}\n{text}"
        answer = Answer(
            self._build_forms(plan, text), tuple(skipped), early_notes=_list_uncompared(plan)
        )
        if self.dry_run:
            return answer
        if not (self.yes or composition) and not confirm_on_terminal(
            answer, "text", "make these tags?"
        ):
            return answer_refusal(answer, "tagged", shown=self.output is None)
        if self.push:
            pushing.find_remote(repository)  # fails before a tag is created
        messages = {planned.tag: planning.format_tag_message(planned) for planned in plan.releases}
        if plan.store:
            messages[plan.store.tag] = planning.format_store_message(plan)
        git_writing.create_tags(repository, head, messages)
        done = self._answer_tagged(repository, plan, text, answer.early_notes)
        return done._replace(notes=(*skipped, *done.notes))

    def _parse_store_number(self) -> VersionText | None:
        """Return the version number for the whole store.

        Raises NpuprofError for surplus arguments.
        """
        if self.spec is None:
            return None
        if self.changed or self.version is not None:
            words = " ".join(word for word in (self.spec, self.version) if word)
            hint = (
                "--all takes a number for the whole store"
                if self.everything
                else "omit it, or name one preset without --changed"
            )
            raise build_usage_error(
                f"{words!r} cannot be combined with --{'all' if self.everything else 'changed'}",
                hint,
            )
        return _parse_number(self.spec)

    def _answer_tagged(
        self, repository: StoreRepository, plan: ReleasePlan, text: str, notes: tuple[str, ...]
    ) -> Answer:
        """Create the tags, and push them if requested."""
        forms = self._build_forms(plan, text)
        if not self.push:
            word = "it" if len(plan.tags) == 1 else "them"
            return Answer(
                forms,
                (f"share {word} with {pushing.write_push_command(repository, plan.tags)}",),
                early_notes=notes,
            )
        return pushing.push_new_tags(repository, forms, plan.tags)._replace(early_notes=notes)

    def _build_forms(self, plan: ReleasePlan, text: str) -> Forms:
        return {
            "text": lambda: text,
            "markdown": lambda: format_release_notes(plan),
            "json": lambda: {
                "schema": "npuprof.release/1",
                "dry_run": self.dry_run,
                **_build_plan_fields(plan),
            },
        }


def _format_dry_run(planned: PlannedRelease, head: str) -> str:
    proposal = planned.proposal
    why = "".join(f"  {reason}\n" for reason in proposal.reasons)
    why += f"  was {proposal.former}\n" if proposal.former else ""
    parents = join_lines(planned.record.parents)
    changes = text_changes.format_pair_text(planned.pair) if planned.pair else ""
    details = (
        f"{proposal.step}: {VersionText(proposal.number)} is next\n"
        f"{why}{changes}digest {planned.config.digest}\n{parents}"
    )
    return f"{planned.tag} at {head[:7]}\n{details}"


def _list_uncompared(plan: ReleasePlan) -> tuple[str, ...]:
    """Return notes on releases whose step size is unknown."""
    return tuple(
        (
            f"{planned.label} was not compared with {planned.was}, so the size of the step is "
            f"unknown: {planned.proposal.unknown}"
        )
        for planned in plan.releases
        if planned.proposal.unknown
    )


def _describe_skipped(plan: ReleasePlan) -> list[str]:
    """Return notes on released presets that are gone, and on presets never released.

    Only a release of the store shows missing presets.
    """
    notes = []
    if names := plan.removed:
        counted = (
            f"{format_count(len(names), 'released preset')} "
            f"{'is' if len(names) == 1 else 'are'} gone"
        )
        notes.append(
            f"{counted}: {count_rest(names, _SHOWN)}; the next "
            "version of the store says so (npuprof release --all)"
        )
    if names := plan.unreleased:
        counted = (
            f"{format_count(len(names), 'preset')} never released "
            f"{'is' if len(names) == 1 else 'are'} omitted"
        )
        notes.append(f"{counted}: {count_rest(names, _SHOWN)}")
    return notes


def _build_plan_fields(plan: ReleasePlan) -> Fields:
    store = plan.store
    return {
        "commit": plan.commit,
        "releases": [
            {
                "name": planned.name,
                "version": str(planned.number),
                "was": planned.was or None,
                "tag": planned.tag,
                "step": planned.proposal.step,
                "reasons": list(planned.proposal.reasons),
                "former": planned.proposal.former or None,
                "follows": list(planned.follows),
                "digest": planned.record.digest,
                "preset_digest": planned.record.preset_digest,
            }
            for planned in plan.releases
        ],
        "store": store
        and {
            "version": str(store.number),
            "was": store.was or None,
            "tag": store.tag,
            "step": store.proposal.step,
            "reasons": list(store.proposal.reasons),
            "removed": list(store.removed),
            "renamed": [{"was": was, "name": name} for was, name in store.renamed],
        },
        "removed": list(plan.removed),
        "unreleased": list(plan.unreleased),
        **({"spec": plan.spec} if plan.spec else {}),
    }


def _parse_number(version: str) -> VersionText:
    number = parse_version_text(version)
    if number is None:
        request = parse_version_request(version)
        suggestion = (
            f"write {'.'.join(map(str, (*request.parts, 0, 0)[:3]))}; "
            if request is not None
            else ""
        )
        hint = (
            f"{suggestion}a version has three numbers: 1.2.0, or 2.0.0-rc.1 before 2.0.0; without "
            "one npuprof proposes the next"
        )
        raise build_error("NP026", f"{version!r} is not a version", "", hint)
    return number


def _require_unchanged_release(workspace: Workspace, last: Version) -> None:
    """Raise NpuprofError if the last version differs from its tag.

    Changes since then are unknown.
    """
    try:
        workspace.lookups.require_unchanged(workspace.store.repository.load_release(last), last)
    except NpuprofError as error:
        hint = f"{error.findings[0].hint}; to release all the same give the number"
        raise NpuprofError(error.findings[0]._replace(hint=hint)) from None


def _require_free_number(
    repository: StoreRepository,
    name: str,
    number: VersionText,
    proposal: Proposal,
    earlier: list[Version],
) -> None:
    """Raise NpuprofError if a version number exists, or does not increase on this branch."""
    # of one number, pre-releases rise among themselves
    same = (
        [version for version in earlier if version.pre and version.number == number.number]
        if number.pre
        else []
    )
    below = max(
        (version for version in (find_last_release(earlier), *same) if version),
        key=attrgetter("text.order"),
        default=None,
    )
    tag = f"{name}/v{number}"
    hint = f"the next is {VersionText(proposal.number)}"
    if any(version.text == number for version in repository.load_versions(name)):
        what = f"{name} {number} is released already: the tag {tag} exists already"
        why = "A released version never changes."
    # a lightweight tag takes the name, too
    elif any(ref.text == number for ref in repository.list_tag_refs(name)):
        what = f"the tag {tag} exists already and is not a release"
        why = "A release is an annotated tag, and this one is not."
        hint = f"delete it with git tag -d {tag}, or give another number"
    elif below and number.order <= below.text.order:
        what = f"{number} would go back: {name} is at {below.number_text}"
        why = "Version numbers only rise."
    else:
        return
    raise build_error("NP026", what, why, hint)


def _require_committed(committed: Revision, configs: list[Config], dry_run: bool) -> None:
    """Raise NpuprofError if a required file differs from the last commit.

    A dry run starts no git filters.
    """
    repository = committed.repository
    lineages = (profile for config in configs for profile in config.lineage)
    members = dict.fromkeys(
        profile.name for profile in lineages if profile.document.revision == committed.commit
    )
    names = {
        committed.source_path(name): name
        for member in members
        # a link is released as the content of its target
        for name in committed.trace_links(member)
    }
    work_tree = repository if dry_run else repository.with_git(repository.git.with_filters())
    changed = list_changed_paths(work_tree, committed.layout).changed
    if dirty := [names[path] for path in names if path in changed]:
        raise NpuprofError(
            _build_uncommitted_finding(configs[0].name if len(configs) == 1 else "the store", dirty)
        )


def _build_uncommitted_finding(name: str, dirty: list[str]) -> Finding:
    what = (
        f"{name} is not released: {', '.join(dirty)} "
        f"{'is' if len(dirty) == 1 else 'are'} not committed as it is"
    )
    return Finding(
        "NP026",
        what,
        "A version must be found again in the repository.",
        f"npuprof commit {' '.join(dirty)}",
    )


VERB = Release
