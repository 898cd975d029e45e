"""What is shipped: wheel and sdist, what they hold, and that they install and work."""
