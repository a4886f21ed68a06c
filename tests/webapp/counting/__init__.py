"""A Django application for tests of the job life cycle: jobs that count."""
