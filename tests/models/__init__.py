"""Models of the product: every order of events, rivals, many contenders, and simulated clusters."""
