/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin on a host that is as small as one can be, so that its slots can be called in ways in
 * which libfrit calls them never or rarely: memory, queue, programs and fusers by hand.  One
 * thread. */
#ifndef CLI_CONFORM_BARE_H
#define CLI_CONFORM_BARE_H

#include <stdatomic.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>
#include <frit/profile.h>

#include "conform/lab.h"

struct bare {
    const struct conform_options *options;
    const frit_setting *extra; /* NULL, or an option's value that beats all others */
    const frit_plugin *plugin;
    frit_host_root root;
    void *instance;
    const frit_backend *backend;
    const frit_fuser_table *fusers;    /* NULL: none */
    const frit_native_table *native;   /* of the driver, while there is a guest; NULL: none */
    const frit_capture_table *capture; /* NULL: none */
    const frit_profile_table *profile; /* NULL: none */
    frit_device_info info;
    void *device;
    uint64_t last;          /* value of the last write, read or submit */
    uint64_t reached;       /* the last one that was waited for */
    bool late;              /* a wait ended without an answer: what runs may run for ever */
    frit_fuser_device seen; /* what fusers are told */
    _Atomic int64_t live;   /* pieces of host memory that the plugin holds */
    frit_err err;           /* of the last call */
    char *reason;           /* CONFORM_REASON bytes: what is wrong */
    struct block_memo *memo;
};

/* Opens the device of the lab a second time.  On failure all is closed. */
frit_status bare_open(struct bare *bare, const struct conform_options *options,
                      const struct lab *lab, char reason[CONFORM_REASON]);
/* FRIT_INTERNAL if host memory is left, or the queue hangs: then the device stays open.  A failure
 * that is given beats that. */
frit_status bare_close(struct bare *bare, frit_status status);
/* Sets `plugin` to that of a file. */
frit_status bare_load(struct bare *bare, const char *path);
/* Writes the reason. */
frit_status bare_wrong(struct bare *bare, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The status that a slot returned, in words with its text. */
frit_status bare_failed(struct bare *bare, const char *slot, frit_status status);
/* Whether the plugin declares the option. */
bool bare_has_option(const struct bare *bare, const char *name);

/* Opens the device, with an option's value if it has that option, and asks. */
frit_status bare_check(const struct conform_options *options, const struct lab *lab,
                       const frit_setting *extra, frit_status (*ask)(struct bare *bare),
                       char reason[CONFORM_REASON]);

/* check_NAME, which asks NAME. */
#define BARE_CHECK(name, extra)                                                                   \
    static frit_status check_##name(const struct conform_options *options, const struct lab *lab, \
                                    char reason[CONFORM_REASON])                                  \
    {                                                                                             \
        return bare_check(options, lab, extra, name, reason);                                     \
    }

/* ---- memory and queue ---- */

/* FRIT_OK, or told; `memory` NULL then. */
frit_status bare_alloc(struct bare *bare, uint64_t bytes, uint64_t align, frit_allocation *out);
/* When all that was submitted is done.  Where that never comes the memory stays. */
void bare_free(struct bare *bare, frit_memory *memory);
/* The value of a write, read or submit that the backend took: bare_free waits for it. */
void bare_note(struct bare *bare, uint64_t value);
frit_status bare_write(struct bare *bare, frit_memory *memory, uint64_t offset, const void *from,
                       uint64_t bytes);
/* Waits. */
frit_status bare_read(struct bare *bare, frit_memory *memory, uint64_t offset, void *into,
                      uint64_t bytes);
/* In words that the queue gave no answer in time. */
frit_status bare_late(struct bare *bare);
/* Waits for a value, half the time that a case may take; after a timeout no wait is tried again.  A
 * failed command is a failure. */
frit_status bare_wait(struct bare *bare, uint64_t value);

/* ---- tensors of f32, dense, with bytes around them that must stay ---- */

struct bare_tensor {
    frit_memory *memory;
    uint64_t guard, count;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK];
};

/* `rank` dims; holds NaN, or the numbers. */
frit_status bare_tensor(struct bare *bare, const int64_t *dims, uint32_t rank, const float *numbers,
                        struct bare_tensor *out);
/* The numbers; fails if something beside them was written. */
frit_status bare_numbers(struct bare *bare, const struct bare_tensor *tensor, float *out);
void bare_tensor_free(struct bare *bare, struct bare_tensor *tensor);

/* ---- launches ---- */

enum { BARE_ARGS = 12, BARE_SCALARS = 8, BARE_DERIVED = 16 };

/* What launches derive from an operand.  All zero: no memory yet. */
struct bare_derived {
    frit_allocation at[BARE_DERIVED];
    uint64_t bytes[BARE_DERIVED];
    uint32_t n;
    bool valid; /* filled by a launch */
};

void bare_derived_free(struct bare *bare, struct bare_derived *derived);

struct bare_launch {
    const frit_program *program;
    uint32_t candidate, n_in, n_out, n_scalars;
    const struct bare_tensor *args[BARE_ARGS]; /* NULL: a scalar's place */
    double scalars[BARE_SCALARS];
    struct bare_derived *derived; /* is filled, or found valid; NULL: is filled and thrown away */
};

/* What prepare answers. */
struct bare_answer {
    frit_status status;
    frit_launch_spec spec;
    frit_variant variant;
};

void bare_prepare(struct bare *bare, const struct bare_launch *launch, struct bare_answer *out);
/* Ends it: the program may forget. */
void bare_release(const frit_program *program, struct bare_answer *answer);
/* What it says of an output. */
const frit_output_spec *bare_output(const struct bare_answer *answer, uint32_t output);
/* Where prepare wants it; a failure is told. */
frit_status bare_compile(struct bare *bare, const struct bare_launch *launch,
                         struct bare_answer *answer);
/* What a launch needs beside its arguments. */
struct bare_extras {
    frit_allocation workspace;
    struct bare_derived own, *derived;
    frit_derived list[BARE_DERIVED];
};

/* The contract's form of a launch, with memory that the spec wants until bare_unbind, also after a
 * failure.  Points into itself and the answer. */
struct bare_bound {
    frit_launch launch;
    frit_arg args[BARE_ARGS];
    frit_scalar scalars[BARE_SCALARS];
    struct bare_extras extras;
};

frit_status bare_bind(struct bare *bare, const struct bare_launch *launch,
                      const struct bare_answer *answer, struct bare_bound *out);
void bare_unbind(struct bare *bare, struct bare_bound *bound);
/* Prepares, compiles, runs and waits.  FRIT_UNSUPPORTED where prepare says so or wants other
 * strides. */
frit_status bare_run(struct bare *bare, const struct bare_launch *launch);
/* The same with an answer that prepare gave for such a launch. */
frit_status bare_run_prepared(struct bare *bare, const struct bare_launch *launch,
                              const struct bare_answer *answer);

#endif
