"""Files of organisations: where they lie, what they may take, how they are sent, when they go."""
