/* SPDX-License-Identifier: Apache-2.0 */
/* One plugin file looked at by itself: what it says of itself, where the libraries that it needs
 * are, and whether this host would load it.  No code of the file runs.  One thread. */
#ifndef LOAD_EXAMINE_H
#define LOAD_EXAMINE_H

#include <limits.h>

#include <frit/status.h>

#include "load/elf.h"

struct examined {
    char path[PATH_MAX]; /* absolute, real */
    struct elf_facts facts;
    char found[ELF_NEEDED][PATH_MAX]; /* of facts.needed; "" where it is nowhere */
    char isa[96];                     /* sets of instructions that it needs, separated by blanks */
    uint32_t reason;                  /* FRIT_REASON_* why it would not be loaded; 0: it would */
    char detail[512];                 /* in words */
};

/* A file that does not exist or is no plugin is examined too: the reason says so. */
void examine_file(const char *path, struct examined *out);

#endif
