"""Verification of released versions: resolved again and compared with their tags.

Tag signatures are verified on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuprof.document.profile import ProfileSource
from npuprof.history.git_queries import read_settings
from npuprof.history.releasing import digest_store, list_pinned_parents
from npuprof.model import Finding, NpuprofError, Record
from npuprof.resolve.config import Config
from npuprof.resolve.digests import FORM, compute_digest
from npuprof.store import is_source_reference, spec
from npuprof.store.gitstore.repository import Repository, shorten_commit
from npuprof.store.problems import UNAVAILABLE, advise_sync_of
from npuprof.store.sources.lookups import Lookups
from npuprof.store.versions import ParentRecord, TagRef, Version, parse_tag_object
from npuprof.system import decode_safely

#: The name of the whole store in versions.
WHOLE_STORE = "@"
_ADVICE = "compare with another clone; git fetch --force origin tag {} takes the tag from there"

#: Codes that mean something is missing on this machine.
_UNVERIFIABLE = UNAVAILABLE | {"NP022", "NP029"}


class VerifiedVersion(Record):
    """A version and its faults; ``status`` is ``holds``, ``fails``, or ``unknown``.

    ``yanked`` is the reason of a yank; yanked versions are verified too.
    """

    name: str
    version: str
    tag: str
    commit: str
    findings: tuple[Finding, ...] = ()
    yanked: str = ""

    @property
    def status(self) -> str:
        """Whether the version matches its tag."""
        codes = {finding.code for finding in self.findings if finding.severity == "error"}
        if not codes:
            return "holds"
        # one real fault decides: it would stay if everything were fetched
        return "unknown" if codes <= _UNVERIFIABLE else "fails"


class Verifier:
    """Compares the released versions of a store with their tags and, if asked, ``signatures``."""

    def __init__(self, workspace: spec.Workspace, signatures: bool = False) -> None:
        self._workspace = workspace
        self.repository = workspace.store.repository
        self._names = set(workspace.store.names())
        self.signatures = signatures

    def verify_tags(self, presets: Sequence[str]) -> Iterator[VerifiedVersion]:
        """Yield the versions of some presets, of all if empty, each with its faults.

        Raises NpuprofError.
        """
        refs = self.repository.list_tag_refs()
        if presets:
            refs = [ref for ref in refs if ref.name in presets]
        objects = self.repository.git.read_objects([ref.oid for ref in refs])
        for ref, tag_object in zip(refs, objects, strict=True):
            if tag_object is None:
                absent = self.repository.git.explain_absence([ref.oid])
                finding = absent._replace(message=f"the tag {ref.tag}: {absent.message}")
                yield VerifiedVersion(ref.name, str(ref.text), ref.tag, "", (finding,))
            elif tag_object.type != "tag":
                # Tags of other things than presets are no concern of npuprof, unless requested.
                if presets or self._concerns_store(ref, ref.oid):
                    yield _build_lightweight_version(ref)
            else:
                version = parse_tag_object(ref, tag_object.content)
                if (
                    presets
                    or version.record.digest
                    or version.faults
                    or self._concerns_store(ref, version.commit)
                ):
                    yield VerifiedVersion(
                        ref.name,
                        str(ref.text),
                        ref.tag,
                        version.commit,
                        findings=tuple(dict.fromkeys(self._verify_version(version))),
                        yanked=self.repository.find_yank(ref.tag),
                    )
        if not presets or WHOLE_STORE in presets:
            for version in self.repository.load_store_versions():
                # tags without a digest belong to something else or to an older npuprof
                if version.digest or version.record.faults:
                    yield VerifiedVersion(
                        WHOLE_STORE,
                        version.number_text,
                        version.tag_name,
                        version.commit,
                        tuple(self._verify_store_version(version)),
                        self.repository.find_yank(version.tag_name),
                    )

    def _verify_store_version(self, version: Version) -> Iterator[Finding]:
        tag = version.tag_name
        yield from self._verify_form(version)
        if version.faults:
            return
        try:
            tagged = self.repository.load_revision(self.repository.resolve_commit(version.commit))
            digest = digest_store(tagged)
        except NpuprofError as error:
            for finding in error.findings:
                yield finding._replace(
                    code="NP029", message=f"{tag} cannot be read: {finding.message}"
                )
            return
        if digest != version.digest:
            yield Finding(
                "NP028",
                f"the presets of {tag} have another digest than the tag records",
                f"It is {digest or 'that of none'}, and not {version.digest}.",
                _ADVICE.format(tag),
            )
        for finding in find_edits(tagged):
            hint = "release the next version with a lock that npuprof wrote: npuprof source update"
            yield finding._replace(
                code="NP028", message=f"the sources of {tag}: {finding.message}", hint=hint
            )

    def _concerns_store(self, ref: TagRef, commit: str) -> bool:
        """Return whether a tag is about a preset, now or at its commit.

        Other things have versions too.
        """
        if ref.name in self._names:
            return True
        try:
            tagged = self.repository.load_revision(self.repository.resolve_commit(commit))
            return ref.name in tagged.files
        except NpuprofError:
            return False

    def _verify_version(self, version: Version) -> Iterator[Finding]:
        tag = version.tag_name
        yield from self._verify_form(version)
        if version.faults:
            return
        if not version.record.digest:
            yield Finding(
                "NP028",
                f"the tag {tag} has no digest",
                "npuprof release writes one; this tag was made by hand.",
                "nothing can be compared with it: release the next version",
            )
        if self.repository.git.read_object(f"{version.commit}^{{commit}}") is None:
            yield self._explain_lost_commit(version)
            return
        try:
            home = self.repository.load_release(version)
            config = self._workspace.resolver.resolve_profile(home.profile(version.name))
            yield from _compare_digests(version, config)
            yield from self._compare_parents(version, config, tag)
        except NpuprofError as error:
            for finding in error.findings:
                # what is missing here proves nothing against the tag
                code = "NP029" if finding.code in _UNVERIFIABLE else "NP028"
                hint = advise_sync_of(finding, f"--rev {tag}").hint or _ADVICE.format(tag)
                yield finding._replace(
                    code=code, message=f"{tag} cannot be resolved: {finding.message}", hint=hint
                )

    def _verify_form(self, version: Version) -> Iterator[Finding]:
        """Yield the faults of a tag itself."""
        if self.signatures and (fault := find_signature_fault(self.repository, version)):
            yield fault
        for fault_text in version.faults:
            yield Finding(
                "NP028",
                f"the tag {version.tag_name} is malformed: {fault_text}",
                "The tag records the contents of a release; npuprof does not guess them.",
                _ADVICE.format(version.tag_name),
            )

    def _explain_lost_commit(self, version: Version) -> Finding:
        if self.repository.git.read_object(version.commit):
            return Finding(
                "NP028",
                f"the tag {version.tag_name} names no commit",
                "A release is made of one.",
                _ADVICE.format(version.tag_name),
            )
        absent = self.repository.git.explain_absence([version.commit])
        message = f"the commit of {version.tag_name}: {absent.message}"
        return absent._replace(code="NP029", message=message)

    def _compare_parents(self, version: Version, config: Config, tag: str) -> Iterator[Finding]:
        """Yield the recorded parents that differ, and unrecorded ones; older forms record none."""
        if version.record.form is None:
            return
        used = {(parent.view, parent.reference) for parent in list_pinned_parents(config)}
        recorded = {(parent.view, parent.reference): parent for parent in version.record.parents}
        why = "A version is made of the parents that its tag records."
        hint = _ADVICE.format(tag)
        for view, reference in sorted(used ^ recorded.keys()):
            if (view, reference) in used:
                viewer = f" for {view}" if view else ""
                what = f"the tag {tag} does not record the contents of {reference}{viewer}"
            else:
                what = f"the tag {tag} records {reference}, which nothing in it extends"
            yield Finding("NP028", what, why, hint)
        for parent in recorded.values():
            # The commit of a source is in the lock at the commit of the tag.
            if parent.version and not is_source_reference(parent.reference):
                yield from self._compare_parent(parent, tag)

    def _compare_parent(self, parent: ParentRecord, tag: str) -> Iterator[Finding]:
        """Yield how the tag of a parent differs from what a version's tag records of it."""
        made_with = f"{tag} was made with {parent.name} {parent.version}"
        parent_tag = f"{parent.name}/v{parent.version}"
        hint = f"git fetch --force origin tag {parent_tag}"
        commit = self.repository.git.read_object(f"refs/tags/{parent_tag}^{{commit}}")
        if commit:
            if commit.oid != parent.commit:
                what = (
                    f"{made_with} at {shorten_commit(parent.commit)}, and that tag names "
                    f"{shorten_commit(commit.oid)} now"
                )
                why = "The tag of the parent was moved."
                yield Finding("NP028", what, why, f"put it back: {hint}")
        elif any(ref.tag == parent_tag for ref in self.repository.list_tag_refs(parent.name)):
            yield Finding("NP029", f"the commit of the tag {parent_tag} is missing", "", hint)
        else:
            what = f"{made_with}, whose tag is gone"
            why = "The release still resolves, but a new dependent would not."
            yield Finding("NP028", what, why, hint)


def _build_lightweight_version(ref: TagRef) -> VerifiedVersion:
    what = f"{ref.tag} is a lightweight tag"
    hint = f"remove it (git tag -d {ref.tag}), and release: npuprof release {ref.name}"
    finding = Finding("NP028", what, "It has no record, so it is not a release.", hint)
    return VerifiedVersion(ref.name, str(ref.text), ref.tag, ref.oid, (finding,))


def find_edits(home: ProfileSource) -> list[Finding]:
    """Return manual edits of a store's lock and vendored copies.

    An unreadable lock counts as one.
    """
    try:
        return Lookups().find_edited_copies(home)
    except NpuprofError as error:
        return [finding for finding in error.findings if finding.code not in _UNVERIFIABLE]


def _compare_digests(version: Version, config: Config) -> Iterator[Finding]:
    """Yield the digests that differ from the tag's.

    A tag without a form number may use any old form.
    """
    record = version.record
    if record.form is not None and record.form > FORM:
        yield Finding(
            "NP029",
            f"the digests of {version.tag_name} are in form {record.form}, "
            "which this npuprof does not know",
            f"It knows the forms up to {FORM}.",
            "verify it with the npuprof that released it, or a later one",
        )
        return
    label = f"{version.name} {version.number_text}"
    hint = _ADVICE.format(version.tag_name)
    forms = (record.form,) if record.form is not None else tuple(range(1, FORM + 1))
    digests = [compute_digest(config.settings, form) for form in forms] if record.digest else []
    if record.digest and record.digest not in digests:
        what = f"{label} has another digest than its tag records"
        yield Finding("NP028", what, f"It is {digests[-1]}, and not {record.digest}.", hint)
    if (
        record.preset_digest
        and record.form == config.form
        and config.preset_digest != record.preset_digest
    ):
        what = f"{label} has another preset digest than its tag records"
        why = f"It is {config.preset_digest}, and not {record.preset_digest}."
        yield Finding("NP028", what, why, hint)


_TRUE = ("", "true", "yes", "on", "1")
#: Messages of a signature program that cannot decide: a program or key is missing.
_UNABLE = (
    "cannot run",
    "no public key",
    "needs to be configured",
    "no such file",
    "can't check signature",
    "not found",
    "unable to",
)


def requires_signatures(repository: Repository) -> bool:
    """Return whether tags should be signed.

    They should with ``tag.gpgSign``, or any ``gpg.*`` setting unless that is false. Raises
    NpuprofError.
    """
    configured = dict(read_settings(repository, r"^(tag\.gpgsign|gpg\..*)$"))
    # an explicit false wins over gpg.*, which may be set for commits
    if "tag.gpgsign" in configured:
        return configured["tag.gpgsign"].lower() in _TRUE
    return bool(configured)


def find_signature_fault(repository: Repository, version: Version) -> Finding | None:
    """Return the fault of a tag's signature, None if it is good; runs the signature program."""
    tag = version.tag_name
    result = repository.git.writing().try_command("verify-tag", version.tag)
    if not result.code:
        return None
    complaint = " ".join(decode_safely(result.complaint).split())
    # git fails for an unsigned tag before it starts the signature program
    if "no signature found" in complaint:
        return Finding(
            "NP028",
            f"the tag {tag} is not signed",
            "With --signatures, a version matches only if its tag is signed.",
            "ask the person who released it, or omit --signatures",
        )
    # without the key, a good signature looks like a bad one
    is_undecided = any(message in complaint.lower() for message in _UNABLE)
    code, state = ("NP029", "cannot be checked here") if is_undecided else ("NP028", "is bad")
    what = f"the signature of {tag} {state}"
    return Finding(code, what, complaint, f"for details: git verify-tag {tag}")
