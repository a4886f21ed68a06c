"""WSGI entry point of the web server."""

import os

from django.core.wsgi import get_wsgi_application

from webapp.common.frames import with_room_for_frames

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

application = with_room_for_frames(get_wsgi_application())

# Servers import this file without running Django's checks: run those that must stop a start.
from webapp.common.checks import refuse_unsafe_settings  # noqa: E402

refuse_unsafe_settings()

# A server replaces its processes now and then: do now what the first visitor of a new process
# would wait for.
from webapp.common.first_visit import prepare_for_first_visit  # noqa: E402

prepare_for_first_visit()
