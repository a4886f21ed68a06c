"""Convergence plot of a job: two bounds that meet, and the gap between them."""

from dataclasses import dataclass

from django.http import HttpRequest

from webapp.charts import Chart, ConvergenceSeries, convergence_chart
from webapp.jobs import registry
from webapp.jobs.models import Job


@dataclass(frozen=True, slots=True)
class ConvergencePlot:
    """Content of the partial; ``chart`` is None before the first step."""

    chart: Chart | None
    by: str
    steps: int


def is_expected(job: Job) -> bool:
    """Return True if the job has a trace, or may still get one."""
    if job.trace.exists():
        return True
    return job.is_active and registry.find_kind(job.kind).target_gap is not None


def axis_of(request: HttpRequest) -> str:
    """Return the axis that the address requests: 'step' or 'time'."""
    return "step" if request.GET.get("by") == "step" else "time"


def convergence_plot(job: Job, *, by: str = "time") -> ConvergencePlot:
    """Draw the trace of a job over seconds or steps."""
    points = list(job.trace.all())
    if not points:
        return ConvergencePlot(chart=None, by=by, steps=0)
    kind = registry.find_kind(job.kind)
    series = ConvergenceSeries(
        iterations=[point.iteration for point in points],
        seconds=[point.seconds for point in points],
        upper=[point.objective for point in points],
        lower=[point.lower_bound for point in points],
        gap=[
            point.relative_gap if point.relative_gap is not None else point.gap for point in points
        ],
    )
    chart = convergence_chart(
        series,
        by=by,
        target=job.parameters.get("relative_gap", kind.target_gap),
        is_live=job.is_active,
        words=kind.words,
        seconds_left=job.seconds_left if job.is_active else None,
    )
    return ConvergencePlot(chart=chart, by=by, steps=points[-1].iteration)
