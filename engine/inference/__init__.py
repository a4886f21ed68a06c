"""MAP and marginals of a model with known weights."""
