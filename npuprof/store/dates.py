"""Times as git keeps them, seconds and a zone, written down."""

from __future__ import annotations

from functools import cache


def format_commit_date(stamp: int, zone: str) -> str:
    """Return a time as ``2026-01-31T12:00:00+01:00``, in the author's own zone."""
    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    day, second = divmod(stamp + 60 * (minutes if zone[0] == "+" else -minutes), 86400)
    try:
        return f"{_format_day_number(day)}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{zone[:3]}:{zone[3:]}"
    except OverflowError:
        return str(stamp)


@cache
def _format_day_number(number: int) -> str:
    """Return a day, counted from 1970-01-01, as ``2026-01-31``. Raises OverflowError."""
    from datetime import date, timedelta

    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
