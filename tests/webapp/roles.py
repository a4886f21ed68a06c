"""Pages as people and screen readers meet them: elements by role and name, not by their HTML.

    page = Page(client.get(address))
    page.one("heading", "Version 2: what would change")
    page.one("row", "Anna Ash").says("Room 201")
    assert page.field("Name").value == "Autumn"
    assert not page.has("button", "Publish")

A name is the accessible name: a label, ``aria-label``, the text of what ``aria-labelledby`` lists,
a picture's alternative text, else the text itself. A name that is asked for is found if it is a
part of the accessible name; ``exactly=True`` wants the whole. Text in elements that are hidden, and
in scripts and styles, is no text of the page.
"""

from collections.abc import Iterator
from typing import Any

from lxml import html
from lxml.html import HtmlElement

_TYPES_OF_TEXT = (
    "not(@type) or @type='text' or @type='search' or @type='email' or @type='url' or @type='tel'"
)
# Where each role stands; an element with a `role` of its own has only that role.
_PLACES = {
    "alert": (),
    "article": ("article",),
    "button": ("button", "input[@type='submit' or @type='button' or @type='image']", "summary"),
    "caption": ("caption", "figcaption"),
    "cell": ("td",),
    "checkbox": ("input[@type='checkbox']",),
    "columnheader": ("th[not(@scope='row')]",),
    "combobox": ("select[not(@multiple)]",),
    "complementary": ("aside",),
    "definition": ("dd",),
    "dialog": ("dialog",),
    "form": ("form",),
    "group": ("fieldset", "details"),
    "heading": ("h1", "h2", "h3", "h4", "h5", "h6"),
    "img": ("img", "svg"),
    "link": ("a[@href]",),
    "listbox": ("select[@multiple]",),
    "listitem": ("li",),
    "main": ("main",),
    "navigation": ("nav",),
    "option": ("option",),
    "paragraph": ("p",),
    "progressbar": ("progress",),
    "radio": ("input[@type='radio']",),
    "region": ("section[@aria-label or @aria-labelledby]",),
    "row": ("tr",),
    "rowheader": ("th[@scope='row']",),
    "spinbutton": ("input[@type='number']",),
    "status": ("output",),
    "tab": (),
    "table": ("table",),
    "term": ("dt",),
    "textbox": ("textarea", f"input[{_TYPES_OF_TEXT}]"),
}
_NOT_SHOWN = {"script", "style", "template", "head"}
_FIELDS = ("input", "select", "textarea")
_LINES = {"address", "article", "br", "button", "dd", "div", "dt", "fieldset", "form", "h1", "h2",
          "h3", "h4", "h5", "h6", "label", "legend", "li", "main", "nav", "option", "p", "pre",
          "section", "summary", "table", "td", "th", "tr", "ul"}  # fmt: skip


class Part:
    """An element of a page, and all that it contains."""

    def __init__(self, element: HtmlElement) -> None:
        self.element = element

    def __repr__(self) -> str:
        return f"<{self.element.tag} {self.text[:60]!r}>"

    @property
    def text(self) -> str:
        """The text that is shown, with single spaces, and one between two blocks."""
        return " ".join("".join(_shown_texts(self.element)).split())

    @property
    def name(self) -> str:
        """The accessible name."""
        return _name(self.element)

    @property
    def address(self) -> str:
        """The address to which a link or a form leads, or that a button sends its form to."""
        return next((self.element.get(one) for one in ("href", "formaction", "action")
                     if self.element.get(one) is not None), "")  # fmt: skip

    @property
    def value(self) -> str:
        """The value of a field: typed text, the value of the chosen option, or of a box."""
        if self.element.tag == "textarea":
            return (self.element.text or "").removeprefix("\n")
        if self.element.tag == "select":
            options = self.element.xpath(".//option[@selected]") or self.element.xpath(".//option")
            return options[0].get("value", options[0].text) if options else ""
        return self.element.get("value", "")

    @property
    def is_checked(self) -> bool:
        """True if a box or an option is marked."""
        return "checked" in self.element.attrib or self.element.get("aria-selected") == "true"

    @property
    def is_disabled(self) -> bool:
        """True if nobody can use it."""
        return "disabled" in self.element.attrib or bool(
            self.element.xpath("ancestor::fieldset[@disabled]")
        )

    @property
    def description(self) -> str:
        """The text of the elements that describe it to a screen reader, such as its errors."""
        ids = self.element.get("aria-describedby", "").split()
        for group in self.element.xpath("ancestor::fieldset[@aria-describedby]"):
            ids += group.get("aria-describedby").split()
        return " ".join(_text_of_id(self.element, one) for one in ids)

    def every(self, role: str, name: str = "", *, exactly: bool = False) -> list["Part"]:
        """All shown elements within this one that have a role and a name, in order."""
        found = [Part(one) for one in _with_role(self.element, role)]
        return [
            part for part in found if (part.name == name if exactly else name in part.name)
        ]  # fmt: skip

    def has(self, role: str, name: str = "", *, exactly: bool = False) -> bool:
        """Return True if at least one element has the role and the name."""
        return bool(self.every(role, name, exactly=exactly))

    def one(self, role: str, name: str = "", *, exactly: bool = False) -> "Part":
        """The only element with a role and a name; the error lists the names that there are."""
        found = self.every(role, name, exactly=exactly)
        assert found, f"no {role} {name!r} among {[one.name for one in self.every(role)]}"
        assert len(found) == 1, f"{len(found)} of {role} {name!r}: {[one.name for one in found]}"
        return found[0]

    def field(self, label: str) -> "Part":
        """The only field with a label; exactly that label if several begin alike."""
        fields = [Part(one) for one in self.element.iter(*_FIELDS) if one.get("type") != "hidden"]
        fields = [one for one in fields if _is_shown(one.element)]
        found = [one for one in fields if one.name == label]
        found = found or [one for one in fields if label in one.name]
        assert found, f"no field {label!r} among {[one.name for one in fields]}"
        assert len(found) == 1, f"{len(found)} fields {label!r}: {[one.name for one in found]}"
        return found[0]

    def said_of(self, term: str) -> str:
        """The text beside a term, in a list of terms or as the row of a table."""
        for found in self.every("term", term) + self.every("rowheader", term):
            if (after := found.element.getnext()) is not None:
                return Part(after).text
        terms = [one.name for one in self.every("term") + self.every("rowheader")]
        raise AssertionError(f"no term {term!r} among {terms}")

    def cell(self, column: str) -> str:
        """The text of the cell of this row under the header of a column."""
        headers = self.element.xpath("ancestor::table[1]//tr[1]/th[not(@scope='row')]")
        names = [Part(one).text for one in headers]
        assert column in names, f"no column {column!r} among {names}"
        return Part(self.element.xpath("td | th")[names.index(column)]).text

    def section(self, heading: str) -> "Part":
        """The section, article, dialog or form around the only heading with a name."""
        around = self.one("heading", heading).element.xpath(
            "ancestor::*[self::section or self::article or self::dialog or self::form][1]"
        )
        assert around, f"the heading {heading!r} stands in no section"
        return Part(around[0])

    def says(self, words: str) -> bool:
        """Return True if the words are part of the text."""
        return words in self.text


class Page(Part):
    """A whole page, or the part of it that an htmx request got."""

    def __init__(self, answer: Any, *, status: int = 200) -> None:
        """Read an answer of Django's client and check its status; or read the text of a page."""
        text = self.source = answer
        if not isinstance(answer, str):
            assert answer.status_code == status, answer.status_code
            self.source = answer.content.decode()
            text = getattr(answer, "as_sent", self.source)  # with the spaces that Reader drops
        is_whole = "<html" in text[:1000]
        parse = html.document_fromstring if is_whole else _of_fragment
        super().__init__(parse(text))


def _of_fragment(text: str) -> HtmlElement:
    """Rows and cells alone lose their tags in a parser unless a table is around them."""
    start = text.lstrip()[:3]
    if start in ("<tr", "<td", "<th"):
        return html.fragment_fromstring(f"<table>{text}</table>", create_parent="div")
    return html.fragment_fromstring(text, create_parent="div")


def _with_role(element: HtmlElement, role: str) -> Iterator[HtmlElement]:
    places = [f".//*[@role='{role}']"]
    places += [f".//{one.replace('[', '[not(@role) and (', 1).removesuffix(']')})]" if "[" in one
               else f".//{one}[not(@role)]" for one in _PLACES[role]]  # fmt: skip
    return (one for one in element.xpath(" | ".join(places)) if _is_shown(one))


def _is_shown(element: HtmlElement) -> bool:
    around = [element, *element.iterancestors()]
    return not any(
        "hidden" in one.attrib or one.get("aria-hidden") == "true" or one.tag in _NOT_SHOWN
        for one in around
    )


def _name(element: HtmlElement) -> str:
    if ids := element.get("aria-labelledby", "").split():
        return " ".join(_text_of_id(element, one) for one in ids)
    if own := element.get("aria-label"):
        return " ".join(own.split())
    if element.tag in _FIELDS:
        if element.get("type") in ("submit", "button"):
            return element.get("value", "")
        return _label(element)
    if element.tag == "img":
        return element.get("alt", "")
    if element.tag == "svg":
        return " ".join(one.text_content() for one in element.xpath("*[local-name()='title']"))
    for inner, of in (("fieldset", "legend"), ("table", "caption"), ("details", "summary")):
        if element.tag == inner and (found := element.find(of)) is not None:
            return Part(found).text
    if text := Part(element).text:
        return text
    return " ".join(_name(one) for one in _with_role(element, "img"))


def _label(field: HtmlElement) -> str:
    """The text of the labels of a field, without that of fields in them."""
    labels = field.xpath("ancestor::label")
    if field.get("id"):
        root = field.getroottree().getroot()
        labels += [one for one in root.iter("label") if one.get("for") == field.get("id")]
    texts = [Part(one).text for one in labels]
    return " ".join(texts) or field.get("title") or field.get("placeholder") or ""


def _text_of_id(element: HtmlElement, wanted: str) -> str:
    found = element.getroottree().getroot().xpath("//*[@id=$wanted]", wanted=wanted)
    return " ".join(" ".join(one.text_content().split()) for one in found)


def _shown_texts(element: HtmlElement) -> Iterator[str]:
    if element.text and not isinstance(element, html.HtmlComment):
        yield element.text
    for one in element:
        if isinstance(one.tag, str) and one.tag not in _NOT_SHOWN and "hidden" not in one.attrib:
            edge = " " if one.tag in _LINES else ""
            yield edge
            if one.tag != "select":
                yield from _shown_texts(one)
            yield edge
        if one.tail:
            yield one.tail
