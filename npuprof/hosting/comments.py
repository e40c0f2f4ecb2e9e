"""One comment on a pull request, created once and then updated."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from npuprof.hosting.service import Service, ServiceError, require_list
from npuprof.model import Fields, Record

#: Seconds between attempts.
PAUSES = (1.0, 3.0, 9.0)
_MOST_PAGES = 100


class Comment(Record):
    """A comment on a pull request."""

    ident: int
    body: str


def update_comment(comments: ServiceComments, marker: str, page: str, may_create: bool) -> str:
    """Set the text of npuprof's comment; return what was done, in a word.

    npuprof's comment has its author and begins with the marker. A new one is created only if
    ``may_create``. After a temporary failure, the comments are read again before another write: the
    service may have accepted an unconfirmed write. Raises ServiceError.
    """
    body = f"{marker}\n{page}"
    for pause in PAUSES:
        try:
            return _write_comment(comments, marker, body, may_create)
        except ServiceError as error:
            if not error.passing:
                raise
            time.sleep(max(pause, error.wait))
    return _write_comment(comments, marker, body, may_create)


def _write_comment(comments: ServiceComments, marker: str, body: str, may_create: bool) -> str:
    known = comments.find_own(marker)
    if known is None:
        if not may_create:
            return "not needed"
        comments.create(body)
        return "made"
    # an equal text needs no write; the service may have stripped blanks at its end
    if known.body.rstrip() == body.rstrip():
        return "as it was"
    comments.update(known.ident, body)
    return "renewed"


class ServiceComments(ABC):
    """The comments of one pull request, at a path of a service.

    ``order`` is the query that lists the oldest first.
    """

    order = ""

    def __init__(self, service: Service, path: str) -> None:
        self._service = service
        self._path = path
        self._author: object = None

    def find_own(self, marker: str) -> Comment | None:
        """Return npuprof's first comment with a marker, without reading further pages.

        Raises ServiceError.
        """
        self._author = self._author or self._find_author()
        for page in self._read_pages():
            for comment in page:
                body = comment.get("body")
                # a quoted comment has the marker further down
                is_marked = isinstance(body, str) and body.partition("\n")[0].strip() == marker
                if is_marked and self._is_ours(comment) and type(comment.get("id")) is int:
                    return Comment(comment["id"], comment["body"])
        return None

    def create(self, body: str) -> None:
        """Create a comment. Raises ServiceError."""
        self._service.ask("POST", self._path, {"body": body})

    def _read_pages(self) -> Iterator[list[Fields]]:
        page = "1"
        for _ in range(_MOST_PAGES):
            reply = self._service.ask("GET", f"{self._path}?per_page=100{self.order}&page={page}")
            yield require_list(reply, self._service.name)
            page = self._find_next_page(page, reply.headers)
            if not page:
                return
        raise ServiceError(f"there are more than {100 * _MOST_PAGES} comments")

    @abstractmethod
    def update(self, ident: int, body: str) -> None:
        """Replace the text of npuprof's comment. Raises ServiceError."""

    @abstractmethod
    def _find_next_page(self, page: str, headers: Mapping[str, str]) -> str:
        """Return the number of the next page, an empty string after the last."""

    @abstractmethod
    def _find_author(self) -> object:
        """Return the identity of the token's owner as an author. Raises ServiceError."""

    @abstractmethod
    def _is_ours(self, comment: Fields) -> bool:
        """Return whether the token's owner wrote a comment."""
