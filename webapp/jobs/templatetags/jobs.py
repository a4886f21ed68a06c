"""Template tags of jobs."""

from typing import Any

from django import template
from django.template import RequestContext

from webapp.jobs.claims import place_in_line
from webapp.jobs.convergence import ConvergencePlot, convergence_plot
from webapp.jobs.models import Job, JobState
from webapp.jobs.notifications import notifications_of
from webapp.jobs.queues import kinds_taken, queue_now
from webapp.jobs.registry import title_of

register = template.Library()


@register.simple_tag
def convergence_of(job: Job, by: str = "time") -> ConvergencePlot:
    """Return the convergence plot of a job, by 'time' or by 'step'."""
    return convergence_plot(job, by=by or "time")


@register.filter
def job_title(job: Job) -> str:
    """Return the title of a job in the language of the page."""
    return title_of(job)


@register.simple_tag
def place_of(job: Job) -> int | None:
    """Return the place in line of a waiting job; None for others."""
    if job.state != JobState.QUEUED:
        return None
    return place_in_line(job, kinds=kinds_taken(queue_now(job.kind), job.kind))


@register.inclusion_tag("jobs/_bell.html", takes_context=True)
def job_bell(context: RequestContext) -> dict[str, Any]:
    """Return the context of the top bar's bell: own jobs that ended since the last visit."""
    return {"news": notifications_of(context["request"].user)}
