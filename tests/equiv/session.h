/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts played beside each other: on which devices, and what is compared.
 *
 * The measure computes op by op.  The sides fuse.  Plain: every side reads what the measure reads,
 * bit for bit.  Near: the first is as near to the measure as drivers must be, and the others read
 * what the first reads, bit for bit. */
#ifndef EQUIV_SESSION_H
#define EQUIV_SESSION_H

#include "play.h"

enum { MAX_SIDES = 8, SESSION_PLAYS = 5 };

/* A device with the settings of its host. */
struct side {
    const char *name;
    frit_host *host;
    const char *device;
    bool stays;          /* open between sessions; else each begins on a device without plans */
    frit_device *opened; /* NULL: not now */
    uint64_t launches, explorations;
};

struct tester {
    bool near;
    bool all_types; /* near: the measure is played in all types even where one of them will do */
    struct side measure, sides[MAX_SIDES];
    uint32_t n_sides;
    struct play_seen seen;
    uint64_t plays, again; /* what the sides played; those that were looked at more closely */
};

struct session_play {
    const struct script *script;
    const uint8_t *left; /* as script_settle gave it */
    struct play_params params;
    const char *name;
    uint32_t measure; /* which of the measured ones has its values */
};

/* What the sides play, in this order, and what the measure plays.  Near, one measured play may
 * stand for several that compute the same; plain, they are one to one, since what threads draw
 * depends on what was played before. */
struct session {
    struct session_play plays[SESSION_PLAYS], measures[SESSION_PLAYS];
    uint32_t n_plays, n_measures;
    uint64_t seed; /* of the random ops */
};

struct difference {
    char text[1024];
    const char *play; /* name; NULL: there is no difference */
    uint32_t variant;
    const struct script *script;
};

/* Plays a session and compares; false where a device could not be opened, or if out of memory. */
bool session_run(struct tester *tester, const struct session *session,
                 struct difference *difference);
/* Closes the devices of the sides and of the measure. */
void session_close(struct tester *tester);

#endif
