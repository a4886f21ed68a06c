"""Data of a pressed button in the import preview: fields, or a query in the button's value."""

from dataclasses import dataclass
from urllib.parse import parse_qsl

from django.http import QueryDict

from webapp.common.parameters import whole_number


@dataclass(frozen=True, slots=True)
class PressedButton:
    """One pressed button: the action, the marked columns, the other fields, and the open column."""

    action: str
    columns: tuple[str, ...]
    data: dict[str, str]
    opened: int | None

    @property
    def column(self) -> int | None:
        """The column that the button is about, if it is exactly one; otherwise None."""
        return whole_number(self.columns[0]) if len(self.columns) == 1 else None


def read_pressed_button(post: QueryDict) -> PressedButton:
    """Return the pressed button.

    The page has one form for all its buttons. A button's own fields are in its value, as a query
    ("action=role&column=5&from=role-5"), where ``from`` names the field that holds the value.
    """
    own = dict(parse_qsl(post.get("do", ""), keep_blank_values=True))
    data = {key: value for key, value in post.items() if isinstance(value, str)} | own
    if "from" in own:
        data["value"] = post.get(own["from"], "")
    columns = (own["column"],) if own.get("column") else tuple(post.getlist("column"))
    if own and own.get("action") != "role" and "column" not in own:
        columns = ()
    return PressedButton(data.get("action", ""), columns, data, whole_number(post.get("open", "")))
