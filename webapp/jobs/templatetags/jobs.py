"""Template words of jobs."""

from django import template

from webapp.jobs.convergence import ConvergencePlot, convergence_plot
from webapp.jobs.models import Job

register = template.Library()


@register.simple_tag
def convergence_of(job: Job, by: str = "time") -> ConvergencePlot:
    """The convergence plot of a job, by 'time' or by 'step'."""
    return convergence_plot(job, by=by or "time")
