"""The web application: accounts, cohorts, matching, segmentation, jobs."""

import gc

# Objects created before the garbage collector runs; Python's default is 700. Reading all modules
# makes a million objects and next to no garbage, a page of rooms makes 50,000.
gc.set_threshold(10_000, 10, 10)
