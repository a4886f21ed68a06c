"""Addresses from returned mails (RFC 3464) and from plain lists."""

import email
import email.policy
import re
from email.message import Message

MAX_BYTES = 20_000_000
_MAX_PARTS = 50  # parts of one mail; deeper nesting is treated as an attack on the parser
_BREAKS = re.compile(r"[\s<>,;\"']+")
_LONGEST = 254
_ADDRESS = re.compile(r"[^\s<>,;\"']{1,64}@[^\s<>,;\"']{1,189}")
_FIELDS = re.compile(rb"(?mi)^(?:received|return-path|from|to|subject|date|message-id):")
_FIELDS_OF_A_MAIL = 3
_MBOX = re.compile(rb"(?m)^From [^\n]*\n")


def bounced_addresses(data: bytes) -> dict[str, str]:
    """Return {address: reason} of a file: returned mails (.eml, .mbox), or one address a line.

    In a returned mail only permanent failures count; "delayed" does not. A mail without a report
    of its delivery, such as an out-of-office reply, gives nothing: it names its sender.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # a list that Excel saved as Unicode text
        data = data[:MAX_BYTES].decode("utf-16", "replace").encode()
    if b"delivery-status" not in data[:MAX_BYTES].lower():
        if len(set(map(bytes.lower, _FIELDS.findall(data[:MAX_BYTES])))) >= _FIELDS_OF_A_MAIL:
            return {}
        text = data[:MAX_BYTES].decode("utf-8", "replace")
        words = (word for word in _BREAKS.split(text) if "@" in word and len(word) <= _LONGEST)
        found = (word.strip(".").lower() for word in words if _ADDRESS.fullmatch(word))
        return dict.fromkeys(found, "Marked by staff")
    return addresses_of_mails(data)


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
                kept[address.group().lower()] = " ".join(why.split())[:200] or "Undelivered"
    return kept
