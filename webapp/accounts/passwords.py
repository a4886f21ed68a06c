"""Check for passwords that are easy to guess: leaked passwords and variations of them."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from zxcvbn import zxcvbn

from webapp.translation.lazy import gettext_lazy

MIN_GUESSES = 10**9
_READ = 72  # characters: more make a password no easier to guess
_SENTENCE = gettext_lazy(
    "This password, or one like it, is on a list of passwords that leaked, or it is "
    "quick to guess. Three or four words that have nothing to do with each other are "
    "hard to guess."
)


class GuessablePasswordValidator:
    """Password validator that refuses an attacker's first guesses, by the lists of zxcvbn.

    It knows 30,000 leaked passwords, words, names, dates and keyboard rows, and usual changes to
    them: a capital, a year at the end, "@" for "a", a repetition. No other server is called.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Raise ValidationError for a password that fewer than a billion guesses find."""
        found = zxcvbn(password[:_READ], user_inputs=_words_about(user))
        if found["guesses"] < MIN_GUESSES:
            raise ValidationError(_SENTENCE, code="password_guessable")

    def get_help_text(self) -> str:
        """Return the sentence about this rule for the password page."""
        return _("Your password is not on a list of passwords that leaked, and nothing like one.")


def _words_about(user: Any) -> list[str]:
    organisation = getattr(user, "organisation", None)
    names = (
        getattr(user, "username", ""),
        getattr(user, "first_name", ""),
        getattr(user, "last_name", ""),
        getattr(organisation, "name", ""),
        getattr(organisation, "department", ""),
        "bethe hall",
    )
    whole = [name for name in names if name]
    return [*whole, *(word for name in whole for word in name.split())]
