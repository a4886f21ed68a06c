"""The language of pages: counts, texts of constants, and the catalogue of sentences."""
