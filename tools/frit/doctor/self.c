/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/self.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts it with both streams into `to`; returns 0 or an errno. */
static int start(const char *const *words, int to, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    int error = length < 0 ? errno : posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    path[length] = '\0';
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 1; fd <= 2 && !error; fd++)
        error = posix_spawn_file_actions_adddup2(&actions, to, fd);
    if (!error)
        error = posix_spawn(pid, path, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int self_run(const char *const *words, void (*take)(void *ctx, const char *line), void *ctx,
             int *status)
{
    char line[SELF_LINE];
    int ends[2], error;
    FILE *from;
    pid_t pid = 0;

    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    error = start(words, ends[1], &pid);
    close(ends[1]);
    from = error ? NULL : fdopen(ends[0], "r");
    while (from && fgets(line, sizeof(line), from)) {
        line[strcspn(line, "\n")] = '\0';
        take(ctx, line);
    }
    if (from)
        fclose(from);
    else
        close(ends[0]);
    while (!error && waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return error;
}
