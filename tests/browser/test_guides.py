"""Every guide is followed word by word in a browser, in an organisation that starts empty."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page

from docs.guide_walk import GuideWalk, Picture, Step, StepError, read_guide
from docs.make_pictures import GUIDES, MAX_BYTES, command_runner, link_finder, make_person
from tests.live.product import Product

MAX_SCREENS = 10
SCREEN_HEIGHT = 900  # pixels, as the others
PICTURE_HEIGHT = 460
HEADING_HEIGHT = 70
ROW_HEIGHT = 46
LINE_HEIGHT = 26
LETTERS_A_LINE = 90


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_guide_can_be_followed_word_by_word(
    page_as: Callable[..., Page], product: Product, guide: Path
) -> None:
    page = page_as(make_person(product, guide))
    walk = GuideWalk(page, guide, run=command_runner(product), find_link=link_finder(product))
    walk.go()
    assert walk.acts >= 10


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_pictures_of_a_guide_are_there_and_small(guide: Path) -> None:
    pictures = [part.file for part in read_guide(guide) if isinstance(part, Picture)]
    assert pictures
    for file in pictures:
        assert file.stat().st_size <= MAX_BYTES, file.name
        assert Image.open(file).width > 800


def height_of(text: str) -> float:
    """Estimate the height of a guide on the documentation's site, in pixels."""
    pictures = re.compile(r"^!\[.*$", re.M)
    height = PICTURE_HEIGHT * len(pictures.findall(text))
    for part in re.split(r"\n\s*\n", pictures.sub("", text).strip()):
        if part.startswith("|"):
            height += ROW_HEIGHT * (len(part.splitlines()) - 1)
        elif part.startswith("#"):
            height += HEADING_HEIGHT
        else:
            for line in re.split(r"\n(?=\d+\. )", part):
                height += LINE_HEIGHT * -(-len(" ".join(line.split())) // LETTERS_A_LINE) + 8
            height += 16
    return height


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_fits_ten_screens(guide: Path) -> None:
    assert height_of(guide.read_text(encoding="utf-8")) <= MAX_SCREENS * SCREEN_HEIGHT


def test_a_changed_button_stops_the_walk(
    page_as: Callable[..., Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docs.guide_walk.WAIT_SECONDS", 1.0)
    guide = tmp_path / "guide.md"
    guide.write_text("# Guide\n\n1. Open **Cohorts** in the menu. Press **Swallow a cohort**.\n")
    with pytest.raises(StepError, match=r"Swallow a cohort.*not on the page"):
        GuideWalk(page_as("bob"), guide).go()


def test_a_sentence_that_no_act_reads_stops_the_walk(
    page_as: Callable[..., Page], tmp_path: Path
) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text("# Guide\n\n1. Make sure to click **Cohorts**.\n")
    with pytest.raises(StepError, match="no act"):
        GuideWalk(page_as("bob"), guide).go()


def test_a_step_may_run_over_several_lines(tmp_path: Path) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text("# Guide\n\n1. Press **A**. This explains it.\n   Press **B**.\n")
    assert read_guide(guide) == [Step(3, ("Press **A**.", "This explains it.", "Press **B**."))]
