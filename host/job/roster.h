/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 knows of a job: who is in it, the values that they share, the first failure.
 *
 * No sockets and no clock are in here: the server gives it the frames that came, the connections
 * that ended and the time, and sends what it writes into channels.  Times are of clock_ns.
 *
 * A job forms when all ranks have come; what must be equal is compared then, so that all of them
 * get the difference.  Its first failure is its end: all ranks get the same text once.  The
 * survivors may then form it anew, which begins the next generation; what is still under way from
 * before is dropped.  One thread at a time. */
#ifndef JOB_ROSTER_H
#define JOB_ROSTER_H

#include "base/map.h"
#include "job/address.h"
#include "job/channel.h"
#include "job/place.h"

enum { ROSTER_HOST = 65, ROSTER_NAME = 160, ROSTER_FACTS = 256 };
enum { ROSTER_VALUES_MAX = 64 << 20 }; /* bytes of all values */

enum member_state { MEMBER_ABSENT, MEMBER_PRESENT, MEMBER_LEFT, MEMBER_DEAD };

/* A connection. */
struct roster_link {
    struct roster_link *next; /* the server's list */
    struct channel channel;
    struct roster_member *member; /* NULL: it has not said who it is, or is none any more */
    uint64_t since;
    bool is_greeted; /* with the right token */
    bool ends;       /* it is to be closed when all is sent */
    char address[ADDRESS_TEXT];
};

struct roster_member {
    enum member_state state;
    struct roster_link *link; /* NULL: not PRESENT */
    uint32_t rank, pid;
    char host[ROSTER_HOST], address[ADDRESS_TEXT];
    struct job_place place;
    uint64_t heard;   /* when it last sent something */
    uint32_t skipped; /* pulses, while it is silent */
    bool is_silent;   /* and that was logged */
    bool rebuilds;    /* it waits for the next generation, by this request */
    uint32_t request;
};

struct roster_config {
    uint32_t size;
    uint64_t deadline; /* for the job to form */
    uint64_t heartbeat_ns, suspect_ns, dead_ns;
    /* Where rank 0 is now; NULL: its last heartbeat says.  Writes *out. */
    void (*own_place)(void *ctx, struct job_place *out);
    void *ctx;
};

struct roster {
    struct roster_config config;
    struct roster_member **members; /* by rank */
    uint32_t size, n_present;
    uint32_t generation;
    bool is_formed;
    frit_err verdict;  /* found while it forms, reported when all have come */
    frit_err failure;  /* of this generation */
    struct map facts;  /* name -> struct roster_fact */
    struct map values; /* key -> struct roster_value */
    size_t value_bytes;
    struct roster_wait *waits; /* for values */
    uint64_t next_pulse, rebuild_deadline;
    uint64_t n_stale; /* frames of older generations */
};

bool roster_init(struct roster *roster, const struct roster_config *config);
void roster_fini(struct roster *roster);

/* A frame of a connection; a wrong one ends the connection. */
void roster_take(struct roster *roster, struct roster_link *link, uint32_t kind,
                 struct wire_reader *in, uint64_t now);
/* The connection has ended, for this reason in words.  The server frees it. */
void roster_lost(struct roster *roster, struct roster_link *link, int error);
/* Heartbeats, limits, ranks that are silent; after the frames that came.  Returns when it is to be
 * called next. */
uint64_t roster_tick(struct roster *roster, uint64_t now);
/* This process did not run for a while: nobody is silent for that. */
void roster_excuse(struct roster *roster, uint64_t now);
/* Rank 0 leaves, and with it the roster: says so to all. */
void roster_end(struct roster *roster);

/* "rank 1 (host h1, pid 4242)" */
void roster_name(const struct roster_member *member, char out[ROSTER_NAME]);
/* The first failure; later ones are dropped. */
void roster_fail(struct roster *roster, frit_status status, const char *format, ...)
    FRIT_PRINTF(3, 4);
void roster_reply(struct roster_link *link, uint32_t request, frit_status status, const void *bytes,
                  size_t n);

/* ---- values (roster_values.c) ---- */

void roster_set(struct roster *roster, struct roster_link *link, struct wire_reader *in);
void roster_get(struct roster *roster, struct roster_link *link, struct wire_reader *in,
                uint64_t now);
/* Of a connection that has ended. */
void roster_drop_waits(struct roster *roster, const struct roster_link *link);
/* Replies to those whose time is over; returns when the next one's is. */
uint64_t roster_expire_waits(struct roster *roster, uint64_t now);
void roster_free_values(struct roster *roster);

/* ---- what must be equal (roster_facts.c) ---- */

/* Reads the facts of a HELLO; a difference becomes the verdict.  False: it is malformed, or there
 * is no memory. */
bool roster_take_facts(struct roster *roster, const struct roster_member *member,
                       struct wire_reader *in);

/* ---- who is waited for (roster_behind.c) ---- */

void roster_behind(const struct roster *roster, struct roster_link *link, struct wire_reader *in,
                   uint64_t now);
/* "no heartbeat from NAME for 9.8 s but its kernel still answers: ..." */
void roster_silence(const struct roster_member *member, uint64_t now, char *out, size_t size);

#endif
