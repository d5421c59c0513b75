/* SPDX-License-Identifier: Apache-2.0 */
/* A bare host: a plugin on the smallest host that works, so that the checks can call its slots
 * (memory, queue, programs, fusers) in ways in which libfrit never or rarely does.  One thread. */
#ifndef CLI_CONFORM_BARE_H
#define CLI_CONFORM_BARE_H

#include <stdatomic.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>
#include <frit/profile.h>

#include "conform/border.h"
#include "conform/lab.h"
#include "conform/launch.h"

struct bare {
    const struct conform_options *options;
    frit_host *host;           /* libfrit's, by which options of plugins are looked up */
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
    bool wide;              /* arguments have fields after those of this contract */
    bool late;              /* a wait timed out: what is running may never end */
    frit_fuser_device seen; /* what the host passes to fusers */
    const struct border *border;
    _Atomic int64_t live; /* pieces of host memory that the plugin holds */
    frit_err err;         /* of the last call */
    char *reason;         /* CONFORM_REASON bytes: what is wrong */
    struct block_memo *memo;
    FILE *out; /* the lines of the child */
};

/* Opens the device of the lab a second time.  On failure all is closed. */
frit_status bare_open(struct bare *bare, const struct conform_options *options,
                      const struct lab *lab, char reason[CONFORM_REASON]);
/* Returns `status` if it is a failure; FRIT_INTERNAL if host memory is left or the state of the
 * thread or process is another, or if the queue hangs, and then the device stays open. */
frit_status bare_close(struct bare *bare, frit_status status);
/* Sets `plugin` to that of a file. */
frit_status bare_load(struct bare *bare, const char *path);
/* Writes the reason and returns FRIT_INTERNAL. */
frit_status bare_fail_text(struct bare *bare, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails the case with the status that a slot returned, and its text; not as unsupported, which a
 * slot says where nothing was promised: callers that expect it return it themselves. */
frit_status bare_fail(struct bare *bare, const char *slot, frit_status status);
/* Notes what is about to run: where the case ends or hangs in it, its reason has the text. */
void bare_note(const struct bare *bare, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether the plugin declares the option. */
bool bare_has_option(const struct bare *bare, const char *name);

/* Opens the device, with an option's value if it has that option, and runs `check`. */
frit_status bare_check(const struct conform_options *options, const struct lab *lab,
                       const frit_setting *extra, frit_status (*check)(struct bare *bare),
                       char reason[CONFORM_REASON]);

/* Defines check_NAME, which runs NAME on an open device. */
#define BARE_CHECK(name, extra)                                                                   \
    static frit_status check_##name(const struct conform_options *options, const struct lab *lab, \
                                    char reason[CONFORM_REASON])                                  \
    {                                                                                             \
        return bare_check(options, lab, extra, name, reason);                                     \
    }

/* ---- tensors of f32, dense, with bytes around them that must stay ---- */

struct bare_tensor {
    frit_memory *memory;
    uint64_t guard, count;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK];
};

/* ---- launches ---- */

enum { BARE_ARGS = 12, BARE_SCALARS = 8, BARE_DERIVED = 16 };

/* What launches derive from an operand.  All zero: no memory yet. */
struct bare_derived {
    frit_allocation at[BARE_DERIVED];
    uint64_t bytes[BARE_DERIVED];
    uint32_t n;
    bool valid; /* filled by a launch */
};

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

/* What a launch needs besides its arguments. */
struct bare_extras {
    frit_allocation workspace;
    struct bare_derived own, *derived;
    frit_derived list[BARE_DERIVED];
};

/* Arguments as a host of a later minor passes them: with fields after those that are known here. */
struct wide_sig {
    frit_arg_sig sig;
    uint64_t more[2];
};

struct wide_arg {
    frit_arg arg;
    uint64_t more[2];
};

/* The contract's form of a launch, with memory that the spec wants until bare_unbind, also after a
 * failure.  Points into itself and the answer. */
struct bare_bound {
    frit_launch launch;
    struct wide_arg args[BARE_ARGS]; /* at launch.arg_stride */
    frit_scalar scalars[BARE_SCALARS];
    struct bare_extras extras;
};

#endif
