/* SPDX-License-Identifier: Apache-2.0 */
/* What a program answers to a signature: lowered once, then remembered by the exact bytes of the
 * question.  Lowering runs outside the lock; of two threads with the same question one answer is
 * kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"
#include "fuse/program.h"
#include "ir/verify.h"

/* Bytes of a kernel's name: those for whole words, then those for a number. */
enum { NAME_ROOM = 64, NAME_BYTES = NAME_ROOM + 12 };

/* ---- the question ---- */

struct question {
    struct program *program;
    uint32_t candidate;
    frit_signature sig; /* in the order of the block */
    struct str key;
    struct arena arena;
};

static const frit_arg_sig *arg_at(const frit_signature *sig, uint32_t i)
{
    return (const frit_arg_sig *)(const void *)((const char *)sig->args +
                                                (size_t)i * sig->arg_stride);
}

/* A host may be older than what signatures say of bounds. */
static bool has_bounds(const frit_signature *sig)
{
    return sig->struct_size >= FRIT_END_OF(frit_signature, n_bounds) && sig->bound_classes;
}

/* Host and program must mean the same ops; types, ranks and dims are compared by block_extents. */
static frit_status check(const struct program *p, uint32_t candidate, const frit_signature *sig,
                         frit_err *err)
{
    if (candidate >= p->n_candidates || sig->n_in != p->n_in || sig->n_out != p->n_out ||
        sig->n_scalars != p->block.n_scalars ||
        (has_bounds(sig) && sig->n_bounds != p->block.n_bounds))
        return fail(err, FRIT_INVALID,
                    "%s: asked for candidate %u of %u with %u operands, %u outputs, %u scalars and "
                    "%u bounds instead of %u, %u, %u and %u",
                    p->name, candidate, p->n_candidates, sig->n_in, sig->n_out, sig->n_scalars,
                    has_bounds(sig) ? sig->n_bounds : p->block.n_bounds, p->n_in, p->n_out,
                    p->block.n_scalars, p->block.n_bounds);
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return fail(err, FRIT_UNSUPPORTED, "%s: unknown flags in a signature", p->name);
    return FRIT_OK;
}

static void add_to_key(struct str *key, const void *bytes, size_t n)
{
    str_add(key, bytes, n);
}

static void form_key(struct question *q)
{
    uint32_t n = q->sig.n_in + q->sig.n_out;

    add_to_key(&q->key, &q->candidate, sizeof(q->candidate));
    add_to_key(&q->key, &q->sig.index_width, sizeof(q->sig.index_width));
    add_to_key(&q->key, q->sig.scalar_classes, q->sig.n_scalars);
    if (q->sig.bound_classes)
        add_to_key(&q->key, q->sig.bound_classes, q->sig.n_bounds);
    for (uint32_t i = 0; i < n; i++) {
        const frit_arg_sig *arg = &q->sig.args[i];

        add_to_key(&q->key, arg, offsetof(frit_arg_sig, dims));
        add_to_key(&q->key, arg->dims, arg->rank * sizeof(*arg->dims));
        add_to_key(&q->key, arg->strides, arg->rank * sizeof(*arg->strides));
    }
}

static frit_status question_init(struct question *q, struct program *p, uint32_t candidate,
                                 const frit_signature *sig, frit_err *err)
{
    uint32_t n = p->block.n_inputs + p->block.n_outputs;
    frit_arg_sig *args;

    *q = (struct question){.program = p, .candidate = candidate};
    TRY(check(p, candidate, sig, err));
    args = arena_array(&q->arena, n, sizeof(*args));
    if (!args)
        return fail_memory(err, n * sizeof(*args));
    for (uint32_t i = 0; i < n; i++)
        args[i] = *arg_at(sig, p->places[i]);
    memcpy(&q->sig, sig,
           has_bounds(sig) ? sizeof(q->sig) : offsetof(frit_signature, bound_classes));
    q->sig.n_in = p->block.n_inputs;
    q->sig.n_out = p->block.n_outputs;
    q->sig.arg_stride = sizeof(*args);
    q->sig.args = args;
    form_key(q);
    return q->key.failed ? fail_memory(err, n * sizeof(*args)) : FRIT_OK;
}

static void question_fini(struct question *q)
{
    str_fini(&q->key);
    arena_fini(&q->arena);
}

/* ---- lowering ---- */

/* What a schedule built must be what everybody else relies on. */
static frit_status check_built(const struct sched *s, const char *name, frit_err *err)
{
    const struct kir_module *m = s->module;
    uint32_t n = s->block->n_inputs + s->block->n_outputs + (s->numbers->workspace_bytes != 0);

    if (m->failed)
        return fail_memory(err, sizeof(*m));
    if (m->n_args != n || m->n_params != s->numbers->n_words || !m->n_phases ||
        m->n_phases > SCHED_PHASES)
        return fail(err, FRIT_INTERNAL,
                    "%s: a module with %u arguments, %u parameters and %u phases for %u arguments "
                    "and %u words",
                    name, m->n_args, m->n_params, m->n_phases, n, s->numbers->n_words);
    if (s->target->bindings && n > s->target->bindings)
        return fail(err, FRIT_UNSUPPORTED, "%s: %u arguments, the device takes %u", name, n,
                    s->target->bindings);
    return kir_verify(m, NULL, err);
}

static struct prepared *keep(const struct sched *s)
{
    const struct sched_numbers *n = s->numbers;
    size_t words = n->n_words * sizeof(*n->words), late = n->n_late * sizeof(*n->late);
    struct prepared *p = malloc(sizeof(*p) + words + late);

    if (!p)
        return NULL;
    *p = (struct prepared){.n_phases = s->module->n_phases,
                           .workspace_bytes = n->workspace_bytes,
                           .bytes = n->bytes,
                           .flops = n->flops,
                           .n_words = n->n_words,
                           .n_late = n->n_late,
                           .late = (struct sched_late *)(void *)(p->words + n->n_words)};
    for (uint32_t i = 0; i < p->n_phases; i++)
        p->lanes[i] = s->module->phases[i].lanes;
    memcpy(p->grid, n->grid, sizeof(p->grid));
    memcpy(p->alias, n->alias, sizeof(p->alias));
    if (words)
        memcpy(p->words, n->words, words);
    if (late)
        memcpy(p->late, n->late, late);
    return p;
}

static frit_status build(struct question *q, struct sched *s, frit_err *err)
{
    const struct schedule *schedule = q->program->schedules[q->candidate];
    int64_t *extents = arena_array(&q->arena, (size_t)s->block->n_extents + 2, sizeof(*extents));

    if (!extents)
        return fail_memory(err, s->block->n_extents * sizeof(*extents));
    TRY(block_extents(s->block, s->sig, extents, err));
    s->extents = extents;
    TRY(schedule->build(s, err));
    return check_built(s, schedule->name, err);
}

/* What people see in a profile: "map.add+mul+neg", or "map.add+mul+12" where 12 more follow. */
static void name_kernel(const struct question *q, char name[NAME_BYTES])
{
    const struct block *block = &q->program->block;
    int n = snprintf(name, NAME_ROOM, "%s", q->program->schedules[q->candidate]->name);

    for (uint32_t i = 0; i < block->n_ops; i++) {
        const char *op = frit_op_info_at(block->ops[i].id)->name;
        char sign = i ? '+' : '.';

        if ((size_t)n + 1 + strlen(op) >= NAME_ROOM) {
            snprintf(name + n, NAME_BYTES - NAME_ROOM, "%c%u", sign, block->n_ops - i);
            return;
        }
        n += snprintf(name + n, NAME_ROOM - (size_t)n, "%c%s", sign, op);
    }
}

/* The answer, with a reference to its code. */
static frit_status lower(struct question *q, struct prepared **out, frit_err *err)
{
    struct program *p = q->program;
    struct kir_module module;
    struct sched_numbers numbers = {0};
    struct sched s = {.block = &p->block,
                      .sig = &q->sig,
                      .target = &p->device->target,
                      .module = &module,
                      .numbers = &numbers};
    char name[NAME_BYTES];
    frit_status st;

    *out = NULL;
    name_kernel(q, name);
    kir_init(&module, name);
    st = build(q, &s, err);
    if (!st) {
        *out = keep(&s);
        st = *out ? codes_take(p->device->codes, &module, &(*out)->code, err)
                  : fail_memory(err, sizeof(**out));
    }
    if (st) {
        free(*out);
        *out = NULL;
        kir_fini(&module);
    }
    arena_fini(&numbers.arena);
    return st;
}

/* ---- remembering ---- */

static struct prepared *recall(const struct question *q)
{
    struct program *p = q->program;
    struct prepared *known;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    pthread_mutex_unlock(&p->lock);
    return known;
}

static bool has_code(const struct program *p, const struct code *code)
{
    for (uint32_t i = 0; i < p->n_codes; i++) {
        if (p->codes[i] == code)
            return true;
    }
    return false;
}

/* Inside the lock.  Keeps the answer and its reference; *spare: a reference that is one too many.
 */
static bool add(const struct question *q, struct prepared *mine, bool *spare)
{
    struct program *p = q->program;

    *spare = has_code(p, mine->code);
    if (!array_grow(&p->codes, &p->codes_room, p->n_codes, 1, sizeof(struct code *)) ||
        !map_add(&p->prepared, q->key.text, q->key.length, mine))
        return false;
    if (!*spare)
        p->codes[p->n_codes++] = mine->code;
    return true;
}

/* The answer that counts: this one, or that of a thread that was faster. */
static frit_status remember(const struct question *q, struct prepared *mine, struct prepared **out,
                            frit_err *err)
{
    struct program *p = q->program;
    struct code *code = mine->code;
    struct prepared *known;
    bool spare = true, added = false;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    if (!known)
        added = add(q, mine, &spare);
    pthread_mutex_unlock(&p->lock);
    *out = known ? known : added ? mine : NULL;
    if (!added)
        free(mine);
    if (!added || spare)
        code_unref(code);
    return *out ? FRIT_OK : fail_memory(err, q->key.length);
}

/* ---- answering ---- */

static uint64_t alias_of(const struct program *p, uint64_t inputs)
{
    uint64_t set = 0;

    for (uint32_t i = 0; i < p->block.n_inputs && i < 64; i++) {
        if (inputs >> i & 1 && p->places[i] < 64)
            set |= 1ull << p->places[i];
    }
    return set;
}

static frit_status answer(const struct program *p, const struct prepared *known,
                          frit_launch_spec *out, frit_variant *variant)
{
    out->n_phases = known->n_phases;
    out->workspace_bytes = known->workspace_bytes;
    out->predicted_bytes = known->bytes;
    out->predicted_flops = known->flops;
    out->driver[0] = (uint64_t)(uintptr_t)known;
    for (uint32_t i = 0; i < known->n_phases; i++) {
        memcpy(out->phases[i].grid, known->grid[i], sizeof(known->grid[i]));
        out->phases[i].group[0] = known->lanes[i];
        out->phases[i].group[1] = out->phases[i].group[2] = 1;
    }
    for (uint32_t i = 0; i < p->block.n_outputs; i++)
        out->outputs[p->places[p->block.n_inputs + i] - p->n_in].alias =
            alias_of(p, known->alias[i]);
    variant->n_bytes = KIR_DIGEST;
    memcpy(variant->bytes, code_digest(known->code), KIR_DIGEST);
    return code_compiled(known->code) ? FRIT_OK : FRIT_PREPARE_NEEDS_COMPILE;
}

frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *p = self;
    struct prepared *known = NULL, *mine;
    struct question q;
    frit_status st = question_init(&q, p, candidate, sig, err);

    if (!st)
        known = recall(&q);
    if (!st && !known) {
        st = lower(&q, &mine, err);
        if (!st)
            st = remember(&q, mine, &known, err);
    }
    question_fini(&q);
    return st ? st : answer(p, known, out, variant);
}
