"""Template tags of jobs."""

from typing import Any

from django import template
from django.template import RequestContext

from webapp.jobs.convergence import ConvergencePlot, convergence_plot
from webapp.jobs.models import Job
from webapp.jobs.notifications import notifications_of

register = template.Library()


@register.simple_tag
def convergence_of(job: Job, by: str = "time") -> ConvergencePlot:
    """Return the convergence plot of a job, by 'time' or by 'step'."""
    return convergence_plot(job, by=by or "time")


@register.inclusion_tag("jobs/_bell.html", takes_context=True)
def job_bell(context: RequestContext) -> dict[str, Any]:
    """Return the context of the top bar's bell: own jobs that ended since the last visit."""
    return {"news": notifications_of(context["request"].user)}
