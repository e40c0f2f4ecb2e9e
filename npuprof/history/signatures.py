"""Signatures of tags, where the user asks for them: git starts the signing program that the configuration names."""

from __future__ import annotations

from npuprof.model import Finding
from npuprof.store.gitstore.repository import Repository
from npuprof.store.versions import Version

_TRUE = ("", "true", "yes", "on", "1")
#: What says that nobody can tell here: a program or a key is not there.
_UNABLE = ("cannot run", "no public key", "needs to be configured", "no such file", "can't check signature", "not found", "unable to")


def asks_for_signatures(repository: Repository) -> bool:
    """Return whether tags are to be signed: ``tag.gpgSign``, or any ``gpg.*`` unless that says no. Raises NpuprofError."""
    listed = repository.git.try_command("config", "-z", "--get-regexp", r"^(tag\.gpgsign|gpg\..*)$").output.decode(errors="replace")
    configured = dict(entry.partition("\n")[::2] for entry in listed.split("\0") if entry)
    return configured["tag.gpgsign"].lower() in _TRUE if "tag.gpgsign" in configured else bool(configured)


def find_signature_fault(repository: Repository, version: Version) -> Finding | None:
    """Return what is wrong with the signature of a tag, None where it is good; the signing program is run to tell."""
    tag = f"{version.name}/v{version.number_text}"
    result = repository.git.writing().try_command("verify-tag", version.tag)
    if not result.code:
        return None
    complaint = " ".join(result.complaint.decode(errors="replace").split())
    if "no signature found" in complaint:
        why = "With --signatures a version holds only where its tag is signed."
        return Finding("NP028", f"the tag {tag} is not signed", why, "ask who released it, or leave out --signatures")
    if any(words in complaint.lower() for words in _UNABLE):
        return Finding("NP029", f"the signature of {tag} cannot be checked here", complaint, f"git verify-tag {tag} tells more")
    return Finding("NP028", f"the signature of {tag} does not hold", complaint, f"git verify-tag {tag} tells more")
