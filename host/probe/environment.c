/* SPDX-License-Identifier: Apache-2.0 */
/* Without a copy, for lack of memory, nothing is reported as changed. */
#include "probe/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static char **copy; /* NULL: none; ends with NULL */

static void forget(void)
{
    for (char **at = copy; at && *at; at++)
        free(*at);
    free(copy);
    copy = NULL;
}

void environment_note(void)
{
    size_t n = 0;

    forget();
    while (environ && environ[n])
        n++;
    copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(environ[i]);
        if (!copy[i])
            forget();
    }
}

static bool contains(char *const *variables, const char *variable)
{
    for (; variables && *variables; variables++)
        if (strcmp(*variables, variable) == 0)
            return true;
    return false;
}

/* The first of `from` that is not in `in`, NULL if all are. */
static const char *first_missing(char *const *from, char *const *in)
{
    for (; from && *from; from++)
        if (!contains(in, *from))
            return *from;
    return NULL;
}

bool environment_changed(char *name, size_t size)
{
    const char *variable = copy ? first_missing(environ, copy) : NULL;

    if (!variable)
        variable = first_missing(copy, environ);
    if (variable)
        snprintf(name, size, "%.*s", (int)strcspn(variable, "="), variable);
    return variable != NULL;
}
