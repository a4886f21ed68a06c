"""The entry point of the web server."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

application = get_wsgi_application()

# Servers import this file without running Django's checks: run those that must stop a start.
from webapp.common.checks import refuse_unsafe_settings  # noqa: E402

refuse_unsafe_settings()
