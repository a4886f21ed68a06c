"""URL patterns of the product; each application owns the paths under its prefix."""

from django.conf import settings
from django.urls import include, path

urlpatterns = [
    path("", include("webapp.common.urls")),
    path("", include("webapp.monitoring.urls")),
    path("accounts/", include("webapp.accounts.urls")),
    path("accounts/", include("webapp.identity.urls")),
    path("accounts/", include("webapp.identity.protocol_urls")),
    path("jobs/", include("webapp.jobs.urls")),
    path("audit/", include("webapp.audit.urls")),
    path("operations/", include("webapp.operations.urls")),
    # These applications own several prefixes each (/cohorts/; /models/; /placements/; ...).
    path("", include("webapp.cohorts.urls")),
    path("", include("webapp.matching.urls")),
    path("", include("webapp.housing.urls")),
    path("", include("webapp.residents.urls")),  # before the links of questionnaires
    path("", include("webapp.waiting.urls")),
    path("", include("webapp.room_choice.urls")),
    path("", include("webapp.surveys.urls")),
    path("", include("webapp.reports.urls")),
    path("", include("webapp.letters.urls")),
    path("", include("webapp.students.urls")),
    path("", include("webapp.segmentation.urls")),
    path("", include("webapp.demonstration.urls")),
    path("webhooks/", include("webapp.webhooks.urls")),
    path("api/", include("webapp.api.urls")),
]

if settings.OPERATOR_ADMIN:
    from webapp.operations.admin import site

    urlpatterns.append(path("operations/rows/", site.urls))

handler400 = "webapp.common.error_views.bad_request"
handler403 = "webapp.common.error_views.permission_denied"
handler404 = "webapp.common.error_views.page_not_found"
handler500 = "webapp.common.error_views.server_error"
