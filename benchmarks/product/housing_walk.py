"""A housing office's year in Chromium: from files to published rooms, and the August changes.

    python -m benchmarks product housing_walk [--short] [--store] [--instance DIR] [--screens DIR]

Starts the product on an installation of its own, uploads the files of ``housing_university`` and
goes the way that staff go: import, learn, requests, choices, place, place again as a version, take
it over and restore the first, acts on all rooms, publish, rosters, letters, a late change that is
confirmed and undone, withdrawals, late arrivals that are removed and imported again, late changes,
letters again, a purge that is refused, and the publication withdrawn. Counts every click and key,
and the seconds that a person would have waited, and prints them by step, and the server's processor
milliseconds by page. ``--store`` writes them to ``stored_housing_walk.json`` beside this file.
``tests/browser/test_housing.py`` walks the short way. At full size a placement may end with a gap,
which is printed as it stands on the page.
"""

import argparse
import csv
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Locator

from benchmarks.product.browser_walk import Walk as BrowserWalk
from benchmarks.product.browser_walk import walk_in_chromium
from benchmarks.product.housing_university import FULL, SHORT, HousingYear, write_year

JOB_MS = 1_500_000  # a job has limits of processor time, which take longer on a busy machine
STORED = Path(__file__).with_name("stored_housing_walk.json")


@dataclass
class Walk(BrowserWalk):
    """The walk of a housing office through a year."""

    year: HousingYear | None = None
    rooms: dict[str, str] = field(default_factory=dict)  # of the last roster, by id
    cohort: str = ""  # address of the first-years, of their placement, and of its letters
    placement: str = ""
    desk: str = ""

    @property
    def change_beds(self) -> Locator:
        """The button that confirms a change of published beds."""
        return self.page.get_by_role("button", name=re.compile("^Change the beds of"))


def walk_year(walk: Walk) -> None:
    """Go from files to published rooms, and through August."""
    for name, go in STEPS:
        with walk.step(name):
            go(walk)


def import_first_years(walk: Walk) -> None:
    """Import the students who are to be housed."""
    import_cohort(walk, walk.year.survey, "First-years")
    walk.cohort = walk.page.url.split("?")[0]


def letters(walk: Walk) -> None:
    """Write a letter, look at it, and send it to everybody with a room."""
    write_letter(walk)
    addresses(walk)
    test_letter(walk)
    mail_merge(walk)
    walk.look(walk.page, "letters before sending")
    send_letters(walk)
    walk.desk = walk.page.url.split("?")[0]


def last_roster(walk: Walk) -> None:
    """Download who lives where after the late changes."""
    walk.page.goto(walk.placement)
    roster(walk)


def letters_again(walk: Walk) -> None:
    """Send to the students whose room, bed or roommates changed."""
    walk.page.goto(walk.desk)
    addresses(walk)
    send_letters(walk)


def import_cohort(walk: Walk, file: Path, name: str) -> None:
    """Upload a survey, take what is proposed, and import it."""
    page = walk.page
    page.goto("/cohorts/import/")
    walk.upload(file, page.get_by_text("Ready to import"))
    fixes = page.get_by_role("button", name=re.compile("^Use (the fix|all [0-9]+ fixes)"))
    if fixes.count():
        walk.click(fixes.first)
        fixes.first.wait_for(state="detached")
    walk.click(page.locator("button[data-dialog-open=confirm-import]").first)
    dialog = page.locator("#confirm-import")
    walk.type(dialog.get_by_label("Name of the cohort"), name)
    done = page.locator("h1", has_text=name)
    walk.click(dialog.get_by_role("button", name="Import", exact=True), done)


def import_pairs(walk: Walk) -> None:
    """Import who shared a room last year."""
    page = walk.page
    walk.click(page.get_by_role("link", name="Import pairs"), page.locator("#file"))
    ready = page.locator("button.button--primary", has_text="Import")
    walk.upload(walk.year.past_pairs, ready)
    walk.click(ready.first, page.get_by_text("Ready to learn from"))


def learn(walk: Walk) -> None:
    """Learn from the returning students."""
    page = walk.page
    walk.click(page.get_by_role("link", name="Learn from it"), page.locator("#learn-form"))
    button = page.locator("#learn-form").get_by_role("button", name="Learn")
    walk.click(button, page.get_by_text("Certified: within"), JOB_MS)


def import_rooms(walk: Walk) -> None:
    """Import the building list."""
    page = walk.page
    page.goto("/buildings/new/")
    ready = page.locator("button.button--primary", has_text="Import")
    walk.upload(walk.year.rooms, ready)
    page.get_by_label("Name of the building list").fill("Main campus")
    walk.click(ready.first, page.locator("h1", has_text="Main campus"))


def requests(walk: Walk) -> None:
    """Import requests, split the groups that fit no room, and leave out what names nobody."""
    page = walk.page
    page.goto(walk.cohort)
    link = page.get_by_role("link", name="Roommate requests")
    walk.click(link, walk.button("Import requests"))
    walk.click(walk.button("Import requests"), page.locator("#import input[type=file]"))
    page.set_input_files("#import input[type=file]", walk.year.requests)
    form = page.locator("#import").get_by_role("button", name="Import", exact=True)
    checked = page.get_by_role("button", name=re.compile(r"^Import [\d,]+ requests?$"))
    walk.click(form, checked)
    walk.click(checked, page.locator(".toast"))
    walk.facts["requests"] = page.locator(".toast span").first.inner_text()
    leave = walk.button("Leave out")
    while leave.count():
        walk.click(leave.first, page.locator(".toast"))
    split = walk.button("Split all as shown")
    one = page.locator("button", has_text="Split ")
    if split.count() or one.count():
        walk.click(split if split.count() else one.first, page.locator(".toast"))


def choices(walk: Walk) -> None:
    """Import the choices of hall."""
    page = walk.page
    page.goto(f"{walk.cohort}requests/")
    walk.click(walk.button("Import choices"), page.locator("#preferences input[type=file]"))
    page.set_input_files("#preferences input[type=file]", walk.year.choices)
    checked = page.get_by_role("button", name=re.compile(r"^Import [\d,]+ choices?$"))
    walk.click(page.locator("#preferences").get_by_role("button", name="Import"), checked)
    walk.click(checked, page.locator(".toast", has_text="choices imported"))
    walk.facts["choices"] = page.locator(".toast span").first.inner_text()


def place(walk: Walk) -> None:
    """Place the first-years under the rules that are proposed."""
    page = walk.page
    page.goto(walk.cohort)
    walk.click(page.get_by_role("link", name="Place in rooms"), page.locator("#cohort"))
    walk.click(
        page.locator("button.button--primary", has_text="Place"),
        page.locator(".room-card"),
        JOB_MS,
    )
    walk.placement = page.url.split("?")[0]
    walk.facts["placed"] = page.locator(".page-header__facts").inner_text()
    walk.facts["certificate"] = page.locator(".page-header__title").inner_text().replace("\n", ": ")


def place_again(walk: Walk) -> None:
    """Compute another version, look at what it would change, and take it over."""
    page = walk.page
    walk.click(page.locator(".page-header summary[aria-label='More actions']"))
    waiting = page.get_by_role("link", name="See what would change")
    walk.click(walk.button("Place again as a new version"), waiting, JOB_MS)
    walk.facts["version waits"] = page.locator(
        "section[aria-label='A new version'] p"
    ).first.inner_text()
    use = page.get_by_role("button", name=re.compile("^Use version 2"))
    walk.click(waiting, use)
    walk.facts["now and then"] = page.locator(".side table").first.inner_text().replace("\n", "; ")
    walk.look(page, "version compared")
    walk.click(use, page.locator(".toast", has_text="Version 2 taken into force"))


def restore(walk: Walk) -> None:
    """Restore the first version from the history."""
    page = walk.page
    page.goto(f"{walk.placement}history/")
    walk.look(page, "history")
    back = page.get_by_role("button", name=re.compile("^Restore version 1"))
    compare = page.get_by_role("link", name=re.compile("restore Version 1$"))
    walk.click(compare, page.locator("h1", has_text="Version 1: what would change"))
    if not back.count():  # the second version found the same rooms
        walk.facts["restored"] = page.locator(".notice p").first.inner_text()
        return
    walk.click(back, page.locator(".toast", has_text="Version 1 restored"))
    walk.facts["restored"] = page.locator(".toast span").first.inner_text()


def bulk_acts(walk: Walk) -> None:
    """Accept, lock and release all rooms of the page: each act names its number and asks."""
    page = walk.page
    page.goto(walk.placement)
    for act, words in (
        ("Accept all…", "accepted"),
        ("Lock all…", "locked"),
        ("Release all…", "released"),
    ):
        walk.click(page.locator("#bulk-acts summary"))
        walk.click(walk.button(act), page.locator("#question"))
        walk.facts[act] = page.locator("#question").inner_text().replace("\n", " ")
        walk.look(page, f"question {act.split()[0].lower()}")
        yes = page.locator("#question button[type=submit]")
        walk.click(yes, page.locator(".toast", has_text=words).last)
        page.locator("#question").wait_for(state="detached")


def decide(walk: Walk) -> None:
    """Decide rooms by keyboard; lock, swap, empty and undo."""
    page = walk.page
    walk.press("j", page.locator("[data-room]:focus"))
    walk.press("Enter", page.locator("#drawer [data-drawer]"))
    before = page.locator("#drawer [data-drawer]").get_attribute("data-drawer")
    locked = page.locator(f"#room-{before} .room-card__head .icon")
    begun = time.perf_counter()
    walk.press("l", page.locator(f"#drawer [data-drawer]:not([data-drawer='{before}'])"))
    walk.facts["decision shown after (ms)"] = f"{1000 * (time.perf_counter() - begun):.0f}"
    locked.first.wait_for()
    walk.press("e", page.locator(".toast", has_text="moved out"))
    walk.press("z", page.locator(".toast", has_text="Undone"))
    page.locator("#drawer [data-drawer]").wait_for()
    swap = page.locator(".swap-list button", has_text="Swap")
    if swap.count():
        walk.click(swap.first, page.locator(".toast", has_text="swapped"))
    walk.press("Escape")


def publish(walk: Walk) -> None:
    """Publish, after the question that names who has no room."""
    page = walk.page
    walk.click(walk.button("Publish…"), page.locator("#publish-form"))
    button = page.locator("#publish-form").get_by_role("button", name="Publish", exact=True)
    walk.click(button, page.get_by_role("link", name="Late changes"))


def roster(walk: Walk) -> None:
    """Download who lives where, and hold it against the files."""
    page = walk.page
    walk.click(walk.button("Export"), page.locator("#roster"))
    with page.expect_download() as download:
        walk.click(page.locator("#roster").get_by_role("button", name="CSV"))
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    beds = [(row["Building"], row["Room"], row["Bed"]) for row in rows if row["Room"]]
    assert len(set(beds)) == len(beds), "a bed holds two"
    ids = [row["Student ID"] for row in rows]
    assert len(set(ids)) == len(ids), "somebody is in the roster twice"
    walk.facts[f"{walk.steps[-1].name}"] = f"{len(beds):,} of {len(ids):,} have a bed"
    walk.rooms = {row["Student ID"]: row["Room"] for row in rows if row["Room"]}
    page.keyboard.press("Escape")


def write_letter(walk: Walk) -> None:
    """Keep the letter that is proposed, and open it with the students of the placement."""
    page = walk.page
    write = page.get_by_role("link", name="Write a letter")
    walk.click(page.locator(".tabs").get_by_role("link", name="Letters"), write)
    walk.click(write, page.get_by_label("Letter", exact=True))
    walk.click(walk.button("Keep the letter"), page.locator(".toast", has_text="is kept"))
    walk.click(page.get_by_role("link", name="Open the letters of").first, page.locator(".letter"))


def addresses(walk: Walk) -> None:
    """Take names and e-mails from a file of the registrar."""
    page = walk.page
    page.set_input_files("#file", walk.year.addresses)
    checked = page.get_by_role("button", name=re.compile("^Import e-mails of"))
    walk.click(walk.button("Check the e-mails"), checked)
    walk.click(checked, page.locator(".toast", has_text="found"))


def test_letter(walk: Walk) -> None:
    """Look at the letters of two students, and send one of them to oneself."""
    page = walk.page
    first = page.locator(".letter").get_attribute("aria-label")
    other = page.locator(f".letter:not([aria-label='{first}'])")
    walk.click(page.get_by_role("link", name="Next student"), other)
    walk.type(page.get_by_label("Send this one to yourself"), "carol@university.example")
    walk.click(walk.button("Send a test"), page.locator(".toast", has_text="went to"))


def mail_merge(walk: Walk) -> None:
    """Download the letters for a mail merge, and hold them against the roster."""
    page = walk.page
    walk.click(page.locator("summary", has_text="Mail merge"))
    with page.expect_download() as download:
        walk.click(page.get_by_role("link", name="CSV for Word's merge fields"))
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    told = {row["Id"]: row["Room"] for row in csv.DictReader(text.splitlines())}
    assert told == walk.rooms, "a letter tells another room than the roster"


def send_letters(walk: Walk) -> None:
    """Send to whom something new is told, and wait until all have left."""
    page = walk.page
    name = walk.steps[-1].name
    walk.click(page.locator("button[data-dialog-open=send]"), page.locator("#send form"))
    begun = time.perf_counter()
    button = page.locator("#send button[type=submit]")
    walk.click(button, page.locator(".toast", has_text="on their way"))
    walk.facts[name] = page.locator(".toast span").first.inner_text()
    waiting = page.locator(".page-header__facts", has_text=re.compile(r"\b0 on their way"))
    while not waiting.count():
        page.wait_for_timeout(1000)
        page.reload()
    left = page.locator(".page-header__facts").inner_text()
    walk.facts[f"{name}: all gone after (s)"] = f"{time.perf_counter() - begun:.0f}: {left}"


def late_change_by_hand(walk: Walk) -> None:
    """Empty a room of a published placement: a draft that names the people, then confirmed."""
    page = walk.page
    page.goto(walk.placement)
    walk.press("j")
    walk.press("j")  # the first room is locked
    walk.press("Enter", page.locator("#drawer [data-drawer]"))
    walk.press("e", page.locator(".draft"))
    walk.facts["draft"] = page.locator(".draft p").first.inner_text()
    walk.look(page, "draft of late changes")
    confirm = page.locator(".draft button[value=confirm]")
    walk.click(confirm, page.locator(".toast", has_text="confirmed"))


def undo_late_change(walk: Walk) -> None:
    """Undo it in the history, after the question that names the published beds."""
    page = walk.page
    page.goto(f"{walk.placement}history/")
    walk.click(page.get_by_role("button", name=re.compile("^Undo")).first, walk.change_beds)
    walk.facts["undo asks"] = page.locator("main").inner_text().replace("\n", " ")[:300]
    walk.look(page, "undo asks")
    walk.click(walk.change_beds, page.locator(".toast", has_text="Undone"))


def undo_latecomers(walk: Walk) -> None:
    """Remove the late arrivals again, in the history."""
    page = walk.page
    page.goto(f"{walk.placement}history/")
    walk.look(page, "history with late arrivals")
    undo = page.get_by_role("button", name=re.compile("^Undo.*joined and wait"))
    remove = page.get_by_role("button", name=re.compile("^Remove "))
    walk.click(undo, remove)
    walk.look(page, "late arrivals undo asks")
    walk.click(remove, page.locator(".toast", has_text="removed from"))
    walk.facts["latecomers removed"] = page.locator(".toast span").first.inner_text()


def purge(walk: Walk) -> None:
    """Ask to purge the cohort of a published placement: the question says what stands before it."""
    page = walk.page
    page.goto(walk.cohort)
    walk.click(page.locator(".page-header summary[aria-label='More actions']"))
    walk.click(walk.button("Purge this cohort"), page.locator("#purge form"))
    words = page.locator("#purge").inner_text()
    assert "Withdraw the publication first" in words
    assert page.locator("#purge-name").is_disabled()
    walk.facts["purge"] = words.replace("\n", " ")
    walk.look(page, "purge asks")
    walk.press("Escape")


def unpublish(walk: Walk) -> None:
    """Withdraw the publication, after the question that names its beds."""
    page = walk.page
    page.goto(walk.placement)
    walk.click(page.locator(".page-header summary[aria-label='More actions']"))
    walk.click(walk.button("Withdraw the publication…"), page.locator("#question"))
    walk.facts["withdrawal"] = page.locator("#question").inner_text().replace("\n", " ")
    walk.look(page, "withdrawal asks")
    walk.click(page.locator("#question button[type=submit]"), walk.button("Publish…"))


def withdraw(walk: Walk) -> None:
    """Say who withdrew, by the ids of the housing system."""
    page = walk.page
    page.goto(f"{walk.placement}changes/")
    walk.type(page.get_by_label("Students", exact=True), "\n".join(walk.year.withdrawn))
    walk.click(walk.button("Withdraw"), page.locator(".draft"))
    confirm = page.locator(".draft button[value=confirm]")
    walk.click(confirm, page.locator(".toast", has_text="confirmed"))


def latecomers(walk: Walk) -> None:
    """Add the latecomers' file to the cohort."""
    page = walk.page
    page.goto(f"{walk.placement}changes/")
    walk.click(page.get_by_role("link", name="Add students"), page.locator("#file"))
    checked = page.get_by_role("button", name=re.compile(r"^Import \d+ students?$"))
    walk.upload(walk.year.latecomers, checked)
    walk.click(checked, page.locator(".toast", has_text="added"))
    walk.facts["latecomers"] = page.locator(".toast span").first.inner_text()


def late_changes(walk: Walk) -> None:
    """Compute who moves, look, and keep it."""
    page = walk.page
    page.goto(f"{walk.placement}changes/")
    work = page.get_by_role("button", name="Compute the changes")
    walk.click(work, page.get_by_text("Who moves and why"), JOB_MS)
    walk.facts["late changes"] = page.locator(".section-row").first.inner_text()
    walk.look(page, "late changes proposed")
    walk.click(
        page.get_by_role("button", name="Keep these changes"),
        page.locator(".toast", has_text="kept"),
    )


def by_keyboard(walk: Walk) -> None:
    """Look at rooms and decide about them without a mouse: J, Enter, A, M, S, Escape, Shift+Tab."""
    page = walk.page
    page.goto(walk.placement)
    drawer, dialog = page.locator("#drawer [data-drawer]"), page.locator("dialog[open]")
    walk.press("j")
    walk.press("Enter", drawer)
    walk.press("a", page.locator(".toast", has_text=re.compile("accepted|undecided")))
    for key in "ms":
        walk.press(key, dialog)
        walk.press("Escape")
        dialog.wait_for(state="hidden")
    walk.press("Escape")
    drawer.wait_for(state="hidden")
    menu = page.locator("#bulk-acts summary")
    for _ in range(80):  # closed, the drawer gave the focus back to its room, below the acts
        walk.press("Shift+Tab")
        if menu.evaluate("element => element === document.activeElement"):
            break
    else:
        at = page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        raise AssertionError(f"Tab does not reach the acts upon all rooms, but {at}")
    walk.press("Enter", page.locator("#bulk-acts button:visible"))


STEPS: tuple[tuple[str, Callable[[Walk], None]], ...] = (
    ("import returning students", lambda walk: import_cohort(walk, walk.year.past, "Returning")),
    ("import their pairs", import_pairs),
    ("learn", learn),
    ("import first-years", import_first_years),
    ("import rooms", import_rooms),
    ("requests", requests),
    ("choices", choices),
    ("place", place),
    ("place again", place_again),
    ("restore", restore),
    ("act on all rooms", bulk_acts),
    ("decide", decide),
    ("publish", publish),
    ("roster", roster),
    ("letters", letters),
    ("late change by hand", late_change_by_hand),
    ("undo the late change", undo_late_change),
    ("withdrawals", withdraw),
    ("latecomers", latecomers),
    ("undo the latecomers", undo_latecomers),
    ("latecomers again", latecomers),
    ("late changes", late_changes),
    ("last roster", last_roster),
    ("letters again", letters_again),
    ("by keyboard alone", by_keyboard),
    ("purge refused", purge),
    ("withdraw the publication", unpublish),
)


def main() -> None:
    """Walk, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--short", action="store_true", help="100 students instead of 2,500")
    parser.add_argument("--instance", type=Path, help="folder of the installation, kept")
    parser.add_argument("--store", action="store_true", help="write the result beside this file")
    parser.add_argument("--screens", type=Path, help="folder for pictures of every step")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bh-walk-") as scratch:
        folder = options.instance or Path(scratch) / "instance"
        folder.mkdir(parents=True, exist_ok=True)
        year = write_year(Path(scratch) / "files", SHORT if options.short else FULL)
        walk_in_chromium(
            folder,
            "A housing year in Chromium",
            "carol",
            lambda page, look: Walk(page, look, year=year),
            walk_year,
            options.screens,
            STORED if options.store else None,
        )


if __name__ == "__main__":
    main()
