"""Services that change templates, letters and addresses, for views and programs."""
