"""What may stand in addresses beside Django's own kinds."""

from django.urls.converters import StringConverter


class TableFormat(StringConverter):
    """The kinds of files that tables are downloaded as; any other address is not found.

    What stands there becomes the end of a file's name, so it must be nobody's choice.
    """

    regex = "csv|xlsx"
