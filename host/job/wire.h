/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a job send each other: a greeting, then frames.
 *
 * The greeting is WIRE_MAGIC and the token of the job.  A frame is its length (4 bytes), its kind
 * (1 byte, counted) and its fields; numbers are little-endian, a text has its length (4 bytes) in
 * front.  What is received is not trusted: a reader never leaves the frame, and after a field that
 * is not there `failed` is set and all others are 0 and "". */
#ifndef JOB_WIRE_H
#define JOB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/types.h>

#include "base/str.h"

#define WIRE_MAGIC "FRITJOB1"
enum { WIRE_TOKEN = 32, WIRE_GREETING = 8 + WIRE_TOKEN };
enum { WIRE_MAX = 1 << 20, WIRE_VALUE = WIRE_MAX - 1024, WIRE_KEY = 272, WIRE_TEXT = 480 };

enum wire_kind {
    /* To rank 0. */
    WIRE_HELLO = 1, /* rank, size, pid, limit ns, host, n, n * (name, value) */
    WIRE_BEAT,      /* place */
    WIRE_SET,       /* request, key, value */
    WIRE_GET,       /* request, limit ns, key */
    WIRE_FAIL,      /* generation, status, text */
    WIRE_BEHIND,    /* request, place: which ranks have not begun it? */
    WIRE_REBUILD,   /* request, generation, limit ns */
    WIRE_LEAVE,     /* - */
    /* From rank 0. */
    WIRE_JOINED, /* host and pid of rank 0: all ranks have come */
    WIRE_PULSE,  /* - */
    WIRE_REPLY,  /* request, status, value or text */
    WIRE_FAILED, /* generation, status, text: the first failure of the job */
    WIRE_END     /* - : rank 0 has left */
};

/* ---- writing, at the end of a text ---- */

/* Returns what wire_end needs. */
size_t wire_begin(struct str *out, enum wire_kind kind);
void wire_u32(struct str *out, uint32_t value);
void wire_u64(struct str *out, uint64_t value);
void wire_bytes(struct str *out, const void *bytes, size_t n);
void wire_text(struct str *out, const char *text);
void wire_end(struct str *out, size_t begin);

/* ---- reading ---- */

struct wire_reader {
    const uint8_t *at, *end;
    bool failed;
};

/* The whole frame at the front of `n` bytes: its size with the length in front, and a reader of its
 * fields; 0: more bytes are needed; -1: no frame begins like this. */
int64_t wire_next(const void *bytes, size_t n, uint32_t *kind, struct wire_reader *out);
uint32_t wire_read_u32(struct wire_reader *in);
uint64_t wire_read_u64(struct wire_reader *in);
/* At most `most` bytes, which lie in the frame. */
frit_str wire_read_bytes(struct wire_reader *in, size_t most);
/* A text as it may be shown (text_clean), terminated and cut to `size`. */
void wire_read_text(struct wire_reader *in, char *out, size_t size);

#endif
