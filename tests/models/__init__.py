"""Models of the whole: every order of events, rivals, many contenders, and simulated clusters."""
