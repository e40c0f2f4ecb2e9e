"""Personal layers: a user's overlays over shared presets, in the user's config folder.

``$XDG_CONFIG_HOME/npuprof/personal/PROJECT-MARK/NAME.toml`` overlays the preset NAME of one
checkout: the folder has the project's name and a mark of its real path, so that presets of two
projects do not collide. Presets at a revision, of sources, and in separate files have no layers.
"""

from __future__ import annotations

import os

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Place
from npuprof.resolve.digests import digest_bytes
from npuprof.resolve.lineages import PERSONAL
from npuprof.store.folder import Folder, find_project_folder
from npuprof.system import find_user_folder
from npuprof.system.files import describe_os_error, read_plain_file


def find_personal_folder() -> str:
    """Return the folder of this user's personal layers, whether or not it exists."""
    return os.path.join(find_user_folder("config"), "personal")


def find_personal_file(shared: Profile) -> str:
    """Return the path of the layer over a shared preset, whether or not it exists."""
    assert isinstance(shared.home, Folder), "only presets of a folder have layers"
    if shared.home.is_shipped:
        folder = "builtin"
    else:
        project = find_project_folder(shared.home)
        # of the real path: a checkout reached through a link has the same layers
        mark = digest_bytes(os.fsencode(os.path.realpath(shared.home.root)))[:8]
        folder = f"{os.path.basename(project) or 'root'}-{mark}"
    return os.path.join(find_personal_folder(), folder, f"{shared.name}.toml")


def list_shared_presets(profile: Profile) -> list[Profile]:
    """Return the presets of the work tree that can have layers: the profile, or its parts."""
    parts = [*profile.home.parts.values()] if profile.home else []
    if not parts:  # it is not composed
        parts = [profile]
    return [part for part in parts if isinstance(part.home, Folder) and part.key == part.name]


def parse_layer(shared: Profile, path: str, raw: bytes) -> Profile:
    """Return the text of a layer as a profile; its parents are in the store.

    Raises NpuprofError.
    """
    return Profile(
        parse_document(f"{shared.name} (personal)", path, raw),
        key=f"{PERSONAL}{shared.name}",
        home=shared.home,
    )


def load_personal_layers(profile: Profile) -> list[Profile]:
    """Return the user's layers for a profile, later over earlier.

    Raises NpuprofError for an unreadable one.
    """
    # most users have none: no path of a project is resolved then
    if not os.path.isdir(find_personal_folder()):
        return []
    layers = []
    for shared in list_shared_presets(profile):
        path = find_personal_file(shared)
        try:
            layer = parse_layer(shared, path, read_plain_file(path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            what = f"cannot read {path}: {describe_os_error(error, path)}"
            raise NpuprofError(
                [
                    Finding("NP003", what, "", "check its permissions", where=Place(path)),
                    # the first finding names the cause, this one how to go on without the layer
                    build_unfit_finding(path),
                ]
            ) from None
        except NpuprofError as error:
            raise NpuprofError([*error.findings, build_unfit_finding(path)]) from None
        if _has_content(layer.document.data):
            layers.append(layer)
    return layers


def _has_content(value: object) -> bool:
    """Return whether a part of a layer has content.

    An empty table may be left after its last key was removed.
    """
    return any(map(_has_content, value.values())) if isinstance(value, dict) else value != []


def build_unfit_finding(path: str) -> Finding:
    """Return the finding for an unusable personal layer, with the way to skip it."""
    why = "The layer is personal: the preset's store is not the cause."
    what = "this personal layer cannot be applied over the preset"
    return Finding("NP055", what, why, "correct it, or skip it: --no-personal", where=Place(path))
