"""The shapes of what goes in and out, each written once: checks, answers and document read them."""
