/* SPDX-License-Identifier: Apache-2.0 */
/* A job of members in threads of the test, some of which the test plays itself, byte by byte; and
 * what is logged. */
#ifndef TESTS_JOB_RIG_H
#define TESTS_JOB_RIG_H

#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "job/address.h"
#include "job/channel.h"
#include "job/job.h"
#include "job/place.h"

enum { RIG_RANKS = 4, RIG_LOG = 16384 };
static const uint64_t rig_ms = 1000000;

struct rig {
    char store[64];
    struct job_config config; /* of the next one that is started; rank and size are set then */
    struct job_member *jobs[RIG_RANKS];
    frit_err errs[RIG_RANKS];
    frit_status status[RIG_RANKS];
    pthread_t threads[RIG_RANKS];
    /* By the watchers. */
    pthread_mutex_t lock;
    pthread_cond_t failed;
    uint32_t n_failed;
    frit_err failure[RIG_RANKS];
    struct rig_watch {
        struct rig *rig;
        uint32_t rank;
        struct job_config config;
    } watches[RIG_RANKS];
};

/* A free port of this machine; intervals that suit a test; the log is kept. */
void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);
/* Member `rank` opens in a thread of its own; rig_join waits for it. */
void rig_start(struct rig *rig, uint32_t rank, uint32_t size);
frit_status rig_join(struct rig *rig, uint32_t rank);
/* Ranks 0..n-1 of `size`, the others being the test's; waits for none. */
void rig_start_all(struct rig *rig, uint32_t n, uint32_t size);
/* All of them are in, and are watched. */
void rig_join_all(struct rig *rig, uint32_t n);
void rig_close_all(struct rig *rig);
/* Waits until the watchers of `n` members were called; false: not within `limit_ms`. */
bool rig_wait_failed(struct rig *rig, uint32_t n, uint32_t limit_ms);

/* What was logged at `warn` and above; how often a text is in it. */
uint32_t rig_logged(const char *text);
bool rig_wait_logged(const char *text, uint32_t limit_ms);

/* ---- a rank that the test plays ---- */

/* Connects and sends `n` bytes. */
void fake_connect(const struct rig *rig, struct channel *fake, const void *bytes, size_t n);
/* The greeting with this token. */
void fake_greet(const struct rig *rig, struct channel *fake, const char *token);
/* Pid 1000 + rank, host "fake". */
void fake_hello(struct channel *fake, uint32_t rank, uint32_t size, const struct job_fact *facts,
                uint32_t n_facts);
void fake_send(struct channel *fake);
/* The next frame of this kind, others are dropped; false: the connection ended, or 2 s passed. `in`
 * stays valid until the next call. */
bool fake_receive(struct channel *fake, uint32_t kind, struct wire_reader *in);
void fake_beat(struct channel *fake, const struct job_place *place);

#endif
