/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code of a module as bytes: a header, per phase where its function begins and what scratch
 * it needs, then code and constants as they lie in memory.  Nothing is relocated, so that bytes
 * from a cache run without LLVM.  They are trusted as far as the cache is: structure is checked,
 * code cannot be.  Thread rule: a loaded object is immutable. */
#ifndef EMIT_LLVM_BLOB_H
#define EMIT_LLVM_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

enum {
    BLOB_ALIGN = 64, /* of scratch */
    BLOB_MAX_PHASES = 4096,
    BLOB_HELD = 32768 /* bytes of stores that a group leaves to the next one, at most */
};

#define BLOB_MAGIC   0x33626f6c62746972
#define BLOB_NOWHERE UINT64_MAX

/* Runs one group of one phase: words by number of parameter, arguments by number, three coordinates
 * of the group.  group[3]: 1 where stores may go around the caches, because there is more of them
 * than these hold and they are not read again soon; those of modules that read what they write
 * never do.  Around groups that may, object_begin and
 * object_finish of the same scratch are the caller's, the latter once each thread that ran groups
 * has made a fence. */
typedef void (*blob_fn)(const uint64_t *words, void *const *args, const uint32_t group[4],
                        void *scratch);

struct blob_phase {
    uint64_t entry;   /* from the first byte of code */
    uint64_t scratch; /* bytes */
    uint64_t
        deferred; /* where in scratch the struct blob_deferred lies; BLOB_NOWHERE: it has none */
};

/* The deferred store of a group: the address and the number of the bytes, which follow it. */
struct blob_deferred {
    void *to;
    uint64_t bytes;
    uint64_t fill[6];
};

struct blob {
    uint64_t magic;
    uint64_t code_at, code_bytes; /* from the first byte of the blob */
    uint64_t n_phases;
    struct blob_phase phases[];
};

struct object_phase {
    blob_fn run;
    size_t scratch;  /* bytes that each running thread needs, aligned to BLOB_ALIGN */
    size_t deferred; /* as in struct blob_phase */
};

struct object {
    void *code;
    size_t mapped;
    uint32_t n_phases;
    struct object_phase phases[];
};

/* FRIT_INVALID: these bytes are no blob of this version.  The bytes are not needed afterwards. */
frit_status object_load(const void *bytes, size_t n, struct object **out, frit_err *err);
void object_unload(struct object *object);

/* Before the first of several groups of a phase whose stores may go around the caches, and after
 * the last one, from any thread: what it left is stored, through the caches. */
void object_begin(const struct object_phase *phase, void *scratch);
void object_finish(const struct object_phase *phase, void *scratch);

#endif
