"""Pages of questionnaires: of staff, and of the students who answer."""
