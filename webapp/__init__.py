"""The web application: accounts, cohorts, matching, segmentation, jobs."""
