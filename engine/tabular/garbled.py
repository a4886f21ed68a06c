"""Repair of letters that were read and saved in the wrong code page: "CafÃ©" for "Café"."""

from collections.abc import Iterable


def repaired(text: str) -> str:
    """Return a text with its letters as they were typed; unchanged if nothing is garbled.

    Needs ftfy, which comes with the extra "tables"; without it nothing is repaired.

    Examples
    --------
    >>> repaired("CafÃ©"), repaired("Café")
    ('Café', 'Café')
    """
    if text.isascii():
        return text
    try:
        from ftfy import fix_encoding
    except ImportError:
        return text
    fixed: str = fix_encoding(text)
    return fixed


def repairs(texts: Iterable[str]) -> dict[str, str]:
    """Return {garbled: repaired} of the texts that are garbled."""
    return {text: fixed for text in texts if (fixed := repaired(text)) != text}
