"""The shipped files, wheel and sdist: their contents, and that they install and work."""
