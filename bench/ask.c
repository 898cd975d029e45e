/* The clients of a measurement: ask PORT PATH A_SECOND
 *
 * There are A_SECOND clients, each with a kept connection of its own to 127.0.0.1. Each client requests PATH
 * once a second, evenly spread, and none waits for another client's answer. SIGTERM ends the program, which
 * then prints one line, "ANSWERS MEAN WORST CPU": the times of answers and this program's own CPU time are in
 * microseconds. An answer other than 200, a closed connection, or a wait of a second ends the program with 1
 * and a message.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 500, HEAD_MAX = 1024, SECOND = 1000000000 };

struct client {
    char head[HEAD_MAX + 1];
    long head_bytes, body_left; /* body_left: -1 while the head is incomplete */
    long long asked_at;         /* 0: not waiting for an answer */
};

static struct client clients[CLIENTS_MAX];
static struct pollfd polled[CLIENTS_MAX];
static char request[512], received[1 << 16];
static long long answers, took_sum, took_worst;
static volatile sig_atomic_t ended;

static void end(int number) { (void)number; ended = 1; }

static void fail(const char *why)
{
    fprintf(stderr, "ask: after %lld answers: %s\n", answers, why);
    exit(1);
}

static long long nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * (long long)SECOND + now.tv_nsec;
}

static int connected(int port)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int sock = socket(AF_INET, SOCK_STREAM, 0);
    if (sock < 0 || connect(sock, (struct sockaddr *)&server, sizeof server) != 0)
        fail("cannot connect");
    return sock;
}

static void ask(struct client *client, int sock)
{
    if (client->asked_at)
        fail("an answer took more than a second");
    client->head_bytes = 0;
    client->body_left = -1;
    client->asked_at = nanoseconds(CLOCK_MONOTONIC);
    if (send(sock, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        fail("cannot send");
}

/* Return how many of these bytes belong to the head. Its last byte makes the body's length known. */
static long take_head(struct client *client, long bytes)
{
    long before = client->head_bytes, room = HEAD_MAX - before, taken = bytes < room ? bytes : room;
    memcpy(client->head + before, received, taken);
    client->head[client->head_bytes = before + taken] = 0;
    char *end_of_head = strstr(client->head, "\r\n\r\n");
    if (!end_of_head && taken < bytes)
        fail("the answer's head is too long");
    if (!end_of_head)
        return taken;
    char *length = strcasestr(client->head, "\r\nContent-Length:");
    if (strncmp(client->head, "HTTP/1.1 200 ", 13) != 0 || !length || length > end_of_head)
        fail(client->head);
    client->body_left = atol(length + strlen("\r\nContent-Length:"));
    return end_of_head + 4 - client->head - before;
}

static void take(struct client *client, int sock)
{
    long bytes = recv(sock, received, sizeof received, 0);
    if (bytes <= 0 || !client->asked_at)
        fail("hung up on");
    if (client->body_left < 0)
        bytes -= take_head(client, bytes);
    if (client->body_left < 0 || (client->body_left -= bytes) > 0)
        return;
    long long took = nanoseconds(CLOCK_MONOTONIC) - client->asked_at;
    client->asked_at = 0;
    answers++;
    took_sum += took;
    took_worst = took > took_worst ? took : took_worst;
}

int main(int argc, char **argv)
{
    int count = argc == 4 ? atoi(argv[3]) : 0;
    if (count < 1 || count > CLIENTS_MAX)
        return 2;
    struct sigaction on_term = {.sa_handler = end};
    sigaction(SIGTERM, &on_term, NULL);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[2]);
    for (int i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = connected(atoi(argv[1])), .events = POLLIN};
    long long next_at = nanoseconds(CLOCK_MONOTONIC);
    for (int turn = 0; !ended;) {
        long long now = nanoseconds(CLOCK_MONOTONIC);
        for (; next_at <= now; next_at += SECOND / count, turn = (turn + 1) % count)
            ask(&clients[turn], polled[turn].fd);
        struct timespec left = {0, next_at - now};
        int ready = ppoll(polled, count, &left, NULL);
        for (int i = 0; i < count && ready > 0; i++)
            if (polled[i].revents)
                take(&clients[i], polled[i].fd);
    }
    printf("%lld %lld %lld %lld\n", answers, answers ? took_sum / answers / 1000 : 0, took_worst / 1000,
           nanoseconds(CLOCK_PROCESS_CPUTIME_ID) / 1000);
    return 0;
}
