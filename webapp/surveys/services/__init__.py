"""Everything that changes questionnaires and answers; views and jobs call these."""
