"""What findings about versions in the repository of a source say to who uses the source, and cannot tag or fetch anything there."""

from __future__ import annotations

from npuprof.model import Finding, NpuprofError, Origin

#: Hints that are of use to anybody; all others are commands for the repository itself.
_KEPT = ("released are", "did you mean")


def place_finding(finding: Finding, asked: Origin | None) -> Finding:
    """Return a finding at the reference that asked for what it is about; as it is where no preset did."""
    if asked is None:
        return finding
    return finding._replace(origin=asked, key="profile.extends", profiles=(asked.profile,))


def name_source_in_error(error: NpuprofError, source: str, name: str) -> NpuprofError:
    """Return an error about a version of a preset as one about that of a source's preset."""
    return NpuprofError([_name_source(finding, source, name) for finding in error.findings])


def _name_source(finding: Finding, source: str, name: str) -> Finding:
    if finding.code != "NP011":
        return finding
    message = finding.message.replace(f"{name} has", f"{source}:{name} has").replace(f"of {name} is", f"of {source}:{name} is")
    hint = finding.hint
    if not hint.startswith(_KEPT):
        hint = f"leave the @ off; npuprof source update {source.partition('/')[0]} takes what is newer there"
    message = message if f"{source}:{name}" in message else f"{message} in {source}"
    return finding._replace(message=message, hint=hint)
