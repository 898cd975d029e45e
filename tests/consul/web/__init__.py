"""The HTTP server of a supervisor: routes, listener, the status and the cache that keeps it cheap."""
