"""``site``: write presets, their findings and the catalogue as a static website."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.catalog import releases
from npuprof.commands.framework import argument, many, option
from npuprof.commands.framework.parameters import StoreVerb
from npuprof.commands.resolving import open_workspace
from npuprof.edit.moves import Upgrade
from npuprof.model import TYPE_CHECKING, Context, Finding, build_error
from npuprof.report import Answer
from npuprof.report.text import format_count
from npuprof.site.site_folder import write_site
from npuprof.store import spec
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from npuprof.scripts.summary.setting_counts import Touched


class Site(StoreVerb):
    """Write the store as a static website.

    The pages need no server and no network: open DIR/index.html.
    """

    group = "output"
    usage_hint = "The folder is named: npuprof site public"

    folder = argument("DIR", "Folder to write: new, empty, or written by an earlier npuprof site")
    also = many(
        "--also",
        metavar="SPEC",
        text="Include a revision, version, run record or run log for comparison; can be repeated",
        complete="spec",
    )
    scripts = many(
        "--scripts",
        metavar="PATH",
        text="Include the scripts in PATH in the upgrade matrix; can be repeated",
    )
    source_url = option(
        "--source-url",
        metavar="URL",
        text="Link origins to the repository at URL, or by a template with {rev}, {path}, {line}",
    )
    release = option(
        "--upgrade",
        metavar="RELEASE",
        text="Build the upgrade matrix for this CANN release [default: the newest]",
        complete="release",
    )

    def run(self) -> Answer:
        """Write the changed pages, and report their number.

        Exit 2 after an internal error in a preset or script. Raises NpuprofError.
        """
        from npuprof.compare.spans import require_address

        try:
            from npuprof.site.building import SiteRequest, build_site
        except ModuleNotFoundError as error:
            why = "It belongs to an extra of npuprof."
            hint = "pip install 'npuprof[site]', in a clone pip install '.[site]'"
            raise build_error("NP981", f"{error.name} is not installed", why, hint) from None

        require_address("--source-url", self.source_url)
        release = str(
            spec.build_context(self.release).cann if self.release else releases.load_releases()[-1]
        )
        workspace = open_workspace(self.store)
        store = workspace.listed_store
        if not store.names():
            raise build_error(
                "NP010",
                f"there is no preset in {store.label}",
                "",
                "npuprof init creates a store with samples",
            )
        faults: list[Finding] = []
        scripts = tuple(_list_touched(self.scripts, release, self.store, faults))
        written = write_site(
            self.folder,
            build_site(
                workspace,
                SiteRequest(release, tuple(self.also), scripts, self.source_url),
                faults,
            ),
        )
        pages = format_count(written.written + written.kept, "file")
        summary = (
            f"{self.folder}: {pages}, {written.written} written, "
            f"{written.removed} removed; open {self.folder}/index.html"
        )
        notes = [
            f"{self.folder}/{name} is no longer part of the site, and stays because git tracks it"
            for name in written.left
        ]
        return Answer(
            None, (summary, *notes), 2 if faults else 0, problems=list(dict.fromkeys(faults))
        )


def _list_touched(
    paths: list[str], release: str, store: str | None, faults: list[Finding]
) -> Iterable[tuple[str, tuple[Touched, ...]]]:
    """Yield what a release changes for scripts, by path.

    Internal errors are added to ``faults``.
    """
    if not paths:
        return
    from npuprof.scripts.scanning import scan_scripts
    from npuprof.scripts.summary.setting_counts import Survey

    context = Context(cann=release)
    survey = Survey(context, Upgrade({releases.CANN: release}))
    faults += scan_scripts(paths, context, store, survey).faults
    by_path = group_pairs(
        (name, touched) for touched, names in survey.touched.items() for name in names
    )
    yield from ((path, tuple(touches)) for path, touches in sorted(by_path.items()))


VERB = Site
