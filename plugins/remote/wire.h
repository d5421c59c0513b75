/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What driver and server say to each other over their socket.
 *
 * Each message is a head and as many bytes as it names.  Both ends run on machines with the same
 * order of bytes; structs have no holes.  The server does what it is sent in order, and replies in
 * that order.  It knows nothing of Frit: buffers are numbers that the driver chooses, and a launch
 * says element by element what is to be computed. */
#ifndef REMOTE_WIRE_H
#define REMOTE_WIRE_H

#include <stdint.h>

enum {
    WIRE_MAGIC = 0x57525246, /* "FRRW" */
    WIRE_VERSION = 1,
    WIRE_RANK = 9, /* dims of a loop nest: those of a tensor, and one that products sum over */
    WIRE_ARGS = 16,
    WIRE_OPS = 16,
    WIRE_VALUES = 48,
    WIRE_SCALAR = 0xffff,       /* in place of a value */
    WIRE_MAX_COMMANDS = 1 << 24 /* bytes of a WIRE_SUBMIT */
};

enum wire_kind {
    WIRE_HELLO = 1, /* struct wire_hello, first, from either side */
    /* To the server. */
    WIRE_ALLOC,  /* struct wire_range: a buffer of `bytes` under a new number */
    WIRE_FREE,   /* struct wire_range */
    WIRE_WRITE,  /* struct wire_range, then its bytes */
    WIRE_READ,   /* struct wire_range */
    WIRE_SUBMIT, /* commands, each a struct wire_command and what belongs to it */
    /* To the driver.  Each WRITE, READ and SUBMIT ends with a DONE. */
    WIRE_DATA,   /* what was read */
    WIRE_FAILED, /* struct wire_failure: a command of the message failed */
    WIRE_DONE,
    WIRE_BYE /* a text: why the server ends */
};

struct wire_head {
    uint32_t kind; /* WIRE_* */
    uint32_t reserved;
    uint64_t value; /* of WRITE, READ and SUBMIT on the timeline; replies repeat it */
    uint64_t bytes; /* that follow */
};

struct wire_hello {
    uint32_t magic, version;
    uint64_t memory_bytes; /* from the server: for this connection */
    uint64_t process;      /* from the server: its number, for people */
};

struct wire_range {
    uint64_t memory; /* number of a buffer */
    uint64_t offset, bytes;
};

enum wire_command_kind { WIRE_COPY = 1, WIRE_FILL, WIRE_LAUNCH, WIRE_NOTHING };

struct wire_command {
    uint32_t kind;
    uint32_t pattern_bytes; /* FILL */
    struct wire_range to;   /* COPY, FILL */
    struct wire_range from; /* COPY */
    uint64_t pattern;       /* FILL */
    uint64_t cookie;        /* LAUNCH, returned with its failure */
};

/* Of one element: the value `out` from two others. */
enum wire_function {
    WIRE_MOVE,
    WIRE_ADD,
    WIRE_SUB,
    WIRE_MUL,
    WIRE_DIV,
    WIRE_MAXIMUM,
    WIRE_EXP,
    WIRE_ERF,
    WIRE_FUNCTIONS
};

struct wire_op {
    uint32_t function; /* WIRE_MOVE and so on */
    uint32_t in[2];    /* values; WIRE_SCALAR: scalar[i] */
    uint32_t out;
    double scalar[2];
};

struct wire_arg {
    uint64_t memory;
    uint64_t offset;            /* bytes to element 0 */
    int64_t strides[WIRE_RANK]; /* in bytes, 0 where all share an element */
    uint32_t value;             /* that is loaded from it, or stored to it */
    uint32_t reserved;
};

/* A loop nest over f32.  For each index of the first `n_kept` dims: the sum, over all indices of
 * the others, of what the ops make of the inputs there, stored to the outputs.  Without others
 * there is one term, whose ops are each rounded. */
struct wire_launch {
    uint32_t rank, n_kept;
    uint32_t n_in, n_out; /* args that follow: inputs, then outputs */
    uint32_t n_ops;       /* that follow */
    uint32_t n_values;
    int64_t dims[WIRE_RANK];
};

struct wire_failure {
    int32_t status;   /* FRIT_NO_DEVICE_MEMORY and so on */
    uint32_t command; /* number in its SUBMIT, from 1; else 1 */
    uint64_t cookie;
    char text[240];
};

enum { WIRE_CLOSED = -1 }; /* the other side ended the connection */

/* Sends a message whose bytes lie in two parts, either of which may be empty; head.bytes is set.  0
 * or the system's error.  Raises no SIGPIPE.  Threads: one message at a time. */
int wire_send(int fd, struct wire_head head, const void *first, uint64_t n_first,
              const void *second, uint64_t n_second);
/* All the bytes.  0, WIRE_CLOSED or the system's error. */
int wire_receive(int fd, void *into, uint64_t bytes);
/* Reads bytes that nobody wants. */
int wire_skip(int fd, uint64_t bytes);
/* "Connection refused" and so on, in `text` or constant. */
const char *wire_error(int error, char text[64]);

#endif
