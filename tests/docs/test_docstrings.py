"""Every public name says what it is, and says nothing of parameters that it does not take."""

import pytest

from docs.reference_pages import FACES, listed_names

validate = pytest.importorskip("numpydoc.validate").validate

# GL: there is a docstring, its sections known and in order. PR: parameters that exist, in their
# order. SS: a summary that is one sentence with a full stop. YD, RT: returns that are returned.
HELD = {
    "GL05", "GL06", "GL07", "GL08", "PR02", "PR03", "PR10", "SS02", "SS03", "SS05", "RT02",
}  # fmt: skip
TYPE_ALIASES = {
    "engine.core.progress.ProgressCallback",
    "engine.core.progress.StopCallback",
    "engine.crf.questionnaire.QuestionKind",
}
PATHS = sorted({path for face in FACES for path in listed_names(face).values()} - TYPE_ALIASES)


@pytest.mark.parametrize("path", PATHS)
def test_a_docstring_says_what_is_so(path: str) -> None:
    wrong = [f"{code}: {words}" for code, words in validate(path)["errors"] if code in HELD]
    assert not wrong
