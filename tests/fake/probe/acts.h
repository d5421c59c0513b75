/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin may do where it is called.  Each table ends with a name that is NULL. */
#ifndef FAKE_PROBE_ACTS_H
#define FAKE_PROBE_ACTS_H

struct act {
    const char *name;
    void (*commit)(void);
};

extern const struct act ends[];    /* ends.c: the process ends, or does not go on */
extern const struct act changes[]; /* changes.c: the process is not as it was */

void throw_exception(void); /* throw.cc */

#endif
