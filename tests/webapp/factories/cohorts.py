"""A small survey file, and cohorts that are imported from it."""

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.drafts import draft_create
from webapp.cohorts.services.imports import draft_import


def survey_csv(students: int = 24, **cells: dict[int, str]) -> bytes:
    """Return a survey with ids, three questions and a constraint; ``cells`` overrides by row."""
    lines = ["student_id,Bedtime,Smokes,Tidiness,Gender"]
    for k in range(students):
        row = {
            "student_id": f"N{k:03d}",
            "Bedtime": ("Early", "Middle", "Late")[k % 3],
            "Smokes": "Yes" if k % 4 == 0 else "No",
            "Tidiness": str(1 + (k * 7) % 5),
            "Gender": "F" if k % 2 else "M",
        }
        lines.append(",".join(cells.get(name, {}).get(k, cell) for name, cell in row.items()))
    return ("\n".join(lines) + "\n").encode()


def import_cohort(user: User, name: str = "First-years", data: bytes | None = None) -> Cohort:
    """Import a survey as a person."""
    data = survey_csv() if data is None else data
    draft = draft_create(user=user, filename="s.csv", size=len(data), read=lambda: data)
    return draft_import(user=user, draft=draft, name=name, version=draft.version)
