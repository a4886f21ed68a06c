"""Template words of room choice."""

from datetime import datetime

from django import template

from webapp.room_choice.times import time_in_words

register = template.Library()


@register.filter
def slot_time(moment: datetime) -> str:
    """Return the time of a slot in words, with the time zone of the page."""
    return time_in_words(moment)
