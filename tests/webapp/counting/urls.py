"""The product's addresses, and a form that starts a counting job."""

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.urls import path

from webapp.jobs.services import job_enqueue
from webapp.urls import handler400, handler403, handler404, handler500  # noqa: F401
from webapp.urls import urlpatterns as of_the_product


def start(request: HttpRequest) -> HttpResponse:
    """Show the form, or start what it says and lead to the job."""
    if request.method != "POST":
        token = f'<input type="hidden" name="csrfmiddlewaretoken" value="{get_token(request)}">'
        return HttpResponse(f"<form method=post>{token}<input name=steps></form>")
    parameters = {"steps": int(request.POST["steps"]), "seconds_a_step": 0}
    jobs = [
        job_enqueue(user=request.user, kind="counting.sum", parameters=parameters, seed=7)
        for _ in range(int(request.POST.get("count", 1)))
    ]
    return redirect("jobs:job", uuid=jobs[-1].pk)


urlpatterns = [path("counting/", start), *of_the_product]
