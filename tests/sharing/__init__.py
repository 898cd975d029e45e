"""Questions that many keys share."""
