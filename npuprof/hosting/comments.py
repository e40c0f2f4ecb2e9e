"""One comment on a pull request, made once and then kept up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from npuprof.hosting.job import Comment, Comments
from npuprof.hosting.service import ServiceError

#: Seconds between one try and the next.
PAUSES = (1.0, 3.0, 9.0)


def keep_comment(comments: Comments, marker: str, page: str, wanted: bool) -> str:
    """Let the comment say a page; return in a word what was done.

    It is ours where we wrote it and it begins with the marker. Where there is none, one is made only if it is ``wanted``. After a
    fault that passes we look again before we write again: the service may have taken what it did not confirm. Raises ServiceError.
    """
    body = f"{marker}\n{page}"
    for pause in (*PAUSES, None):
        try:
            return _write_comment(comments, marker, body, wanted)
        except ServiceError as error:
            if not error.passing or pause is None:
                raise
            time.sleep(max(pause, error.wait))
    raise AssertionError("the last try returns or raises")


def _write_comment(comments: Comments, marker: str, body: str, wanted: bool) -> str:
    known = comments.find_own(marker)
    if known is None:
        if not wanted:
            return "not needed"
        comments.create(body)
        return "made"
    if known.body.rstrip() == body.rstrip():
        return "as it was"
    comments.update(known.ident, body)
    return "renewed"


def find_marked_comment(
    pages: Iterable[Sequence[dict[str, Any]]], is_ours: Callable[[dict[str, Any]], bool], marker: str
) -> Comment | None:
    """Return the first comment of ours that begins with a marker, on whatever page it is; no page is asked for after that."""
    for page in pages:
        for comment in page:
            body = comment.get("body")
            is_marked = isinstance(body, str) and body.partition("\n")[0].strip() == marker
            if is_marked and is_ours(comment) and type(comment.get("id")) is int:
                return Comment(comment["id"], comment["body"])
    return None
