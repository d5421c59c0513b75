/* SPDX-License-Identifier: Apache-2.0 */
/* How far a rank has come in the collective operations of the job, as numbers that can be compared
 * and as words for errors and warnings. */
#ifndef JOB_PLACE_H
#define JOB_PLACE_H

#include "job/wire.h"

enum { JOB_SPAN = 96, JOB_PLACE_TEXT = 224 };

/* All zero: nothing was begun. */
struct job_place {
    uint64_t operation;  /* begun by this rank, in all groups of the whole job */
    uint64_t step;       /* of training, where n_buckets > 0 */
    uint32_t bucket;     /* begun in this step */
    uint32_t n_buckets;  /* of a step; 0: steps are not reported */
    char span[JOB_SPAN]; /* what the bucket holds: "first .. last parameter"; may be "" */
};

/* < 0: `a` is behind `b`. */
int place_compare(const struct job_place *a, const struct job_place *b);
/* "step 812, bucket 3 of 7 (a .. b)" or "operation 51"; "" for nothing. */
void place_text(const struct job_place *place, char out[JOB_PLACE_TEXT]);
/* What a rank at `place` has begun of what one at `of` has: "0 of 7 buckets of step 812". */
void place_begun_text(const struct job_place *place, const struct job_place *of,
                      char out[JOB_PLACE_TEXT]);

void place_write(struct str *out, const struct job_place *place);
void place_read(struct wire_reader *in, struct job_place *out);

#endif
