"""Supervisor process that starts broker, worker and web server, and stops all three cleanly."""
