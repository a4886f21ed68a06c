"""Shapes of students: who they are, for those who see names, and where they live."""

from pydantic import Field

from webapp.api.shapes.base import Answer, Key, Paging
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import Identity

_NULL = "null for those who do not see names"


class Student(Answer):
    """A student of a cohort."""

    student: str = Field(description="the id on screen, unique in the organisation")
    cohort: Key
    number: str | None = Field(description=f"the student's own number; {_NULL}")
    name: str | None = Field(description=_NULL)
    preferred: str | None = Field(description=f"the preferred name; {_NULL}")
    pronouns: str | None = Field(description=_NULL)
    email: str | None = Field(description=_NULL)
    room: str = Field(
        description="hall, room and bed, of the published placement or a draft; of several "
        "published ones each with its term and days, that of today first"
    )

    @classmethod
    def seen(cls, cohort: Cohort, one: Identity, room: str, *, with_names: bool) -> "Student":
        """Return the answer for a student as one person may see it."""
        own = one if with_names else None
        return cls(
            student=one.label,
            cohort=cohort.pk,
            number=None if own is None or cohort.ids_made else own.original_id,
            name=own.name if own else None,
            preferred=own.preferred if own else None,
            pronouns=own.pronouns if own else None,
            email=own.email if own else None,
            room=room,
        )


class StudentQuery(Paging):
    """Query for students."""

    q: str = Field("", description="name, number, e-mail or id on screen", max_length=100)
