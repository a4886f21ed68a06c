"""Steps of a guide, read from its Markdown and done in a browser.

A step is a numbered line. Every sentence of a step that holds bold words, a file to upload or a
command must be one of the acts below, so that a renamed button stops the walk. Other sentences
explain. A picture between two steps is the page as it stands there.

    Open **Buildings** in the menu.              a line of the menu on the left
    Press **Import a survey**.                   a button, link or menu of the page
    Press **Accept**, then **Next**.             one after the other
    Press **Accept 48 rooms**.                   another number of rooms is right too
    Press the key `J`.
    Press **Next** until the page says **Finish**.
    Type `Returning` in **Name of the cohort**.
    Choose **10 minutes** in **Stop after**.
    Choose the day three weeks from today in **Last day**.
    Tick **Accessible**.
    Upload [rooms.csv](../samples/rooms.csv).    into the file field of the page
    Paint a stroke across the left part of the picture.      or the middle
    Wait until the page says **Certified**.
    When the page says **6 saved**, press **Close this list**.
    The page says **100 of 100 students have a bed**.
    Open the link in the mail to `ana@students.example` in a new tab.
    Close the tab.
    Run `python manage.py check`.                a command of the installation
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from playwright.sync_api import Error, Locator, Page, Request

FOLDER = Path(__file__).resolve().parent
WAIT_SECONDS = 60.0
BUSY = ".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added"  # a part is on its way
QUIET_LOOKS = 3
MAX_REPEATS = 40
JOB_SECONDS = 240.0  # for what the page says when a job has ended
BOLD = re.compile(r"\*\*([^*]+)\*\*")
STEP = re.compile(r"^\d+\. (.*(?:\n   .*)*)", re.M)
PICTURE = re.compile(r"^!\[(?P<words>[^\]]+)\]\((?P<file>[^)]+)\)", re.M)
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z])")
COUNT = re.compile(r"\b\d+ (rooms|students|pairs)\b")  # a search with a time limit ends anywhere
IS_ACT = re.compile(r"\*\*|^(?:Upload|Run|Type|Paint|Press|Open|Close) ")
STROKES = {"left part": (0.12, 0.28), "middle": (0.45, 0.6)}  # shares of the width


class StepError(AssertionError):
    """A step that cannot be done as its guide says."""


@dataclass(frozen=True, slots=True)
class Step:
    """A numbered line of a guide: its line and its sentences."""

    line: int
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a guide shows between two steps."""

    line: int
    file: Path


def read_guide(path: Path) -> list[Step | Picture]:
    """Return the steps and the pictures of a guide in their order."""
    text = path.read_text(encoding="utf-8")
    found = [(match.start(), match) for match in STEP.finditer(text)]
    found += [(match.start(), match) for match in PICTURE.finditer(text)]
    parts: list[Step | Picture] = []
    for place, match in sorted(found, key=lambda item: item[0]):
        line = text.count("\n", 0, place) + 1
        if match.re is PICTURE:
            parts.append(Picture(line, (path.parent / match["file"]).resolve()))
        else:
            parts.append(Step(line, tuple(SENTENCE.split(" ".join(match[1].split())))))
    return parts


@dataclass
class GuideWalk:
    """A walk through one guide in one browser page.

    ``run`` does a command of the installation, ``find_link`` returns the link in the newest mail to
    an address, and ``take`` keeps the page as a picture.
    """

    page: Page
    path: Path
    run: Callable[[str], None] | None = None
    find_link: Callable[[str], str] | None = None
    take: Callable[[Page, Path], None] = lambda page, file: None
    acts: int = 0
    first_tab: Page | None = None  # while another tab is open
    requests: set[Request] = field(default_factory=set)  # that are on their way

    def __post_init__(self) -> None:
        """Follow the requests of the page."""
        self._follow(self.page)

    def _follow(self, page: Page) -> None:
        page.on("request", lambda request: self.requests.add(request))
        page.on("requestfinished", lambda request: self.requests.discard(request))
        page.on("requestfailed", lambda request: self.requests.discard(request))

    def _settle(self) -> None:
        """Wait until what a press asked for has come, as a person does before the next press."""
        quiet = 0
        deadline = time.monotonic() + WAIT_SECONDS / 4
        while quiet < QUIET_LOOKS and time.monotonic() < deadline:
            self.page.wait_for_timeout(40)
            quiet = 0 if self.requests else quiet + 1
        self.page.wait_for_load_state()

    def go(self) -> None:
        """Do every step in its order."""
        for part in read_guide(self.path):
            if isinstance(part, Picture):
                self.take(self.page, part.file)
                continue
            for sentence in part.sentences:
                try:
                    self._do(sentence)
                except (AssertionError, Error) as error:
                    raise StepError(
                        f"{self.path.name}, line {part.line}: “{sentence}”: {error}\n"
                        f"{self.page.url}\n{self._page_in_words()}"
                    ) from error

    def _do(self, sentence: str) -> None:
        for pattern, act in ACTS:
            match = pattern.fullmatch(sentence)
            if match is not None:
                act(self, *match.groups())
                self.acts += 1
                return
        if IS_ACT.search(sentence):
            raise StepError("no act of docs/guide_walk.py reads like this")

    def _open(self, name: str) -> None:
        self._find(lambda: [self.page.locator(".rail").get_by_role("link", name=name)]).click()
        self._settle()

    def _press(self, words: str) -> None:
        for name in BOLD.findall(words):
            self._find(lambda name=name: self._pressable(name)).click()
            self._settle()

    def _pressable(self, name: str) -> Iterator[Locator]:
        """Yield what a person may mean by a name, the likeliest first."""
        yield from self._pressable_as(name, _exactly(name))
        if COUNT.search(name):
            pattern = COUNT.sub(r"\\d+ \1", re.escape(name).replace("\\ ", " "))
            yield from self._pressable_as(name, re.compile(rf"^\s*{pattern}\s*$"))

    def _pressable_as(self, name: str, pattern: re.Pattern[str]) -> Iterator[Locator]:
        dialog = self.page.locator("dialog[open]")
        places = [dialog.last] if dialog.count() else []
        places += [self.page.locator("details[open]").last, self.page.locator("main"), self.page]
        for place in places:
            for role in ("button", "link", "tab", "radio"):
                yield place.get_by_role(role, name=pattern)
            yield place.locator("summary").filter(has_text=pattern)
            yield place.locator(f'summary[aria-label="{name}"]')
            yield place.locator("label").filter(has_text=pattern)

    def _press_until(self, name: str, words: str) -> None:
        for _ in range(MAX_REPEATS):
            self._press(f"**{name}**")
            if _first_visible([self.page.get_by_text(words)]) is not None:
                return
        raise StepError(f"pressed {MAX_REPEATS} times")

    def _press_when(self, words: str, names: str) -> None:
        self._wait(words)
        self._press(names)

    def _key(self, key: str) -> None:
        self.page.keyboard.press(key if len(key) > 1 else key.lower())

    def _type(self, text: str, label: str) -> None:
        self._find(lambda: self._labelled(label)).fill(text)

    def _choose(self, option: str, label: str) -> None:
        self._find(lambda: self._labelled(label)).select_option(label=option)
        self._settle()

    def _choose_day(self, label: str) -> None:
        day = date.today() + timedelta(weeks=3)
        self._find(lambda: self._labelled(label)).fill(day.isoformat())

    def _labelled(self, label: str) -> Iterator[Locator]:
        for selector in ("dialog[open]", "details[open]", "main", "body"):
            yield self.page.locator(selector).last.get_by_label(label, exact=True)

    def _tick(self, name: str) -> None:
        self._find(
            lambda: [
                self.page.get_by_role(role, name=name, exact=True) for role in ("checkbox", "radio")
            ]
        ).check()

    def _upload(self, words: str) -> None:
        files = [(self.path.parent / name).resolve() for name in re.findall(r"\]\((.+?)\)", words)]
        assert all(file.is_file() for file in files), "the file is not there"
        self.page.wait_for_load_state()
        fields = self.page.locator("input[type=file]")
        self._until(lambda: fields.count() > 0, "the page has no field for files", WAIT_SECONDS)
        open_ones = self.page.locator("details[open], dialog[open]").locator("input[type=file]")
        place = open_ones if open_ones.count() else fields
        place.first.set_input_files([str(file) for file in files])

    def _paint(self, part: str) -> None:
        self.page.wait_for_selector("[data-ready=true]", state="attached")
        box = self.page.locator("canvas").first.bounding_box()
        assert box is not None
        start, end = STROKES[part]
        y = box["y"] + box["height"] * 0.5
        self.page.mouse.move(box["x"] + start * box["width"], y)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + end * box["width"], y + 20, steps=6)
        self.page.mouse.up()

    def _wait(self, words: str) -> None:
        said = self.page.get_by_text(words)
        self._until(lambda: _first_visible([said]) is not None, "never said", JOB_SECONDS)
        self.page.wait_for_load_state()

    def _open_mail(self, address: str) -> None:
        assert self.find_link is not None, "this walk reads no mails"
        link = self.find_link(address)
        self.first_tab, self.page = self.page, self.page.context.new_page()
        self._follow(self.page)
        self.page.goto(link)

    def _close_tab(self) -> None:
        assert self.first_tab is not None, "no tab was opened"
        self.page.close()
        self.page, self.first_tab = self.first_tab, None
        self.page.bring_to_front()

    def _command(self, command: str) -> None:
        assert self.run is not None, "this walk runs no commands"
        self.run(command)

    def _find(self, candidates: Callable[[], Iterator[Locator] | list[Locator]]) -> Locator:
        found: list[Locator] = []

        def look() -> bool:
            if self.page.locator(BUSY).count():
                return False
            one = _first_visible(candidates())
            found[:] = [one] if one is not None else []
            return bool(found)

        self._until(look, "not on the page", WAIT_SECONDS)
        return found[0]

    def _until(self, condition: Callable[[], bool], otherwise: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            is_late = time.monotonic() > deadline  # a page that was slow gets one more look
            try:
                if condition():
                    return
            except Error as error:  # the page went away under the question
                if "context was destroyed" not in error.message and "navig" not in error.message:
                    raise
            assert not is_late, otherwise
            self.page.wait_for_timeout(100)

    def _page_in_words(self) -> str:
        """Return the visible buttons, links and fields of the page, for a message."""
        return str(
            self.page.evaluate(
                """() => [...document.querySelectorAll("main :is(h1,h2,button,a,summary,label)")]
                .concat([...document.querySelectorAll("dialog[open] :is(h2,button,a,label)")])
                .filter(e => e.checkVisibility())
                .map(e => `${e.tagName.toLowerCase()}: ${(e.innerText.trim()
                  || e.getAttribute("aria-label") || e.title).slice(0, 90)}`)
                .join("\\n")"""
            )
        )


def _exactly(name: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*{re.escape(name)}\s*$")


def _first_visible(candidates: Iterator[Locator] | list[Locator]) -> Locator | None:
    for candidate in candidates:
        for k in range(min(candidate.count(), 40)):
            if candidate.nth(k).is_visible():
                return candidate.nth(k)
    return None


ACTS: list[tuple[re.Pattern[str], Callable[..., None]]] = [
    (re.compile(r"Open \*\*([^*]+)\*\* in the menu\."), GuideWalk._open),
    (re.compile(r"Press (\*\*[^*]+\*\*(?:, then \*\*[^*]+\*\*)*)\."), GuideWalk._press),
    (
        re.compile(r"Press \*\*([^*]+)\*\* until the page says \*\*([^*]+)\*\*\."),
        GuideWalk._press_until,
    ),
    (re.compile(r"Press the key `(.+?)`\."), GuideWalk._key),
    (re.compile(r"Type `(.+?)` in \*\*([^*]+)\*\*\."), GuideWalk._type),
    (re.compile(r"Choose \*\*([^*]+)\*\* in \*\*([^*]+)\*\*\."), GuideWalk._choose),
    (
        re.compile(r"Choose the day three weeks from today in \*\*([^*]+)\*\*\."),
        GuideWalk._choose_day,
    ),
    (re.compile(r"Tick \*\*([^*]+)\*\*\."), GuideWalk._tick),
    (re.compile(r"Upload (\[.+\]\(.+\))\."), GuideWalk._upload),
    (
        re.compile(r"Paint a stroke across the (left part|middle) of the picture\."),
        GuideWalk._paint,
    ),
    (re.compile(r"Wait until the page says \*\*([^*]+)\*\*\."), GuideWalk._wait),
    (
        re.compile(r"When the page says \*\*([^*]+)\*\*, press (\*\*[^*]+\*\*)\."),
        GuideWalk._press_when,
    ),
    (re.compile(r"The page (?:now )?says \*\*([^*]+)\*\*\."), GuideWalk._wait),
    (re.compile(r"Open the link in the mail to `(.+?)` in a new tab\."), GuideWalk._open_mail),
    (re.compile(r"Close the tab\."), GuideWalk._close_tab),
    (re.compile(r"Run `(.+?)`\."), GuideWalk._command),
]
