"""What is minimised: learning duals, free energies, marginal losses. Signs flip only here."""
