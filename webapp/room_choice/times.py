"""Times of slots in words: the same on all pages and in mails."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.formats import date_format


def time_in_words(moment: datetime, zone: ZoneInfo | None = None) -> str:
    """Return weekday, date and time with the time zone: "Monday, 2027-03-01 10:00 (Europe/Oslo)".

    The time zone is that of the page unless one is given.
    """
    chosen = zone or timezone.get_current_timezone()
    local = timezone.localtime(moment, chosen)
    return f"{date_format(local, 'l, Y-m-d H:i')} ({chosen})"
