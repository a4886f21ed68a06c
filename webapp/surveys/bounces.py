"""Addresses from returned mails (RFC 3464), tables of a mail service, and plain lists.

A list of addresses does not say that they came back: it may be an address book. So only returned
mails and tables with a column of delivery states count by themselves; of a list staff are asked.
"""

import email
import email.policy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message

from django.utils.translation import gettext

from engine.tabular.source import Line
from webapp.surveys.content import QuestionnaireError
from webapp.tabular.reading import TableRefusal, read_source
from webapp.translation.lazy import gettext_lazy

MAX_BYTES = 20_000_000
_MAX_PARTS = 50  # parts of one mail; deeper nesting is treated as an attack on the parser
_BREAKS = re.compile(r"[\s<>,;\"']+")
_LONGEST = 254
_ADDRESS = re.compile(r"[^\s<>,;\"']{1,64}@[^\s<>,;\"']{1,189}")
_FIELDS = re.compile(rb"(?mi)^(?:received|return-path|from|to|subject|date|message-id):")
_FIELDS_OF_A_MAIL = 3
_MBOX = re.compile(rb"(?m)^From [^\n]*\n")


_REPORT = b"message/delivery-status"
_HEADING = re.compile(
    r"status|event|diagnos|bounce|deliver|reason|error|smtp|zustell|estado|statut", re.I
)
_RECIPIENT = re.compile(r"recip|rcpt|^to$|empf|destinat", re.I)
_LASTING = re.compile(
    r"(?:smtp; *)?5(?:\d\d|\.\d{1,3}\.\d{1,3})\b.*|.*\b5\d\d[ -]5\.\d{1,3}\.\d{1,3}\b.*|"
    r"(?:hard|permanent)(?:[ _-]?(?:bounced?|fail(?:ed|ure)?))?|"
    r"bounced?|failed|failure|undeliver(?:able|ed)|not delivered|returned|unzustellbar",
    re.I | re.S,
)
_OTHER = re.compile(
    r"[24]\.\d{1,3}\.\d{1,3}\b.*|[24]\d\d\b.*|"
    r"(?:soft|transient|temporary)(?:[ _-]?(?:bounced?|fail(?:ed|ure)?))?|delayed|deferred|"
    r"delivered|delivery|(?:e-?mail )?sent|opened?|clicked?|processed|queued|ok|success|"
    r"zugestellt|entregado",
    re.I | re.S,
)
_NO_STATES = gettext_lazy(
    "The file is a table, and no column says whether a mail came back. Nobody was marked. Choose "
    "the returned mails (.eml, .mbox), a file of a mail service with a column of delivery states, "
    "or a file with only the addresses."
)


@dataclass(frozen=True, slots=True)
class Returned:
    """Addresses with reasons, {address: reason}, and True if a mail server reported them."""

    addresses: dict[str, str]
    is_reported: bool


def returned_in(data: bytes, *, is_file: bool) -> Returned:
    """Return the addresses of a file or a pasted text, and whether a server reported them.

    In a returned mail only permanent failures count; "delayed" does not. A mail without a report
    of its delivery, such as an out-of-office reply, gives nothing: it names its sender. Raises
    QuestionnaireError for a table that says nothing about returned mails.
    """
    data = data[:MAX_BYTES]
    if _REPORT in data.lower():
        return Returned(addresses_of_mails(data), is_reported=True)
    if len(set(map(bytes.lower, _FIELDS.findall(data)))) >= _FIELDS_OF_A_MAIL:
        return Returned({}, is_reported=True)
    lines = _lines_of_table(data) if is_file else []
    width = max((sum(map(bool, cells)) for cells in lines), default=0)
    if width > 1 and not all(_ADDRESS.fullmatch(x) for cells in lines for x in cells if x):
        return Returned(_of_table(lines), is_reported=True)
    text = "\n".join(map(" ".join, lines)) if lines else data.decode("utf-8", "replace")
    words = (word for word in _BREAKS.split(text) if "@" in word and len(word) <= _LONGEST)
    found = (word.strip(".").lower() for word in words if _ADDRESS.fullmatch(word))
    return Returned(dict.fromkeys(found, gettext("Marked by staff")), is_reported=False)


def _lines_of_table(data: bytes) -> list[tuple[str, ...]]:
    """Return the rows of all sheets; none if the file cannot be read as a table."""
    try:
        source = read_source(len(data), lambda: data)
    except TableRefusal:
        return []
    return [line.cells for sheet in source.sheets for line in _rows(sheet.lines)]


def _rows(lines: Sequence[Line]) -> Iterator[Line]:
    yield from (line for line in lines if line.n_filled)


def _of_table(lines: list[tuple[str, ...]]) -> dict[str, str]:
    """Return the permanent failures of a table with a column of delivery states."""
    head, *rows = lines
    width = max(map(len, lines))
    columns = list(zip(*(row + ("",) * (width - len(row)) for row in rows), strict=True))
    names = head + ("",) * (width - len(head))
    states = [
        k
        for k, column in enumerate(columns)
        if _HEADING.search(names[k]) and _are_states([x for x in column if x])
    ]
    holding = [k for k, column in enumerate(columns) if any(map(_ADDRESS.search, column))]
    if len(holding) > 1:
        holding = [k for k in holding if _RECIPIENT.search(names[k])] or holding
    if not states or not holding:
        raise QuestionnaireError(_NO_STATES, "file")
    if len(holding) > 1:
        raise QuestionnaireError(
            gettext(
                "Several columns of the file hold addresses. Keep only the column of the "
                "recipients. Nobody was marked."
            ),
            "file",
        )
    found = {}
    for row in zip(*columns, strict=True):
        address = _ADDRESS.search(row[holding[0]])
        said = [row[k] for k in states if row[k]]
        if address and any(map(_is_lasting, said)) and not any(map(_OTHER.fullmatch, said)):
            found[address.group().lower()] = " ".join(" ".join(said).split())[:200]
    return found


def _are_states(values: list[str]) -> bool:
    """Return True if all values are delivery states such as "5.1.1" or "soft bounce"."""
    return bool(values) and all(_is_lasting(x) or _OTHER.fullmatch(x.strip()) for x in values)


def _is_lasting(text: str) -> bool:
    return _LASTING.fullmatch(text.strip()) is not None


def addresses_of_mails(data: bytes) -> dict[str, str]:
    """Return {address: reason} of returned mails; other mails give nothing.

    Programs pass on all mail, including out-of-office replies, which name many addresses.
    """
    kept: dict[str, str] = {}
    for part in _MBOX.split(data[:MAX_BYTES]):
        if part.strip() and not _is_too_deep(part):
            kept |= _of_mail(email.message_from_bytes(part, policy=email.policy.compat32))
    return kept


def _is_too_deep(mail: bytes) -> bool:
    low = mail.lower()
    return low.count(b"boundary") + low.count(b"message/rfc822") > _MAX_PARTS


def _of_mail(message: Message) -> dict[str, str]:
    kept = {}
    for part in message.walk():
        if part.get_content_type() != "message/delivery-status":
            continue
        blocks = part.get_payload()
        for block in blocks if isinstance(blocks, list) else []:
            if not isinstance(block, Message):
                continue
            status, action = str(block.get("Status", "")), str(block.get("Action", ""))
            who = str(block.get("Original-Recipient") or block.get("Final-Recipient") or "")
            address = _ADDRESS.search(who.partition(";")[2] or who)
            is_lasting = status.startswith("5") or (not status and action.lower() == "failed")
            if address and is_lasting:
                why = str(block.get("Diagnostic-Code") or status).partition(";")[2] or status
                kept[address.group().lower()] = " ".join(why.split())[:200] or gettext(
                    "Undelivered"
                )
    return kept
