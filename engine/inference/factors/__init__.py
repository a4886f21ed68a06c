"""MAP estimates, log Z and marginals of factor graphs of any order."""
