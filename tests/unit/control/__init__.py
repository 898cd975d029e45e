"""Commands and replies as HTTP carries them."""
