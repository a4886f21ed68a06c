"""What changes templates, letters and addresses; views and programs call these."""
