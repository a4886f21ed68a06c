"""Make the pictures of the guides from the running product.

    python -m docs.make_pictures [GUIDE ...]

Starts the product on an installation of its own, does what each guide says, and keeps the page
wherever the guide shows a picture.
"""

import argparse
import io
import re
import shlex
from collections.abc import Callable
from email import message_from_bytes, policy
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from docs.guide_walk import FOLDER, GuideWalk
from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium, sign_in
from tests.live.product import PASSWORD, Product, new_product
from tests.patience import wait_for

NAMES = ("housing-year", "collect-answers", "pictures-to-counts", "run-it")
GUIDES = tuple(FOLDER / "guides" / f"{name}.md" for name in NAMES)
WIDTH, HEIGHT = 1400, 900
SCALE = 1.25  # pixels of a picture for each pixel of the page
MAX_BYTES = 150_000
_PERSON = """
from webapp.accounts.models import Organisation, User
home = Organisation.objects.create(name="{organisation}", department="Student Life")
User.objects.create_user(
    username="{name}", password="{password}", organisation=home, role="administrator",
    is_operator=True,
)
"""


def make_person(product: Product, guide: Path) -> str:
    """Make an administrator and operator who follows a guide in an empty organisation."""
    name = f"reader-{guide.stem}"
    organisation = f"Lakeside College ({guide.stem.replace('-', ' ')})"
    product.run(_PERSON.format(organisation=organisation, name=name, password=PASSWORD))
    return name


def take_picture(page: Page, file: Path) -> None:
    """Keep the page as WebP."""
    page.wait_for_timeout(500)  # what comes after a click has come
    picture = Image.open(io.BytesIO(page.screenshot()))
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.save(file, "WEBP", quality=72, method=6)
    assert file.stat().st_size <= MAX_BYTES, f"{file.name} is larger than {MAX_BYTES:,} bytes"


def command_runner(product: Product) -> Callable[[str], None]:
    """Return a function that does a guide's command in the installation of a product."""

    def run(command: str) -> None:
        python, manage, *arguments = shlex.split(command)
        assert (python, manage) == ("python", "manage.py"), "only commands of manage.py"
        product.manage(*arguments)

    return run


def link_finder(product: Product) -> Callable[[str], str]:
    """Return a function that waits for a mail to an address and returns the link in it.

    An installation without a mail server keeps its mails as files.
    """

    def links_to(address: str) -> list[str]:
        files = sorted(
            (product.instance / "mail").glob("*.log"), key=lambda one: one.stat().st_mtime
        )
        mails = [
            message_from_bytes(part, policy=policy.default)
            for file in files
            for part in file.read_bytes().split(b"-" * 79 + b"\n")
        ]
        texts = [
            mail.get_body(("plain",)).get_content() for mail in mails if address in str(mail["To"])
        ]
        return [link for text in texts for link in re.findall(r"http://\S+/q/(?!stop/)\S+/", text)]

    def find_link(address: str) -> str:
        return wait_for(lambda: links_to(address), logs=product.logs)[-1]

    return find_link


def make_pictures(guides: list[Path]) -> None:
    """Walk the guides in one installation and keep their pictures."""
    with TemporaryDirectory(prefix="bh-guides-") as folder, sync_playwright() as playwright:
        product = new_product(Path(folder), DJANGO_SETTINGS_MODULE="tests.webapp.live_settings")
        product.start()
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        try:
            for guide in guides:
                context = chromium.new_context(
                    base_url=product.url,
                    viewport={"width": WIDTH, "height": HEIGHT},
                    device_scale_factor=SCALE,
                    reduced_motion="reduce",
                )
                page = context.new_page()
                sign_in(page, make_person(product, guide))
                walk = GuideWalk(
                    page,
                    guide,
                    run=command_runner(product),
                    find_link=link_finder(product),
                    take=take_picture,
                )
                walk.go()
                print(f"{guide.stem}: {walk.acts} acts")
                context.close()
        finally:
            chromium.close()
            product.stop()


def main() -> None:
    """Make the pictures of all guides, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("guides", nargs="*", choices=[[], *NAMES])
    names = parser.parse_args().guides
    make_pictures([path for path in GUIDES if not names or path.stem in names])


if __name__ == "__main__":
    main()
