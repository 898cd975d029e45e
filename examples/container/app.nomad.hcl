# Two instances, of which one runs the application, also while Nomad has lost one of them and starts another.
job "app" {
  group "app" {
    count = 2

    restart {
      mode = "delay" # a lock that was lost ends the task, and the next one waits for the lock again
    }

    task "app" {
      driver       = "docker"
      kill_timeout = "30s" # from TERM to KILL: the application's own time to stop

      config {
        image        = "consul-supervisor"
        network_mode = "host"
        args         = ["lock", "service/app/.lock", "--", "/usr/local/bin/app"]
      }
    }
  }
}
