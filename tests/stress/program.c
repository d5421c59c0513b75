/* SPDX-License-Identifier: Apache-2.0 */
/* Element i of every tensor is scale * (i + 1) + shift, whole numbers that floats hold exactly. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "soak.h"

enum { POOL = 5, LARGE = 100000 };
static const int64_t exact = 1 << 23;

struct item {
    frit_tensor *tensor;
    uint32_t device;
    int64_t n, scale, shift;
};

struct player {
    struct program *program;
    struct item pool[POOL];
    float *data; /* of the largest */
};

static uint32_t pick(struct player *p, uint32_t n)
{
    return soak_pick(&p->program->random, n);
}

static void complain(struct player *p, const char *what, frit_status status, const char *text)
{
    if (!p->program->wrong)
        soak_complain("%s: %s: %s", what, frit_status_name(status), text);
    p->program->wrong = true;
}

/* Whether a failure is one that this run provokes, with a text; else it is reported. */
static void note_failure(struct player *p, const char *what, frit_status status, const char *text)
{
    if (p->program->may_fail && text[0])
        p->program->failed++;
    else
        complain(p, what, status, text[0] ? text : "no text");
}

/* ---- items ---- */

static struct item fresh(struct player *p)
{
    static const int64_t sizes[] = {1, 8, 40, 1000, LARGE};
    struct item item = {.device = pick(p, 2),
                        .n = sizes[pick(p, p->program->large ? 5 : 4)],
                        .scale = pick(p, 3),
                        .shift = (int64_t)pick(p, 7) - 3};

    for (int64_t i = 0; i < item.n; i++)
        p->data[i] = (float)(item.scale * (i + 1) + item.shift);
    item.tensor = frit_from_host(p->program->device[item.device], FRIT_F32, FRIT_SHAPE(item.n),
                                 p->data, (uint64_t)item.n * sizeof(float));
    return item;
}

static void check(struct player *p, const struct item *item)
{
    for (int64_t i = 0; i < item->n && p->program->computes; i++) {
        float right = (float)(item->scale * (i + 1) + item->shift);

        if (p->data[i] == right)
            continue;
        if (!p->program->wrong)
            soak_complain("element %lld of %lld is %g, not %g", (long long)i, (long long)item->n,
                          (double)p->data[i], (double)right);
        p->program->wrong = true;
    }
    p->program->checked++;
}

static void read_item(struct player *p, const struct item *item, frit_tensor *tensor)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_status status;

    memset(p->data, 0xff, (size_t)item->n * sizeof(float));
    status = frit_read(tensor, p->data, (uint64_t)item->n * sizeof(float), &err);
    if (status)
        note_failure(p, "read", status, err.text);
    else
        check(p, item);
}

static void set(struct player *p, struct item *item, struct item next)
{
    frit_release(item->tensor);
    *item = next;
    if (llabs(item->scale) * (item->n + 1) + llabs(item->shift) < exact)
        return;
    frit_release(item->tensor);
    *item = fresh(p);
}

static struct item scaled(const struct item *from, frit_tensor *operand, int by)
{
    struct item to = *from;

    to.tensor = frit_mul_f(operand, by);
    to.scale *= by;
    to.shift *= by;
    return to;
}

static struct item shifted(const struct item *from, frit_tensor *operand, int by)
{
    struct item to = *from;

    to.tensor = frit_add_f(operand, by);
    to.shift += by;
    return to;
}

/* ---- steps ---- */

static void step_map(struct player *p, struct item *a)
{
    int by = (int)pick(p, 5) - 2;

    set(p, a, pick(p, 2) ? scaled(a, a->tensor, by) : shifted(a, a->tensor, by));
}

static void step_map_taken(struct player *p, struct item *a)
{
    struct item from = *a;

    a->tensor = NULL;
    set(p, a,
        pick(p, 2) ? scaled(&from, frit_take(from.tensor), -1)
                   : shifted(&from, frit_take(from.tensor), 3));
}

static void step_two(struct player *p, struct item *a)
{
    struct item *b = &p->pool[pick(p, POOL)], to = *a;

    if (b->device != a->device || b->n != a->n)
        return;
    to.tensor = frit_sub(a->tensor, b->tensor);
    to.scale -= b->scale;
    to.shift -= b->shift;
    set(p, a, to);
}

/* Chains of random length and order, so that plans and kernels are new ones. */
static void step_chain(struct player *p, struct item *a)
{
    frit_scope scope = frit_scope_begin(p->program->device[a->device]);
    struct item to = *a;

    for (uint32_t i = pick(p, 12) + 1; i > 0; i--) {
        switch (pick(p, 6)) {
        case 0:
            to = scaled(&to, to.tensor, -1);
            break;
        case 1:
            to.tensor = frit_maximum(to.tensor, to.tensor);
            break;
        case 2:
            to.tensor = frit_round(frit_reshape(to.tensor, FRIT_SHAPE(1, to.n)));
            to.tensor = frit_reshape(to.tensor, FRIT_SHAPE(to.n));
            break;
        case 3:
            to.tensor = frit_where(frit_gt_f(to.tensor, 0), to.tensor, to.tensor);
            break;
        case 4:
            to.tensor = frit_flip(frit_flip(to.tensor, .axes = FRIT_AXES(0)), .axes = FRIT_AXES(0));
            break;
        default:
            to = shifted(&to, to.tensor, 1);
            break;
        }
    }
    frit_keep(to.tensor);
    frit_scope_end(scope);
    set(p, a, to);
}

static void step_read(struct player *p, struct item *a)
{
    if (pick(p, 2)) {
        read_item(p, a, a->tensor);
        return;
    }
    read_item(p, a, frit_take(a->tensor));
    *a = fresh(p);
}

static void step_sum(struct player *p, struct item *a)
{
    struct item sum = {.device = a->device, .n = 1};

    if (a->n > 40)
        return;
    sum.shift = a->scale * a->n * (a->n + 1) / 2 + a->shift * a->n;
    sum.tensor = frit_sum(a->tensor, .axes = FRIT_AXES(0), .keep = 1);
    read_item(p, &sum, frit_take(sum.tensor));
}

static void step_write(struct player *p, struct item *a)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_status status;
    struct item to = *a;

    to.scale = pick(p, 3);
    to.shift = pick(p, 9);
    for (int64_t i = 0; i < to.n; i++)
        p->data[i] = (float)(to.scale * (i + 1) + to.shift);
    status = frit_write(a->tensor, p->data, (uint64_t)to.n * sizeof(float), &err);
    if (status)
        note_failure(p, "write", status, err.text);
    else
        *a = to;
}

static void step_move(struct player *p, struct item *a)
{
    struct item to = *a;

    to.device = pick(p, 2);
    to.tensor = frit_to_device(a->tensor, p->program->device[to.device]);
    set(p, a, to);
}

static void step_drain(struct player *p, struct item *a)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *device = p->program->device[a->device];
    frit_status status = FRIT_OK;

    switch (pick(p, 4)) {
    case 0:
        frit_trim(device);
        break;
    case 1:
        status = frit_sync(device, &err);
        break;
    default:
        status = frit_flush(device, &err);
        break;
    }
    if (status)
        note_failure(p, "sync", status, err.text);
}

/* A stream of its own for a while: it is closed with what is queued. */
static void step_stream(struct player *p, struct item *a)
{
    frit_device *device = p->program->device[a->device];
    frit_err err = {.struct_size = sizeof(err)};
    frit_stream *stream = NULL, *before = NULL;
    frit_status status = frit_stream_open(device, &stream, &err);

    if (!status)
        status = frit_stream_enter(device, stream, &before, &err);
    if (!status) {
        step_map(p, a);
        status = frit_stream_enter(device, before, NULL, &err);
    }
    if (!status)
        status = frit_stream_close(stream, &err);
    if (status && status != FRIT_UNSUPPORTED) /* [stream] single */
        note_failure(p, "stream", status, err.text);
}

static void (*const steps[])(struct player *p, struct item *a) = {
    step_map,  step_map, step_map_taken, step_two,  step_chain, step_chain,
    step_read, step_sum, step_write,     step_move, step_drain, step_stream,
};

/* An item that failed makes way for another one. */
static void renew_failed(struct player *p, struct item *a)
{
    frit_status status = frit_tensor_status(a->tensor);

    if (!status)
        return;
    note_failure(p, "tensor", status, frit_tensor_error(a->tensor));
    frit_release(a->tensor);
    *a = fresh(p);
}

void program_run(struct program *program)
{
    struct player p = {.program = program, .data = malloc(LARGE * sizeof(float))};

    if (!p.data)
        return;
    for (int i = 0; i < POOL; i++)
        p.pool[i] = fresh(&p);
    for (uint32_t i = 0; i < program->steps && !program->wrong; i++) {
        struct item *a = &p.pool[pick(&p, POOL)];

        renew_failed(&p, a);
        steps[pick(&p, sizeof(steps) / sizeof(steps[0]))](&p, a);
    }
    for (int i = 0; i < POOL; i++) {
        if (pick(&p, 2))
            read_item(&p, &p.pool[i], p.pool[i].tensor);
        frit_release(p.pool[i].tensor);
    }
    free(p.data);
}
