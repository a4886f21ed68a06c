"""Image segmentation: learning from labelled pictures, and prediction of masks and label maps."""
