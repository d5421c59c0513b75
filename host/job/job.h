/* SPDX-License-Identifier: Apache-2.0 */
/* This process among those of a job: who they are, whether they live, the values that they share.
 * Never their tensors.
 *
 * Each rank has a connection to rank 0, which holds the store, and a thread that does nothing but
 * send and receive heartbeats and what stands below.  A rank is lost when its connection ends, or
 * when its host acknowledges nothing for a while; one that is only silent, because it is stopped,
 * swapped out or in a debugger, is named in a warning and stays.
 *
 * The first failure of any rank is that of the job: all ranks get the same text, once.  The
 * survivors may rebuild the job, which is then of the next generation.
 * Threads: any, but job_close. */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

struct job_member;

/* What must be the same on all ranks that have it: "program", "ABI", "plugin NAME".  At most 256,
 * names of at most 79 bytes and values of 127. */
struct job_fact {
    const char *name, *value;
};

struct job_config {
    uint32_t rank, size;
    const char *store;     /* "tcp://HOST:PORT", where rank 0 listens */
    const char *token;     /* at most 32 bytes, the same on all ranks */
    uint64_t connect_ns;   /* until all ranks have come */
    uint64_t heartbeat_ns; /* between two */
    uint64_t suspect_ns;   /* a rank is silent for so long: it is named in a warning */
    uint64_t dead_ns;      /* its host has acknowledged nothing for so long: it is lost */
    uint64_t warn_ns;      /* an operation that takes longer is named in a warning; 0: none */
    const struct job_fact *facts;
    uint32_t n_facts;
};

/* FRIT_INVALID for a configuration that cannot be right. */
frit_status job_check(const struct job_config *config, frit_err *err);
/* Returns when all ranks have come; what fails from then on is for job_failure.  FRIT_TIMEOUT: some
 * have not, the text lists them; FRIT_MISMATCH: facts differ, on all ranks with both values;
 * FRIT_INVALID: the token is wrong. */
frit_status job_open(const struct job_config *config, struct job_member **out, frit_err *err);
/* The rank leaves, which is no failure.  The function of job_watch is not called any more.  NULL
 * does nothing. */
void job_close(struct job_member *job);

/* ---- values ---- */

/* A key has one value in a generation.  Keys are of at most 255 bytes, values of at most 1 MiB less
 * 1 KiB.  Returns when rank 0 has it. */
frit_status job_set(struct job_member *job, frit_str key, const void *bytes, size_t n,
                    frit_err *err);
/* Waits until a rank has set it; FRIT_INVALID: it is longer than `capacity`.  Ends with the failure
 * of the job, too. */
frit_status job_get(struct job_member *job, frit_str key, uint64_t timeout_ns, void *out,
                    size_t capacity, size_t *n, frit_err *err);

/* ---- failures ---- */

/* This rank has failed: unless the job has, that is its failure. */
void job_fail(struct job_member *job, const frit_err *why);
/* The job's failure, which is waited for up to `timeout_ns`, and where this rank has failed until
 * rank 0 has said what was the first; FRIT_OK: none. */
frit_status job_failure(struct job_member *job, uint64_t timeout_ns, frit_err *err);
/* `fn` is called once for each generation that fails, by the thread of the job; also for a failure
 * that was before.  It must not call functions of this header. */
void job_watch(struct job_member *job, void (*fn)(void *ctx, const frit_err *why), void *ctx);
/* All survivors call it after a failure: FRIT_OK when they have.  Ranks are numbered anew, in the
 * order that they had.  FRIT_PEER_LOST where rank 0 was lost, with which the store is. */
frit_status job_rebuild(struct job_member *job, uint64_t timeout_ns, frit_err *err);
/* The rank now, the number of ranks, and how often the job was rebuilt. */
void job_where(struct job_member *job, uint32_t *rank, uint32_t *size, uint32_t *generation);

/* ---- progress ---- */

/* This rank begins bucket `bucket` (from 1; 0: none yet) of the `n_buckets` of a step; `span` says
 * what is in it, "first .. last parameter".  Goes with the next heartbeat. */
void job_progress(struct job_member *job, uint64_t step, uint32_t bucket, uint32_t n_buckets,
                  const char *span);

/* An operation under way.  The caller's memory, from begin to end. */
struct job_wait {
    struct job_wait *next;
    uint64_t since;
    bool is_reported;
};
/* This rank begins an operation that waits for the others. */
void job_wait_begin(struct job_member *job, struct job_wait *wait);
void job_wait_end(struct job_member *job, struct job_wait *wait);
/* Who keeps this rank waiting, in words: "rank 1 (host h1, pid 4242): it has begun ...".  "" if
 * that is not found out at once. */
void job_behind(struct job_member *job, char *out, size_t size);

/* In the child of a fork, which may do nothing else with jobs: the connections of the parent are
 * closed here, so that the other ranks notice its end. */
void job_bar(void);

#endif
