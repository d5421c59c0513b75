/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* remote-server SOCKET [BYTES]: a device for everybody who connects, each with BYTES of memory, by
 * default a GiB, in a process of its own, whose number it prints.  Ends at SIGTERM and SIGINT, and
 * says so to its drivers. */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void note_signal(int number)
{
    session_stop_signal = number;
}

/* Signals that end the server come only while it waits, see session_wait. */
static void take_signals(void)
{
    struct sigaction stop = {.sa_handler = note_signal};
    struct sigaction child = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGCHLD, &child, NULL);
}

static int fail(const char *path)
{
    fprintf(stderr, "remote-server: %s: %s\n", path, strerror(errno));
    return -1;
}

/* A socket that only its owner can connect to.  -1, with a line on stderr, where another server
 * has the path. */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct sockaddr *any = (const struct sockaddr *)(const void *)&address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat there;

    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return fail(path);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd < 0)
        return fail(path);
    /* What a server that was killed has left. */
    if (lstat(path, &there) == 0 && S_ISSOCK(there.st_mode) && connect(fd, any, sizeof address) &&
        errno == ECONNREFUSED)
        unlink(path);
    umask(0077);
    if (bind(fd, any, sizeof address) == 0 && listen(fd, 16) == 0)
        return fd;
    fail(path);
    close(fd);
    return -1;
}

int main(int argc, char **argv)
{
    uint64_t memory_bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1u << 30;
    int listener;

    if (argc < 2 || argc > 3 || !memory_bytes) {
        fprintf(stderr, "usage: remote-server SOCKET [BYTES]\n");
        return 2;
    }
    take_signals();
    listener = listen_at(argv[1]);
    if (listener < 0)
        return 1;
    while (session_wait(listener)) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0 && fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            close(listener);
            printf("%d\n", (int)getpid());
            fflush(stdout);
            session_run(fd, memory_bytes);
            _exit(0);
        }
        if (fd >= 0)
            close(fd);
    }
    unlink(argv[1]);
    return 0;
}
