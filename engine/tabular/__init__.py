"""The only reader of tables: from bytes to cells, guesses, problems with fixes, and answers."""
