"""The bounded HTTP server."""
