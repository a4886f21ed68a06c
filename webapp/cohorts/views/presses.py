"""What a button of the import preview sent: plain fields, or all of it in the button's value."""

from dataclasses import dataclass
from urllib.parse import parse_qsl

from django.http import QueryDict

from webapp.common.parameters import whole_number


@dataclass(frozen=True, slots=True)
class Press:
    """One button: the action, the marked columns, the other fields, and the column that is open."""

    action: str
    columns: tuple[str, ...]
    data: dict[str, str]
    opened: int | None

    @property
    def column(self) -> int | None:
        """The one column that the button is about; None for none or another."""
        return whole_number(self.columns[0]) if len(self.columns) == 1 else None


def read_press(post: QueryDict) -> Press:
    """Return what was pressed.

    The page has one form for all its buttons. A button's own fields stand in its value, as a query
    ("action=role&column=5&from=role-5"), where ``from`` names the field that holds the value.
    """
    own = dict(parse_qsl(post.get("do", ""), keep_blank_values=True))
    data = {key: value for key, value in post.items() if isinstance(value, str)} | own
    if "from" in own:
        data["value"] = post.get(own["from"], "")
    columns = (own["column"],) if own.get("column") else tuple(post.getlist("column"))
    if own and own.get("action") != "role" and "column" not in own:
        columns = ()
    return Press(data.get("action", ""), columns, data, whole_number(post.get("open", "")))
