"""The demonstration's results, which the product prepares at the first start, and its tour."""
