"""Students placed in rooms of any size: column generation with proven bounds, and what it means."""
