"""WSGI entry point of the web server."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

application = get_wsgi_application()

# Servers import this file without running Django's checks: run those that must stop a start.
from webapp.checks import refuse_unsafe_settings  # noqa: E402

refuse_unsafe_settings()

# A server replaces its processes now and then: do now what the first visitor of a new process
# would wait for.
from webapp.common.first_visit import prepare_for_first_visit  # noqa: E402

prepare_for_first_visit()
