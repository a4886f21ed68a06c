"""Terms: the time for which a placement gives out beds."""

from django.db import models
from django.db.models import F, Q

from webapp.common.formats import day, span
from webapp.common.models import OrganisationOwned

MAX_TERM_NAME = 80
MAX_TERM_CODE = 40


class Term(OrganisationOwned):
    """A term of an organisation, with its first and last day.

    ``code`` is the name of the term in the student system, such as 202710; it may be blank.
    """

    name = models.CharField(max_length=MAX_TERM_NAME)
    code = models.CharField(max_length=MAX_TERM_CODE, blank=True)
    starts_on = models.DateField()
    ends_on = models.DateField()

    class Meta:
        ordering = ["-starts_on", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="term_name_once_per_organisation"
            ),
            models.CheckConstraint(
                condition=Q(ends_on__gt=F("starts_on")), name="a_term_ends_after_it_starts"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def words(self) -> str:
        """The name with the first and the last day."""
        return f"{self.name}, {span(day(self.starts_on), day(self.ends_on))}"

    @property
    def system_name(self) -> str:
        """The name of the term in the student system; its own name without a code."""
        return self.code or self.name
