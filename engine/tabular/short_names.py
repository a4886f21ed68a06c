"""Short names of columns: at most 16 letters, derived from the wording, each unique."""

import re
from collections import Counter
from collections.abc import Sequence

MAX_LETTERS = 16
LONG = 40  # a header of more letters than this is a wording, not a name
_CODE = re.compile(r"^(?:Q|VAR|V|QID|X|Item)_?\d+(?:[._]\d+)*(?:_TEXT)?(?: \(\d+\))?$", re.I)
# Qualtrics adds this to a question with a list of answers, and to a text field.
_NO_PART = re.compile(r"(?: - (?:Selected Choice|Text))+$", re.I)
# Frequent questions of housing surveys; the first match names the question.
_TOPICS = (
    (r"\bgender\b|geschlecht|género|\bsexo\b", "Gender"),
    (r"go to bed|bed ?time|go to sleep|fall asleep|schlafen gehen|acuesta", "Bedtime"),
    (r"wake up|get up|rise in|aufstehen|despierta", "Wake-up"),
    (r"hours? (?:of|do you) sleep|sleep hours|many hours.*sleep", "Sleep hours"),
    (r"smok|vap(?:e|ing)|rauch|fumas?\b", "Smoking"),
    (r"alcohol|drink", "Drinking"),
    (r"\btidy|tidi|clean(?!ing supplies)|messy|neat|ordentlich|ordenad", "Tidiness"),
    (r"overnight", "Overnight guests"),
    (r"guest|visitor|friends over|gäste|visitas", "Guests"),
    (r"study|studying|lernen|estudia", "Study"),
    (r"noise|quiet|loud|laut|ruido", "Noise"),
    (r"temperature|warm or cold|heating", "Temperature"),
    (r"early bird|night owl|morning person", "Chronotype"),
    (r"introver|extrover|outgoing", "Sociability"),
    (r"allerg", "Allergies"),
    (r"free time|spare time|hobb|in the evening", "Free time"),
    (r"share|borrow", "Sharing"),
    (r"anything else|comments?\b", "Comments"),
)
_STOP = frozenset({
    "a", "about", "agree", "all", "am", "an", "and", "answer", "any", "apply", "are", "as", "at",
    "be", "been", "best", "by", "can", "choose", "could", "cómo", "das", "de", "der", "des",
    "describe", "describes", "dich", "did", "die", "do", "does", "du", "each", "el", "est",
    "extent", "following", "for", "from", "had", "has", "have", "how", "i", "if", "in", "indicate",
    "is", "ist", "it", "la", "las", "le", "les", "like", "los", "many", "me", "most", "much", "my",
    "of", "often", "on", "one", "or", "our", "please", "que", "quel", "qué", "rate", "room", "say",
    "select", "statement", "statements", "te", "tell", "that", "the", "their", "them", "there",
    "these", "they", "this", "to", "tu", "un", "una", "und", "us", "usually", "very", "was", "we",
    "what", "when", "where", "which", "who", "why", "wie", "will", "with", "would", "you", "your",
    "yourself",
})  # fmt: skip


def is_code(name: str) -> bool:
    """Return True if a header is only a question number, such as Q5_1."""
    return bool(_CODE.match(name))


def title_of(name: str, wording: str) -> str:
    """Return the title of a column: its wording if its name is a code, else its name."""
    return wording if wording and is_code(name) else name


def needs_short_name(name: str, *, is_wording: bool) -> bool:
    """Return True if a header is a code or a whole wording, too long for a table of weights.

    ``is_wording`` is true if the program that wrote the file puts wordings into its header.
    """
    longest = MAX_LETTERS if is_wording else LONG
    return is_code(name) or len(name) > longest or name.endswith("?")


def own_part(wording: str) -> str:
    """Return the column's own part of the wording of a grid: the row behind the question."""
    bracket = re.fullmatch(r".*\S\s*\[([^\[\]]{2,120})\]", wording)  # Google Forms
    if bracket:
        return bracket[1].strip()
    choice = re.fullmatch(r".*\S\s*\(choice=(.{1,120})\)", wording)  # REDCap
    if choice:
        return choice[1].strip()
    wording = _NO_PART.sub("", wording)
    head, dash, tail = wording.rpartition(" - ")  # Qualtrics
    if dash and 2 <= len(tail) <= 120 and len(head) >= 8:
        return tail.strip()
    return wording


def short_names(wordings: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return one short name per wording, each different from the others and from ``taken``."""
    used = {name.casefold() for name in taken}
    parts = [own_part(wording) for wording in wordings]
    topics = [_topic(part) for part in parts]
    times = Counter(topics)
    names = []
    for part, topic in zip(parts, topics, strict=True):
        name = topic if topic and times[topic] == 1 else _from_words(part)
        names.append(_free(name, used))
    return names


def _topic(text: str) -> str:
    lowered = text.casefold()
    return next((name for pattern, name in _TOPICS if re.search(pattern, lowered)), "")


def _from_words(text: str) -> str:
    words = re.findall(r"[^\W_]+(?:[-'’][^\W_]+)*", text)
    telling = [word for word in words if word.casefold() not in _STOP] or words or ["Question"]
    name: str = telling[0][:MAX_LETTERS]
    for word in telling[1:]:
        if len(name) + 1 + len(word) > MAX_LETTERS:
            break
        name += f" {word}"
    return name[:1].upper() + name[1:]


def _free(name: str, used: set[str]) -> str:
    free, count = name, 2
    while free.casefold() in used:
        tail = f" {count}"
        free = name[: MAX_LETTERS - len(tail)].rstrip() + tail
        count += 1
    used.add(free.casefold())
    return free
