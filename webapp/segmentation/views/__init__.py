"""Pages and files of segmentation; thin: selectors read, services write."""
