"""Rules for text: cleaned once where it enters, and folded to one key wherever it is compared.

``clean_text`` is what every cell and title goes through when a file is read. It changes nothing
that anybody can see: invisible characters that do no work go, spaces of all kinds become plain
ones, letters are composed. What people can see (quotes, dashes, full-width letters, capitals) stays
as it was written and is folded only where two texts are compared: ``fold_answer`` for answers,
``fold_title`` for the titles of columns, ``fold_name`` for names of people, ``fold_id`` for ids.
"""

import re
import unicodedata

# Spaces that word processors, web forms and spreadsheets use in place of a plain one.
_ODD_SPACES = re.compile(
    "[\u00a0\u115f\u1160\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\uffa0]"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Marks of direction, word joiners, soft hyphens, byte order marks: they steer how text is shown.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0100-\U000e01ef]|(?<!\U0001f3f4)(?<![\U000e0020-\U000e007e])"
    "[\U000e0000-\U000e007f]"
)
# Joiners are needed between letters of Persian or Hindi and in emoji, never beside Latin letters.
_JOINERS = re.compile("[\u200c\u200d]")
_SELECTORS = re.compile("[\ufe00-\ufe0f]")
# Forms of leading zeros in a CSV file from Excel and student systems: ="00123", '00123, or '=B1.
_QUOTED_VALUE = re.compile(r'="([^"]*)"')
_MARKED_TEXT = re.compile(r"'(?=\d+$|[=+@-])")

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʹʼ`´＇", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
        "…": "...",
        "⁄": "/",
    }
)
# Letters that are no plain letter with an accent, as a passport writes them.
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERING = re.compile(r"^(?:q(?:uestion)? ?)?\d{1,3}(?:[.):-]+ ?| )", re.I)
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th"})


def clean_text(text: str) -> str:
    """Return a cell or title in its stored form: visible characters are not changed.

    Examples
    --------
    >>> clean_text("Before\\u200b 10\\u00a0pm "), clean_text('="00123"'), clean_text("a\\r\\nb")
    ('Before 10 pm', '00123', 'a\\nb')
    """
    text = text.strip()
    if text.isascii():
        if "\r" in text or "\x0b" in text or "\x0c" in text:
            text = _LINE_ENDS.sub("\n", text).strip()
    else:
        text = _clean_beyond_ascii(text)
    if text[:1] in ("=", "'"):
        quoted = _QUOTED_VALUE.fullmatch(text)
        text = quoted[1].strip() if quoted else _MARKED_TEXT.sub("", text, count=1)
    return text


def _clean_beyond_ascii(text: str) -> str:
    text = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", _ODD_SPACES.sub(" ", text)))
    if _JOINERS.search(text) or _SELECTORS.search(text):
        text = "".join(c for k, c in enumerate(text) if _does_work(text, k))
    return unicodedata.normalize("NFC", text).strip()


def _does_work(text: str, k: int) -> bool:
    """Return False for a joiner or selector that does not change how its neighbours look."""
    if _JOINERS.match(text[k]):
        return 0 < k < len(text) - 1 and all(_is_joined(text[j]) for j in (k - 1, k + 1))
    if _SELECTORS.match(text[k]):
        return k > 0 and (_is_picture(text[k - 1]) or text[k + 1 : k + 2] == "\u20e3")
    return True


def _is_joined(character: str) -> bool:
    """Return True if a character can be joined: letters of joining scripts, and pictures."""
    if _is_picture(character) or unicodedata.category(character) in ("Mn", "Mc"):
        return True
    return character.isalpha() and not unicodedata.name(character, "").startswith(
        ("LATIN", "GREEK", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL")
    )


def _is_picture(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sk") or character in "\u203c\u2049\ufe0f"


def fold_answer(text: str) -> str:
    """Return the comparison key of an answer, without capitals, widths, kinds of quotes, dashes.

    Examples
    --------
    >>> fold_answer("Don’t  KNOW"), fold_answer("１０–１１ pm")
    ("don't know", '10-11 pm')
    """
    if not text.isascii():
        text = _JOINERS.sub("", _SELECTORS.sub("", text.translate(_QUOTES)))
        text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return " ".join(text.casefold().split())


def title_words(title: str) -> str:
    """Return a title in words, as people would write what programs call their columns.

    Examples
    --------
    >>> title_words("Q3_LegalFirstName"), title_words("LAST_NM"), title_words("FName")
    ('Legal First Name', 'LAST NM', 'F Name')
    """
    words = _INNER_CAPITAL.sub(" ", title.replace("_", " "))
    return " ".join(_NUMBERING.sub("", words, count=1).split()) or title


def fold_title(text: str) -> str:
    """Return the comparison key of a title: letters and digits only, lower-case, no accents."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain if c.isalnum())


def fold_name(name: str) -> str:
    """Return the comparison key of a person's name: "Müller, Zoë" and "Zoe MULLER" are alike.

    Accents, capitals, marks and the order of the parts do not count; every part does, so that
    "Ann Lee" is not "Ann Marie Lee".
    """
    letters = name.casefold()
    if not letters.isascii():
        plain = unicodedata.normalize("NFKD", letters.translate(_LETTERS))
        letters = "".join(c for c in plain if not unicodedata.combining(c))
    return " ".join(sorted(re.findall(r"[^\W_]+", letters)))


def fold_id(text: str) -> str:
    """Return the comparison key of an id: e-mails have no capitals, and widths never count."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).strip()
    return text.casefold() if "@" in text else text
