"""The web application's access to the engine's reader of tables."""
