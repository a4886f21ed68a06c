"""Rules for sign-in names: case does not matter, and letters come from one alphabet."""

import unicodedata

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

# Scripts that Chinese, Japanese and Korean writers combine in one word.
_EAST_ASIAN = {
    "CJK", "IDEOGRAPHIC", "BOPOMOFO", "HANGUL", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"
}  # fmt: skip
_OF_ALL = {"COMBINING", "MODIFIER", "VARIATION"}  # marks that go with letters of any alphabet


def sign_in_key(name: str) -> str:
    """Return the common key of all spellings of a name; lower case is not enough for ß or Σ."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded)


def check_alphabet(name: str) -> None:
    """Raise ValidationError for a name of mixed alphabets, such as Latin with a Cyrillic а.

    East Asian characters may stand beside Latin letters, as people there write; none looks like a
    Latin letter.
    """
    found = sorted(_alphabets(name))
    if len(found) > 1 and found != ["East Asian", "Latin"]:
        raise ValidationError(
            _(
                "A sign-in name has letters of one alphabet, but “%(name)s” mixes %(found)s "
                "and %(found_2)s letters, which can look the same. Type all letters in one "
                "alphabet."
            )
            % {"name": name, "found": ", ".join(found[:-1]), "found_2": found[-1]},
            code="mixed_alphabets",
        )


def _alphabets(name: str) -> set[str]:
    words = {
        unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
        for letter in unicodedata.normalize("NFKC", name)
        if unicodedata.category(letter)[0] in "LM"
    }
    return {
        _("East Asian") if word in _EAST_ASIAN else word.capitalize() for word in words - _OF_ALL
    }
