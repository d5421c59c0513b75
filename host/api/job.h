/* SPDX-License-Identifier: Apache-2.0 */
/* A host's part in the job that its process belongs to: membership (job/job.h), which begins with
 * the first group of the whole job and ends with the host, and the ranks of those groups, which the
 * job's failure ends. */
#ifndef API_JOB_H
#define API_JOB_H

#include <pthread.h>

#include <frit/frit.h>

struct host_rank;
struct job_member;
struct job_place;
struct rank_config;

struct host_job {
    pthread_mutex_t opening;   /* held while it is opened or rebuilt */
    pthread_mutex_t lock;      /* of the rest */
    struct job_member *member; /* NULL: no store, or no group of the whole job yet */
    struct host_rank *ranks;
    uint64_t n_groups; /* of the whole job, in this generation */
};

void host_job_init(struct host_job *job);
/* Leaves the job; no rank is there any more. */
void host_job_fini(struct host_job *job);

/* Rank, size and store of this process. */
frit_status host_job_desc(frit_host *host, frit_job_desc *out, frit_err *err);

/* Before a group of the whole job is joined: enters the job, where there is a store; after a
 * failure waits until all ranks that are left have come here, too.  `id` gets what names the group
 * on all of them.  FRIT_PEER_LOST: ranks were lost, so that the group has another size. */
frit_status host_job_join(frit_host *host, const frit_group_config *config, uint64_t timeout_ns,
                          frit_group_id *id, frit_err *err);
/* The rank that `config` describes is to be followed; without a store nothing happens.  NULL with
 * FRIT_OK: likewise. */
frit_status host_job_follow(frit_host *host, struct rank_config *config, struct host_rank **out,
                            frit_err *err);
/* It was joined; NULL: it was not, for the reason `why`, which the job gets to know. */
void host_job_joined(struct host_rank *rank, frit_rank *joined, const frit_err *why);

/* The next operation of so many elements that the rank runs is at this place of a step, for texts;
 * before it is recorded.  `operation` is not read.  Without a store nothing happens. */
void host_job_announce(frit_rank *rank, uint64_t elements, const struct job_place *place);

#endif
