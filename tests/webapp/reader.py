"""A client that reads pages as a browser shows them: runs of white space count as one."""

import re
from typing import Any

from django.test import Client

# White space at the edges of an element is not shown.
EDGE = re.compile(r"(<[a-zA-Z](?:[^<>\"]|\"[^\"]*\")*>)\s+|\s+(?=</|>)")


class Reader(Client):
    """Django's client, to which a page's lines are what they say and not where they break."""

    def request(self, **request: Any) -> Any:
        answer = super().request(**request)
        if not answer.streaming and answer.get("Content-Type", "").startswith("text/html"):
            text = answer.content.decode(answer.charset)
            answer.as_sent = text
            if "<pre" not in text and "<textarea" not in text:
                text = EDGE.sub(r"\1", re.sub(r"\s+", " ", text))
                answer.content = text.encode(answer.charset)
        return answer
