/* SPDX-License-Identifier: Apache-2.0 */
/* What a network carries: bytes of one TCP connection, in one direction.
 *
 *   stream receive PORT           prints bytes per second, from the first second on
 *   stream send ADDRESS PORT SECONDS */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 18];

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct sockaddr_in address_of(const char *address, const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

    (void)inet_pton(AF_INET, address, &at.sin_addr);
    return at;
}

static int receive_all(const char *port)
{
    const struct sockaddr_in at = address_of("0.0.0.0", port);
    const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    double begun, counted_since = 0, last = 0;
    uint64_t counted = 0;
    ssize_t n;
    int connection;

    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (const struct sockaddr *)&at, sizeof at) || listen(listener, 1))
        return 1;
    connection = accept(listener, NULL, NULL);
    begun = now();
    while ((n = read(connection, bytes, sizeof bytes)) > 0) {
        last = now();
        if (counted_since > 0)
            counted += (uint64_t)n;
        else if (last > begun + 1)
            counted_since = last;
    }
    printf("%.0f\n", (double)counted / (last - counted_since));
    return 0;
}

static int send_for(const char *address, const char *port, double seconds)
{
    const struct sockaddr_in at = address_of(address, port);
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    double until;

    if (connect(connection, (const struct sockaddr *)&at, sizeof at))
        return 1;
    until = now() + seconds;
    while (now() < until) {
        if (write(connection, bytes, sizeof bytes) < 0)
            return 1;
    }
    return close(connection);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "receive") == 0)
        return receive_all(argv[2]);
    if (argc == 5 && strcmp(argv[1], "send") == 0)
        return send_for(argv[2], argv[3], atof(argv[4]));
    return 2;
}
