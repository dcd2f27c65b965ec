"""The parts of dates in standard SQL, which has neither weekdays nor the number of days since a date."""

DAY_OF_EPOCH = 2440588
"""The Julian day of 1970-01-01, a Thursday. The Julian day of each Monday is a multiple of 7."""


def date_part(timestamp: str, part: str) -> str:
    """Return a part of a date, one of `aucdist.data.date_parts.PARTS`, as a number of double precision.

    `timestamp`: the expression of a timestamp without a time zone.
    """

    def field(name: str) -> str:
        return f"CAST(EXTRACT({name} FROM {timestamp}) AS DOUBLE PRECISION)"

    if part in ("year", "month"):
        return field(part.upper())
    if part == "hour":
        return f"({field('HOUR')} + {field('MINUTE')} / 6E1)"
    day = _julian_day(field("YEAR"), field("MONTH"), field("DAY"))
    if part == "weekday":
        return f"({day} - 7E0 * FLOOR({day} / 7E0))"
    seconds = f"({field('HOUR')} * 3.6E3 + {field('MINUTE')} * 6E1 + {field('SECOND')})"
    return f"({day} - {DAY_OF_EPOCH}E0 + {seconds} / 8.64E4)"


def _julian_day(year: str, month: str, day: str) -> str:
    """Return the Julian day of a date of the Gregorian calendar: years begin in March, so that leap days end them."""
    early = f"FLOOR((14 - {month}) / 1.2E1)"
    y, m = f"({year} + 4800 - {early})", f"({month} + 12 * {early} - 3)"
    days = f"FLOOR((153 * {m} + 2) / 5E0) + 365 * {y} + FLOOR({y} / 4E0) - FLOOR({y} / 1E2) + FLOOR({y} / 4E2)"
    return f"({day} + {days} - 32045)"
