"""Path converters for addresses beside Django's own."""

from django.urls.converters import StringConverter


class TableFormat(StringConverter):
    """File formats of downloaded tables; any other address is not found.

    The value becomes the ending of a file name, so users must not choose it freely.
    """

    regex = "csv|xlsx"
