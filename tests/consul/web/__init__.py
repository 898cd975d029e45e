"""What may be read over HTTP: routes, listener, the status and what keeps it cheap."""
