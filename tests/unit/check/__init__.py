"""The figures and warnings that `check` computes and reports."""
