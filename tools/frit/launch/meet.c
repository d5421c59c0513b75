/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/meet.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

static const char store_variable[] = "FRIT_DIST_STORE", token_variable[] = "FRIT_DIST_TOKEN";
static const char local[] = "127.0.0.1";
enum { TOKEN = 32, HOST_TEXT = 256, FIRST_PORT = 20000, N_PORTS = 10000 };

/* A port that nobody has on this machine at the moment; 0 with errno: none. */
static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned port = 0;

    if (fd < 0)
        return 0;
    if (!bind(fd, (struct sockaddr *)&address, size) &&
        !getsockname(fd, (struct sockaddr *)&address, &size))
        port = ntohs(address.sin_port);
    close(fd);
    return port;
}

/* The first word of the first line that is no comment. */
static bool first_host(const char *path, char out[HOST_TEXT])
{
    FILE *file = fopen(path, "re");
    char line[1024];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "#\n")] = '\0';
        found = sscanf(line, "%255s", out) == 1;
    }
    if (file)
        fclose(file);
    return found;
}

static bool is_this_machine(const char *host)
{
    char name[HOST_TEXT];

    return strcmp(host, "localhost") == 0 || strcmp(host, local) == 0 ||
           (!gethostname(name, sizeof(name)) && strcmp(host, name) == 0);
}

static const char *set_store(const char *hosts)
{
    char host[HOST_TEXT], store[HOST_TEXT + 32];
    unsigned port;

    if (!hosts)
        strcpy(host, local);
    else if (!first_host(hosts, host))
        return "there is no host in the file of hosts";
    if (is_this_machine(host)) {
        port = free_port();
        if (!port)
            return strerror(errno);
    } else {
        uint16_t number = 0;

        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            return strerror(errno);
        port = FIRST_PORT + number % N_PORTS;
    }
    snprintf(store, sizeof(store), strchr(host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u", host, port);
    return setenv(store_variable, store, 1) ? strerror(errno) : NULL;
}

static const char *set_token(void)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char bytes[TOKEN];
    char token[TOKEN + 1] = "";

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return strerror(errno);
    for (size_t i = 0; i < TOKEN; i++)
        token[i] = digits[bytes[i] % (sizeof(digits) - 1)];
    return setenv(token_variable, token, 1) ? strerror(errno) : NULL;
}

const char *meet_prepare(const char *hosts)
{
    const char *why = getenv(store_variable) ? NULL : set_store(hosts);

    return why || getenv(token_variable) ? why : set_token();
}
