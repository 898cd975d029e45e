"""What `check` computes and reports."""
