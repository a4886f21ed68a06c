"""How an organisation read each form of survey before."""

from django.utils import timezone

from engine.tabular.preview import Preview
from engine.tabular.recipes import form_of, most_similar, recipe_of
from engine.tabular.table import Table
from webapp.cohorts.models import Cohort, Recipe

_RECIPES = 100  # forms of an organisation compared with a file, last used first


def known_form(organisation_id: int, table: Table) -> Recipe | None:
    """Return the recipe of the form most similar to a file, if it is similar enough."""
    recipes = Recipe.objects.filter(organisation_id=organisation_id)
    exact = recipes.filter(form=form_of(table)).first()
    if exact is not None:
        return exact
    latest = list(recipes[:_RECIPES])
    best = most_similar(table, [one.content for one in latest])
    return None if best is None else latest[best]


def recipe_keep(*, preview: Preview, cohort: Cohort) -> None:
    """Store how this form was read, in place of its earlier recipe."""
    Recipe.objects.update_or_create(
        organisation_id=cohort.organisation_id,
        form=form_of(preview.table),
        defaults={
            "created_by": cohort.created_by,
            "cohort_name": cohort.name,
            "content": recipe_of(preview.table, preview.choices),
            "updated_at": timezone.now(),
        },
    )
