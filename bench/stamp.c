/* The hook and the child of every measurement: stamp FILE WHO WHAT [wait|rest]
 *
 * The program reads the clock first, and again just before it exits. Each reading becomes one line,
 * "WHO WHAT begin|end NANOSECONDS", by one write(2) to the end of FILE. With "wait" the program waits for
 * SIGTERM in between, at most an hour, so that a forgotten one ends. With "rest" it sleeps 20 ms, which is
 * short for a hook and longer than the work of the daemon at its start. The clock is CLOCK_MONOTONIC, which
 * all processes share, and which is Python's time.monotonic_ns().
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void note(char **argv, const char *edge, const struct timespec *at)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%s %s %s %lld\n", argv[2], argv[3], edge,
                          (long long)at->tv_sec * 1000000000 + at->tv_nsec);
    int file = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (length < 0 || length >= (int)sizeof line || file < 0 || write(file, line, length) != length)
        _exit(1);
    close(file);
}

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (argc < 4)
        return 2;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    note(argv, "begin", &now);
    if (argc > 4) {
        struct timespec hour = {3600, 0}, rest = {0, 20000000};
        if (strcmp(argv[4], "wait") == 0)
            sigtimedwait(&term, NULL, &hour);
        else
            nanosleep(&rest, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    note(argv, "end", &now);
    _exit(0);
}
