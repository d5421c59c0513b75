/* SPDX-License-Identifier: Apache-2.0 */
/* Fusers in process, each a rule: which ops it takes and when it is ready; some break their word.
 * Clones and programs are counted, so that a test sees what was not given back. */
#ifndef TESTS_SEARCH_FUSERS_H
#define TESTS_SEARCH_FUSERS_H

#include "search/search.h"

enum rule_kind {
    RULE_CHAIN,    /* MAP rows */
    RULE_LINKED,   /* MAP rows that share a value with one before them */
    RULE_GREEDY,   /* anything */
    RULE_SEQUENCE, /* these rows, in this order */
    RULE_REDUCE,   /* MAP rows, one REDUCE row, MAP rows; ready from the REDUCE row on */
    RULE_FIRST,    /* anything; ready if the first op is sequence[0] */
    RULE_NEVER     /* anything; never ready */
};

enum rule_lie {
    LIE_NONE,
    LIE_ACCEPTED, /* says that it accepted more than it got */
    LIE_SHRINKS,  /* accepts less with each op */
    LIE_OPEN,     /* a state that is not a state */
    LIE_QUALITY,  /* more than 1000 */
    LIE_FINISH,   /* finish fails */
    LIE_PROGRAM,  /* the program covers fewer ops */
    LIE_TABLE,    /* the program has no prepare */
    LIE_RECORD,   /* of another plugin than the driver's, the program has no record */
    LIE_CLONE,    /* clone fails */
    LIE_NOTHING   /* clone answers FRIT_OK and gives nothing */
};

struct rule {
    const char *name;
    enum rule_kind kind;
    enum rule_lie lie;
    uint32_t cap; /* ops, 0: any number */
    uint32_t quality;
    uint32_t sequence[8];
    uint32_t
        outputs; /* values alive that a program can write, 0: any number; stays open for more */
    bool needs_death; /* refuses an op in which nothing dies once it has one */
};

enum { MAX_RULES = 8 };

/* A device's fusers.  Lives while a search uses it. */
struct rig_fusers {
    struct fuser list[MAX_RULES];
    struct rule *rules[MAX_RULES];
    uint32_t count;
};

void rig_fusers_init(struct rig_fusers *fusers, struct rule *rules, uint32_t count);

/* What a program of ours covers. */
uint32_t rig_program_ops(const frit_program *program, const uint32_t **ids);

struct rig_counts {
    long clones, programs;    /* alive */
    long resets, after_close; /* pushes into closed fusers */
};
extern struct rig_counts rig_counts;

#endif
