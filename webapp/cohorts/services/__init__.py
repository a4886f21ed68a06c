"""Services that change cohorts, for views and jobs."""
