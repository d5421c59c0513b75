/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share: the instance, the device, and compiled code. */
#ifndef CPU_H
#define CPU_H

#include <frit/backend.h>
#include <frit/fuser.h>

#include "ir/digest.h"
#include "jit.h"
#include "kernels.h"
#include "util/hosted.h"

struct plug;
struct tile_bounds;
struct tile_code;

#define CPU_VERSION "0.1.0"

/* One per host.  Constant once open, but for what has a lock of its own or is said to change. */
struct instance {
    struct plug plug;
    const frit_host_exec *exec; /* NULL: the calling thread works alone, and in no background */
    uint32_t threads;
    uint64_t memory_bytes; /* option: what a device may hold, 0 = no cap */
    enum tile_level level; /* option: instruction set */
    bool check;            /* option: everything is interpreted, within its bounds */
    bool winograd;         /* option: convolutions may be Winograd's */
    struct jit jit;
    uint64_t stream_bytes; /* a launch that writes as much goes around the caches */
    char name[96];         /* of the processor */
    char fingerprint[64];
    frit_heap heap;  /* of the device; filled by enumerate */
    uint64_t serial; /* of code: grows, atomically, with the generation of any module */
};

/* What a launch needs besides its arguments; of one queue, kept between launches. */
struct launch_memory {
    uint64_t *words;
    void **args;
    struct tile_bounds *bounds; /* of the arguments */
    uint32_t n_words, n_args;
    size_t scratch_bytes;
    void **scratch; /* per thread */
};

/* What runs the launches of a queue. */
struct launcher {
    struct instance *instance;
    struct launch_memory memory;
};

struct device {
    struct hosted hosted; /* the first: slots of util/hosted.h take a device */
    struct instance *instance;
    struct kernels_device kernels;
    struct launcher launcher; /* of the first queue */
};

extern const struct hosted_driver launcher_slots; /* for a struct launcher */

/* A module made ready to run: by the tile interpreter or as machine code first, and, when it was
 * worth it, as better code from then on.  Any thread. */
struct phase_code {
    struct tile_code *tile; /* NULL: there was machine code at once */
    uint64_t work;          /* instructions of a group */
};

struct module_code {
    struct instance *instance;
    atomic_uint refs;              /* of the kernel library, and of a compile */
    struct object *first;          /* machine code that was there at once, or NULL */
    _Atomic(struct object *) best; /* as good as it gets; NULL: not yet, or never; set once */
    atomic_uint generation;
    atomic_uint_least64_t spent_ns; /* without it */
    atomic_uint_least64_t task;     /* of the host, that makes it; 0: not known */
    bool compiles;                  /* to better code, of the module that is kept for that */
    atomic_bool spawned;            /* the task that makes better code */
    atomic_bool begun;              /* the spawned compile */
    atomic_bool hurried,
        hurry_ended;      /* a launching thread compiles, or has, without waiting for the task */
    atomic_bool unwanted; /* no program uses the code any more */
    struct kir_module module; /* for the compile */
    uint8_t digest[KIR_DIGEST];
    uint64_t writes; /* bits of the arguments that it writes, of the first 64 */
    size_t scratch;  /* bytes that a thread needs in the tile interpreter */
    uint32_t n_phases;
    struct phase_code phases[];
};

extern const frit_fuser_table fuser_table;

#endif
