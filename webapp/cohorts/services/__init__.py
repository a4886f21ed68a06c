"""Everything that changes cohorts; views and jobs call these and nothing else."""
