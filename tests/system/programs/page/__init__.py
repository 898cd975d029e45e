"""The page at / in a real Chromium."""
