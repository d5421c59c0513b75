/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a probe process: frit-probe VERSION TOKEN FILE... [--set SECTION KEY
 * VALUE]...
 */
#ifndef LOAD_PROBE_COMMAND_H
#define LOAD_PROBE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;

struct probe_command {
    char **argv, **environment; /* both end with NULL */
    char **names;               /* what of argv is freed with it */
    size_t n_names;
    char version[16], token[17]; /* the token is a random number, of sixteen hexadecimal digits */
};

/* The program beside libfrit; false if there is none. */
bool probe_program_find(char *path, size_t size);

/* The child sees the options of all plugins, but neither configuration files nor variables FRIT_*.
 * Paths and the configuration outlive the command.  False: out of memory. */
bool probe_command_make(struct probe_command *command, const char *program, const struct conf *conf,
                        const char *const *paths, uint32_t n);
void probe_command_free(struct probe_command *command);

#endif
