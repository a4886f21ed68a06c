"""Services that change questionnaires and answers, for views and jobs."""
