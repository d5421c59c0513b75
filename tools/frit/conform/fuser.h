/* SPDX-License-Identifier: Apache-2.0 */
/* Each fuser of a plugin with each block of ops that it takes something of. */
#ifndef CLI_CONFORM_FUSER_H
#define CLI_CONFORM_FUSER_H

#include "conform/block.h"

/* A fuser and a block of which it takes a prefix, or a block whose first op the driver has. */
struct fuser_pair {
    struct bare *bare;
    const frit_fuser_table *table;
    const frit_fuser *fuser; /* NULL: the driver's program for the first op alone */
    const struct block *block;
    frit_fuser_state whole; /* after all ops of the block were pushed into a clone */
    void *ctx;              /* of the task */
};

/* A check of a pair. */
typedef frit_status fuser_test(const struct fuser_pair *pair);

struct fuser_task {
    fuser_test *test;
    /* NULL beyond the last: blocks whose first op alone is tested, too.  NULL: none. */
    const struct block *(*singles)(size_t index);
    void *ctx;
};

/* Runs it on every pair, until one is wrong.  FRIT_UNSUPPORTED with words where there is none. */
frit_status fuser_each(const struct conform_options *options, const struct lab *lab,
                       const struct fuser_task *task, char reason[CONFORM_REASON]);

/* Defines check_NAME, which runs pair_NAME on every pair; `with_singles`: on blocks' first ops,
 * too.
 */
#define FUSER_CHECK(name, with_singles)                                                           \
    static frit_status check_##name(const struct conform_options *options, const struct lab *lab, \
                                    char reason[CONFORM_REASON])                                  \
    {                                                                                             \
        static const struct fuser_task task = {.test = pair_##name,                               \
                                               .singles = (with_singles) ? block_at : NULL};      \
                                                                                                  \
        return fuser_each(options, lab, &task, reason);                                           \
    }

enum { FUSERS = 64 }; /* of one plugin that are looked at */

/* NULL after words. */
void *fuser_clone(const struct fuser_pair *pair, const void *from);
/* Ops first..end - 1, each in a push of its own. */
void fuser_push(const struct fuser_pair *pair, void *fuser, uint32_t first, uint32_t end);
void fuser_state(const struct fuser_pair *pair, const void *fuser, frit_fuser_state *out);
/* The program for the whole block; destroys the fuser. */
frit_status fuser_finish(const struct fuser_pair *pair, void *fuser, frit_program *out);
/* Clones the prototype, pushes the block, finishes; or gets the single op's program. */
frit_status fuser_program(const struct fuser_pair *pair, frit_program *out);
frit_status fuser_describe(const struct fuser_pair *pair, const frit_program *program,
                           frit_program_info *out);
/* Whose program it is: "op add", "fuser maps, block chain"; returns `text`. */
const char *fuser_name(const struct fuser_pair *pair, char text[CONFORM_NAME]);
/* Candidate `i` of a description. */
const frit_candidate *fuser_candidate(const frit_program_info *info, uint32_t i);
/* block_check of the run with each output in the place of each input that it may take. */
frit_status fuser_check_aliases(const struct fuser_pair *pair, struct block_run run);
/* Whether the program, of the pair's prefix, is right at a size; all its candidates. */
frit_status fuser_check(const struct fuser_pair *pair, const frit_program *program,
                        const struct block_size *size);

extern const struct block_size fuser_sizes[3];

#endif
