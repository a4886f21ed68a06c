"""The web application: accounts, cohorts, matching, segmentation, jobs."""

import gc

# Objects that are made before the collector looks for garbage; Python's own number is 700. Reading
# all modules makes a million objects and next to no garbage, a page of rooms makes 50,000.
gc.set_threshold(10_000, 10, 10)
