/* SPDX-License-Identifier: Apache-2.0 */
/* What `frit conform` is made of: cases from the table, the text program of a case, its numbers,
 * the comparison with `reference`, the child process that runs cases, and the report.  One thread.
 */
#ifndef CLI_CONFORM_H
#define CLI_CONFORM_H

#include <frit/op_table.h>
#include <stdbool.h>
#include <stdio.h>

#include <frit/frit.h>

enum {
    CONFORM_OPERANDS = 12,
    CONFORM_OUTPUTS = 5,
    CONFORM_NAME = 128,
    CONFORM_REASON = 400,
    CONFORM_SETTINGS = 17,
    CONFORM_JOBS = 64
};

/* ---- the table ---- */

enum conform_rule {
    CONFORM_EXACT,
    CONFORM_EQUAL,
    CONFORM_NEAR,
    CONFORM_FOLD,
    CONFORM_SUM,
    CONFORM_PARTS, /* of ops of plugins: SUM, but where only the decomposition leaves the type's
                      range on its way, what is near to the exact value is right */
    CONFORM_ANY,
    CONFORM_NEVER
}; /* rows.def says what each means */

struct conform_form {
    const char *shape; /* NULL after the last */
    const char *operands;
    const char *attrs;
    bool quick;
};

struct conform_row {
    const char *name;
    const frit_op_info *op;
    const struct conform_form *forms;
    const char *kinds;
    const char *types;
    enum conform_rule rule;
    uint32_t ulp;
};

/* How the elements of the operands lie. */
enum conform_layout {
    LAYOUT_DENSE,
    LAYOUT_PERMUTED,
    LAYOUT_STRIDED,
    LAYOUT_REVERSED,
    LAYOUT_STRETCHED, /* stride 0 along the first dim */
    LAYOUT_INSIDE,    /* something lies before and after: another alignment, no tail */
    LAYOUT_DYING,     /* a copy that nobody else has: the result may take its memory */
    N_LAYOUTS
};

struct lab;
struct conform_options;

/* A check of the device as a whole. */
struct conform_check {
    const char *group; /* NULL after the last */
    const char *name;
    const char *meaning;
    /* FRIT_OK, FRIT_UNSUPPORTED where the device lacks what it takes, else what is wrong. */
    frit_status (*run)(const struct conform_options *options, const struct lab *lab,
                       char reason[CONFORM_REASON]);
};

extern const struct conform_check device_checks[], describe_checks[], peer_checks[],
    memory_checks[], heap_checks[], queue_checks[], command_checks[], timeout_checks[],
    clock_checks[], capture_checks[], kernel_checks[], program_checks[], wide_checks[],
    spec_checks[], fuser_checks[], candidate_checks[], fault_checks[];

struct conform_case {
    const struct conform_check *check; /* NULL: what follows */
    struct conform_row row;            /* with a check: only the name, its group */
    const struct conform_form *form;
    uint32_t dtype; /* of the first operand whose type is open, or of the result */
    enum conform_layout layout;
    bool special; /* NaN, infinities, ends of the type */
};

struct conform_cases {
    struct conform_case *at;
    size_t count, capacity;
};

/* ---- a case as a program ---- */

struct conform_operand {
    uint32_t dtype;
    frit_dims dims; /* as stored */
    uint64_t seen;  /* elements that the op sees */
    char kind;
    int64_t bound; /* indices lie below it */
};

struct conform_program {
    uint32_t n_in, n_out;
    struct conform_operand in[CONFORM_OPERANDS];
    char text[4096];
};

/* ---- numbers ---- */

/* What a result must be. */
struct conform_wanted {
    uint32_t dtype;
    uint64_t count;
    const void *own;    /* what `reference` computes in these types */
    const double *wide; /* with f64 for floats; NULL: not known */
    enum conform_rule rule;
    double ulp;
    double most;  /* largest value of the operands */
    double terms; /* elements that meet in one, 1 unless they are folded */
    bool flushes; /* denormals may be taken for zero */
};

/* ---- running ---- */

enum conform_verdict {
    VERDICT_NONE,    /* it was not run */
    VERDICT_REFUSED, /* the op itself does not take such operands */
    VERDICT_NATIVE,
    VERDICT_DECOMPOSED,
    VERDICT_HOST,
    VERDICT_FALLBACK, /* the driver does not take it: it would run elsewhere */
    VERDICT_FAILED,
    N_VERDICTS
};

/* Whether it ran and was right. */
static inline bool conform_passes(enum conform_verdict verdict)
{
    return verdict > VERDICT_REFUSED && verdict < VERDICT_FALLBACK;
}

/* Part `number` of `count` of a run, 1 <= number <= count. */
struct conform_shard {
    uint32_t number, count;
};

struct conform_options {
    const char *device;
    frit_setting settings[CONFORM_SETTINGS];
    size_t n_settings;
    double timeout; /* seconds for one case */
    size_t jobs;    /* children at once, 1..CONFORM_JOBS */
    struct conform_shard shard;
    const char *lose;   /* a command by which the device is lost; NULL: none is known */
    frit_setting fault; /* an option of the driver with which launches fail; key NULL: none */
    bool isolate;
    bool quick;
};

/* Called with each case's outcome, in any order; `reason` is "" if it passes.
 * False: no more of them. */
typedef bool conform_on_verdict(void *ctx, size_t index, enum conform_verdict verdict,
                                const char *reason);

/* Runs cases in child processes, several at once.  A case that crashes or hangs fails, and another
 * child goes on with the next one.  Calls `on_verdict` with each verdict, until all cases have one
 * or `on_verdict` returns false.  Where the device is lost in a case, which fails, it ends, and
 * `*lost` is the case's index; else it is SIZE_MAX.  Returns false, after a message, if no child
 * can be started. */
bool conform_run(const struct conform_options *options, const struct conform_cases *cases,
                 conform_on_verdict *on_verdict, void *ctx, size_t *lost);

/* In a child: opens the device and runs cases from `first` on, writing lines to `out`. */
void conform_child(const struct conform_options *options, const struct conform_cases *cases,
                   size_t first, size_t end, FILE *out);

/* ---- the device that was named ---- */

struct conform_found {
    char device[CONFORM_NAME];
    char section[CONFORM_NAME]; /* of a plugin that is not installed: what loads it, */
    char library[4096];         /* and its file; else "" */
};

/* ---- ops of plugins ---- */

struct conform_custom;

/* ---- the report ---- */

/* Why a case failed, or was skipped. */
struct conform_note {
    size_t index;
    enum conform_verdict verdict; /* one that conform_passes says no of */
    char *reason;
};

struct conform_report {
    const char *device;
    struct conform_shard shard;
    const struct conform_cases *cases;
    enum conform_verdict *verdicts; /* one per case */
    struct conform_note *notes;     /* in the order of the cases */
    size_t n_notes;
    size_t n_run; /* cases that have a verdict */
    bool lost;    /* the device was, in the last of them */
    double seconds;
};

#endif
