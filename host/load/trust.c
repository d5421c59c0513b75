/* SPDX-License-Identifier: Apache-2.0 */
#include "load/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "load/find.h"

enum { LIST_BYTES = 65536 };

struct trust {
    char text[LIST_BYTES]; /* terminated */
};

struct trust *trust_open(void)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    struct trust *trust;
    const char *why;
    struct stat info;
    ssize_t n;
    int fd;

    if (!find_own_folder(folder))
        return NULL;
    snprintf(path, sizeof(path), "%s/frit/trusted-plugins", folder);
    fd = file_open(AT_FDCWD, path, FILE_INSTALLED, &info, &why);
    if (fd < 0) {
        if (errno != ENOENT)
            log_write(FRIT_LOG_INFO, "load", "%s is not used: %s", path, why);
        return NULL;
    }
    trust = malloc(sizeof(*trust));
    n = trust ? read(fd, trust->text, LIST_BYTES - 1) : -1;
    close(fd);
    if (n < 0) {
        free(trust);
        return NULL;
    }
    trust->text[n] = '\0';
    return trust;
}

void trust_close(struct trust *trust)
{
    free(trust);
}

bool trust_has(const struct trust *trust, const char *build_id)
{
    const size_t length = strlen(build_id);
    const char *line = trust ? trust->text : "";

    while (length && *line) {
        size_t n = strcspn(line, "\n");

        if (n == length && memcmp(line, build_id, n) == 0)
            return true;
        line += n + (line[n] == '\n');
    }
    return false;
}
