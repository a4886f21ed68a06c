"""A person at a browser without scripts, over real HTTP."""

import re
from typing import Any

import requests

from tests.live.product import PASSWORD, Product

PATIENCE = 60.0
PAGES = 60  # of those that links lead to


class Visitor:
    """Somebody who is signed in."""

    def __init__(self, product: Product, name: str = "bob") -> None:
        self.url = product.url
        self.session = requests.Session()
        page = self.get("/accounts/sign-in/")
        form = {"username": name, "password": PASSWORD}
        answer = self.post("/accounts/sign-in/", form | self.token_of(page))
        assert answer.status_code == 200, answer.text[:500]
        assert "sign-in" not in answer.url

    def get(self, path: str, timeout: float = PATIENCE) -> requests.Response:
        """Load a page."""
        return self.session.get(self.url + path, timeout=timeout)

    def post(
        self, path: str, form: dict[str, Any], timeout: float = PATIENCE, **options: Any
    ) -> requests.Response:
        """Send a form."""
        return self.session.post(self.url + path, form, timeout=timeout, **options)

    def token_of(self, page: requests.Response) -> dict[str, str]:
        """Return the field by which a form of this page is known."""
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert found, page.text[:500]
        return {"csrfmiddlewaretoken": found[1]}

    def pages(self) -> dict[str, int]:
        """Follow the links of the site from its home; return what pages answer."""
        ahead, found = ["/"], {}
        while ahead and len(found) < PAGES:
            path = ahead.pop(0)
            answer = self.get(path)
            if not answer.headers.get("Content-Type", "").startswith("text/html"):
                continue  # a download leaves an audit line, which is a change
            found[path] = answer.status_code
            for link in re.findall(r'href="(/[^"#]*)"', answer.text):
                if not link.startswith("/static/") and link not in found and link not in ahead:
                    ahead.append(link)
        return found
