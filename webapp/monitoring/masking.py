"""Masking of secrets in text: personal links, tokens and passwords never reach a log.

More people read logs than use the product; logs are copied to other machines and kept longer.
Every formatter of ours passes its output through :func:`mask`, whatever the source of the secret:
a path, a Referer header, an exception, another library.
"""

import re
from typing import Any

LINK = "[link]"
HIDDEN = "[hidden]"
ADDRESS = "[address]"

# A personal link, or one that stops mails: the whole part of a path after /q/ or /q/stop/, even of
# a broken link, since a wrong copy may lack only its last letter; and the token of a link
# anywhere else, percent-encoded too.
_STUDENT_PATH = re.compile(r"(/q/(?:stop/)?)(?!code/|mine/|stop/|\[)[^/\s?&#\"'<>]+")
_TILDE = "(?:~|%7[Ee])"
_TOKEN = re.compile(rf"(?<!\d)\d+(?:\.|%2[Ee])[\w-]{{6,16}}{_TILDE}\w{{1,8}}{_TILDE}[\w-]+")
_ADDRESS = re.compile(r"[^\s<>()\[\]\"',;:@]+@[^\s<>()\[\]\"',;:@]+")
_API_TOKEN = re.compile(r"\bbh_[\w-]{12,}")
_PASSWORD_OF_ADDRESS = re.compile(r"(\w://[^\s:/@]*):[^\s@/]+@")
_AUTHORIZATION = re.compile(r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_WORDS = (
    "code|state|nonce|token|id_token|id_token_hint|access_token|refresh_token|logout_token|"
    "client_secret|password|secret|SAMLRequest|SAMLResponse|RelayState|Signature"
)
_PARAMETER = re.compile(rf"([?&](?:{_WORDS})=)[^&\s\"'<>]+", re.IGNORECASE)


def mask(text: str) -> str:
    """Return the text without personal links, tokens and passwords."""
    text = _STUDENT_PATH.sub(rf"\1{LINK}", text)
    text = _TOKEN.sub(LINK, text)
    text = _PASSWORD_OF_ADDRESS.sub(rf"\1:{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    text = _API_TOKEN.sub(f"bh_{HIDDEN}", text)
    return _PARAMETER.sub(rf"\1{HIDDEN}", text)


def mask_addresses(text: str) -> str:
    """Return the text without e-mail addresses, such as a mail server's answer that repeats one."""
    return _ADDRESS.sub(ADDRESS, text)


def mask_all(value: Any) -> Any:
    """Return a value of a log line masked: texts, items of containers, and objects as text."""
    if isinstance(value, str):
        return mask(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {mask(str(name)): mask_all(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [mask_all(item) for item in value]
    return mask(str(value))
