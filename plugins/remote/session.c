/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What comes over the connection is checked as if a stranger had sent it: numbers of buffers, all
 * bytes of a range, all elements of an argument.  A command that is wrong fails alone; a message
 * that makes no sense ends the connection. */
#include "session.h"

#include <frit/status.h>

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compute.h"

struct buffer {
    struct buffer *next;
    uint64_t number, bytes;
    char data[];
};

struct session {
    int fd;
    uint64_t free_bytes;
    struct buffer *buffers;
    struct wire_head head;       /* of the message that is being served */
    struct wire_failure failure; /* status 0: none */
};

volatile sig_atomic_t session_stop_signal;

bool session_wait(int fd)
{
    struct pollfd on = {.fd = fd, .events = POLLIN};
    sigset_t none;

    sigemptyset(&none);
    return ppoll(&on, 1, NULL, &none) == 1;
}

/* ---- replies ---- */

static bool reply(const struct session *s, uint32_t kind, const void *bytes, uint64_t n)
{
    const struct wire_head head = {.kind = kind, .value = s->head.value};

    return wire_send(s->fd, head, bytes, n, NULL, 0) == 0;
}

/* Notes why the command fails; false. */
__attribute__((format(printf, 3, 4))) static bool refuse(struct session *s, int32_t status,
                                                         const char *format, ...)
{
    va_list args;

    s->failure.status = status;
    va_start(args, format);
    vsnprintf(s->failure.text, sizeof s->failure.text, format, args);
    va_end(args);
    return false;
}

/* Reports the failure of command `number`, if there is one. */
static bool report(struct session *s, uint32_t number, uint64_t cookie)
{
    s->failure.command = number;
    s->failure.cookie = cookie;
    if (s->failure.status && !reply(s, WIRE_FAILED, &s->failure, sizeof s->failure))
        return false;
    s->failure.status = 0;
    return true;
}

/* ---- buffers ---- */

static struct buffer **find(struct session *s, uint64_t number)
{
    struct buffer **at = &s->buffers;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

/* A buffer for which there is no memory is none; what uses it fails. */
static void alloc_buffer(struct session *s, const struct wire_range *range)
{
    struct buffer *buffer =
        range->bytes <= s->free_bytes ? malloc(sizeof *buffer + range->bytes) : NULL;

    if (!buffer)
        return;
    buffer->number = range->memory;
    buffer->bytes = range->bytes;
    buffer->next = s->buffers;
    s->buffers = buffer;
    s->free_bytes -= range->bytes;
}

static void free_buffer(struct session *s, const struct wire_range *range)
{
    struct buffer **at = find(s, range->memory), *buffer = *at;

    if (!buffer)
        return;
    *at = buffer->next;
    s->free_bytes += buffer->bytes;
    free(buffer);
}

/* NULL, and a failure, where the bytes do not lie in a buffer. */
static char *bytes_of(struct session *s, const struct wire_range *range)
{
    struct buffer *buffer = *find(s, range->memory);

    if (!buffer) {
        refuse(s, FRIT_NO_DEVICE_MEMORY, "the server has no memory for buffer %llu",
               (unsigned long long)range->memory);
        return NULL;
    }
    if (range->offset <= buffer->bytes && range->bytes <= buffer->bytes - range->offset)
        return buffer->data + range->offset;
    refuse(s, FRIT_INVALID, "%llu bytes at %llu of a buffer of %llu",
           (unsigned long long)range->bytes, (unsigned long long)range->offset,
           (unsigned long long)buffer->bytes);
    return NULL;
}

/* ---- commands ---- */

static void run_copy(struct session *s, const struct wire_command *command)
{
    char *to = bytes_of(s, &command->to), *from = to ? bytes_of(s, &command->from) : NULL;

    if (from && command->from.bytes == command->to.bytes)
        memmove(to, from, command->to.bytes);
    else if (from)
        refuse(s, FRIT_INVALID, "a copy of different lengths");
}

static void run_fill(struct session *s, const struct wire_command *command)
{
    const uint32_t n = command->pattern_bytes;
    char *to = bytes_of(s, &command->to);

    if (to && (n == 0 || n > sizeof command->pattern || command->to.bytes % n))
        refuse(s, FRIT_INVALID, "a fill with a pattern of %u bytes", n);
    for (uint64_t at = 0; to && !s->failure.status && at < command->to.bytes; at += n)
        memcpy(to + at, &command->pattern, n);
}

/* The bytes from the first to the last element of an argument, and how many of them lie before
 * element 0; false: there are none, or they cannot be counted. */
static bool span(const struct wire_launch *launch, const struct wire_arg *arg,
                 struct wire_range *range, int64_t *below)
{
    int64_t low = 0, high = sizeof(float), reach;

    for (uint32_t d = 0; d < launch->rank; d++)
        if ((launch->dims[d] == 0 && arg->strides[d]) ||
            __builtin_mul_overflow(launch->dims[d] - 1, arg->strides[d], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    if (low < -INT64_MAX || arg->offset > INT64_MAX || (int64_t)arg->offset < -low ||
        high > INT64_MAX + low)
        return false;
    *range = (struct wire_range){arg->memory, arg->offset - (uint64_t)-low, (uint64_t)(high - low)};
    *below = -low;
    return true;
}

static bool place_args(struct session *s, struct nest *nest)
{
    const struct wire_launch *launch = &nest->launch;

    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const struct wire_arg *arg = &nest->args[i];
        struct wire_range range;
        int64_t below;

        if (arg->value >= launch->n_values || !span(launch, arg, &range, &below))
            return refuse(s, FRIT_INVALID, "argument %u of a launch makes no sense", i);
        nest->data[i] = bytes_of(s, &range);
        if (!nest->data[i])
            return false;
        nest->data[i] += below;
    }
    return true;
}

static bool check_ops(struct session *s, const struct nest *nest)
{
    for (uint32_t k = 0; k < nest->launch.n_ops; k++) {
        const struct wire_op *op = &nest->ops[k];

        for (int i = 0; i < 2; i++)
            if (op->in[i] >= nest->launch.n_values && op->in[i] != WIRE_SCALAR)
                return refuse(s, FRIT_INVALID, "op %u of a launch has no value %u", k, op->in[i]);
        if (op->function >= WIRE_FUNCTIONS || op->out >= nest->launch.n_values)
            return refuse(s, FRIT_INVALID, "op %u of a launch makes no sense", k);
    }
    return true;
}

/* Takes `n` bytes of the message; false: it has fewer. */
static bool take(const char **at, const char *end, void *into, uint64_t n)
{
    if ((uint64_t)(end - *at) < n)
        return false;
    memcpy(into, *at, n);
    *at += n;
    return true;
}

/* Reads what belongs to a launch and runs it.  False: the message makes no sense. */
static bool run_launch(struct session *s, const char **at, const char *end)
{
    struct nest nest;
    struct wire_launch *launch = &nest.launch;
    bool empty = false;

    if (!take(at, end, launch, sizeof *launch) || launch->rank > WIRE_RANK ||
        launch->n_kept > launch->rank || launch->n_in > WIRE_ARGS || launch->n_out > WIRE_ARGS ||
        launch->n_in + launch->n_out > WIRE_ARGS || launch->n_ops > WIRE_OPS ||
        launch->n_values > WIRE_VALUES ||
        !take(at, end, nest.args, (launch->n_in + launch->n_out) * sizeof *nest.args) ||
        !take(at, end, nest.ops, launch->n_ops * sizeof *nest.ops))
        return false;
    for (uint32_t d = 0; d < launch->rank; d++) {
        empty |= launch->dims[d] == 0 && d < launch->n_kept;
        if (launch->dims[d] < 0)
            return false;
    }
    if (!empty && check_ops(s, &nest) && place_args(s, &nest))
        compute(&nest);
    return true;
}

/* False: the message makes no sense, or the connection fails. */
static bool run_command(struct session *s, const char **at, const char *end, uint32_t number)
{
    struct wire_command command;
    bool known = true;

    if (!take(at, end, &command, sizeof command))
        return false;
    if (command.kind == WIRE_COPY)
        run_copy(s, &command);
    else if (command.kind == WIRE_FILL)
        run_fill(s, &command);
    else if (command.kind == WIRE_LAUNCH)
        known = run_launch(s, at, end);
    else
        known = command.kind == WIRE_NOTHING;
    return known && report(s, number, command.cookie);
}

/* ---- messages ---- */

static bool serve_submit(struct session *s)
{
    char *commands = s->head.bytes <= WIRE_MAX_COMMANDS ? malloc(s->head.bytes + 1) : NULL;
    bool good = commands && wire_receive(s->fd, commands, s->head.bytes) == 0;
    const char *at = commands, *end = good ? commands + s->head.bytes : commands;

    for (uint32_t number = 1; good && at < end; number++)
        good = run_command(s, &at, end, number);
    free(commands);
    return good && reply(s, WIRE_DONE, NULL, 0);
}

static bool serve_write(struct session *s, const struct wire_range *range)
{
    char *to = bytes_of(s, range);

    if (range->bytes != s->head.bytes - sizeof *range ||
        (to ? wire_receive(s->fd, to, range->bytes) : wire_skip(s->fd, range->bytes)))
        return false;
    return report(s, 1, 0) && reply(s, WIRE_DONE, NULL, 0);
}

static bool serve_read(struct session *s, const struct wire_range *range)
{
    const char *from = bytes_of(s, range);

    if (from && !reply(s, WIRE_DATA, from, range->bytes))
        return false;
    return report(s, 1, 0) && reply(s, WIRE_DONE, NULL, 0);
}

/* False: the connection ends. */
static bool serve(struct session *s)
{
    struct wire_range range;

    if (wire_receive(s->fd, &s->head, sizeof s->head))
        return false;
    if (s->head.kind == WIRE_SUBMIT)
        return serve_submit(s);
    if (s->head.bytes < sizeof range || wire_receive(s->fd, &range, sizeof range))
        return false;
    if (s->head.kind == WIRE_WRITE)
        return serve_write(s, &range);
    if (s->head.bytes > sizeof range)
        return false;
    if (s->head.kind == WIRE_READ)
        return serve_read(s, &range);
    if (s->head.kind == WIRE_ALLOC)
        alloc_buffer(s, &range);
    else if (s->head.kind == WIRE_FREE)
        free_buffer(s, &range);
    return s->head.kind == WIRE_ALLOC || s->head.kind == WIRE_FREE;
}

static bool greet(struct session *s)
{
    struct wire_hello hello;
    bool speaks = wire_receive(s->fd, &s->head, sizeof s->head) == 0 &&
                  s->head.kind == WIRE_HELLO && s->head.bytes == sizeof hello &&
                  wire_receive(s->fd, &hello, sizeof hello) == 0 && hello.magic == WIRE_MAGIC;

    if (!speaks)
        return false;
    hello = (struct wire_hello){WIRE_MAGIC, WIRE_VERSION, s->free_bytes, (uint64_t)getpid()};
    return reply(s, WIRE_HELLO, &hello, sizeof hello);
}

void session_run(int fd, uint64_t memory_bytes)
{
    struct session s = {.fd = fd, .free_bytes = memory_bytes};
    char text[80];
    int length;

    if (!greet(&s))
        return;
    while (session_wait(fd) && serve(&s))
        continue;
    if (!session_stop_signal)
        return;
    length = snprintf(text, sizeof text, "the server was stopped by signal %d",
                      (int)session_stop_signal);
    (void)reply(&s, WIRE_BYE, text, (uint64_t)length);
}
