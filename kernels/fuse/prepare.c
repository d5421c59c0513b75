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

/* A piece of a block of memory, or of one that is only measured (`at` NULL). */
static void *piece(char **at, size_t *bytes, size_t count, size_t size)
{
    void *piece = *at ? *at + *bytes : NULL;

    *bytes += (count * size + 7) / 8 * 8;
    return piece;
}

static uint32_t count_aliases(const struct sched *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        n += (uint32_t)__builtin_popcountll(s->numbers->alias[i]);
    return n;
}

/* Places the arrays of an answer behind it; the bytes of all. */
static size_t place(struct prepared *p, const struct question *q, const struct sched *s,
                    uint32_t **alias)
{
    char *at = (char *)p;
    size_t bytes = 0;
    struct prepared none, *to = p ? p : &none;

    piece(&at, &bytes, 1, sizeof(*p));
    to->words = piece(&at, &bytes, s->numbers->n_words, sizeof(*p->words));
    to->late = piece(&at, &bytes, s->numbers->n_late, sizeof(*p->late));
    to->outputs = piece(&at, &bytes, q->program->n_out, sizeof(*p->outputs));
    *alias = piece(&at, &bytes, count_aliases(s), sizeof(**alias));
    to->key = piece(&at, &bytes, q->key.length, 1);
    return bytes;
}

/* In the numbers of a launch. */
static void list_aliases(const struct program *program, const struct sched *s,
                         frit_output_spec *outputs, uint32_t *alias)
{
    for (uint32_t i = 0; i < s->block->n_outputs; i++) {
        uint32_t out = program->places[s->block->n_inputs + i] - program->n_in;

        outputs[out].alias = alias;
        for (uint64_t left = s->numbers->alias[i]; left; left &= left - 1) {
            *alias++ = program->places[__builtin_ctzll(left)];
            outputs[out].n_alias++;
        }
    }
}

static void list_phases(const struct sched *s, struct prepared *p)
{
    p->n_phases = s->module->n_phases;
    memcpy(p->grid, s->numbers->grid, sizeof(p->grid));
    for (uint32_t i = 0; i < p->n_phases; i++) {
        frit_phase *phase = &p->phases[i];

        memcpy(phase->grid, p->grid[i], sizeof(phase->grid));
        phase->group[0] = s->module->phases[i].lanes;
        phase->group[1] = phase->group[2] = 1;
    }
}

static struct prepared *keep(const struct question *q, const struct sched *s)
{
    const struct sched_numbers *n = s->numbers;
    uint32_t *alias;
    size_t bytes = place(NULL, q, s, &alias);
    struct prepared *p = calloc(1, bytes);

    if (!p)
        return NULL;
    place(p, q, s, &alias);
    p->workspace_bytes = n->workspace_bytes;
    p->bytes = n->bytes;
    p->flops = n->flops;
    p->n_words = n->n_words;
    p->n_late = n->n_late;
    p->key_bytes = q->key.length;
    memcpy(p->key, q->key.text, q->key.length);
    if (n->n_words)
        memcpy(p->words, n->words, n->n_words * sizeof(*n->words));
    if (n->n_late)
        memcpy(p->late, n->late, n->n_late * sizeof(*n->late));
    list_phases(s, p);
    list_aliases(q->program, s, p->outputs, alias);
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
        *out = keep(q, &s);
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

/* One more spec points at what is returned; NULL: the question is new. */
static struct prepared *recall(const struct question *q)
{
    struct program *p = q->program;
    struct prepared *known;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    if (known)
        known->specs++;
    pthread_mutex_unlock(&p->lock);
    return known;
}

/* Inside the lock: lists the code of an answer, whose reference goes with it. */
static bool add_code(struct program *p, struct code *code)
{
    struct program_code *known = map_get(&p->codes, code_digest(code), KIR_DIGEST);

    if (!known) {
        known = calloc(1, sizeof(*known));
        if (!known || !map_add(&p->codes, code_digest(code), KIR_DIGEST, known)) {
            free(known);
            return false;
        }
        known->code = code;
    }
    known->n_prepared++;
    return true;
}

/* Inside the lock; the reference is the caller's again. */
static void remove_code(struct program *p, const struct code *code)
{
    struct program_code *known = map_get(&p->codes, code_digest(code), KIR_DIGEST);

    if (--known->n_prepared == 0)
        free(map_remove(&p->codes, code_digest(code), KIR_DIGEST));
}

/* Inside the lock. */
static bool add(struct program *p, struct prepared *mine)
{
    if (!add_code(p, mine->code))
        return false;
    if (map_add(&p->prepared, mine->key, mine->key_bytes, mine))
        return true;
    remove_code(p, mine->code);
    return false;
}

/* The answer that counts: this one, or that of a thread that was faster; one more spec points at
 * it. */
static frit_status remember(const struct question *q, struct prepared *mine, struct prepared **out,
                            frit_err *err)
{
    struct program *p = q->program;
    struct prepared *known;
    bool added = false;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    if (!known)
        added = add(p, mine);
    *out = known ? known : added ? mine : NULL;
    if (*out)
        (*out)->specs++;
    pthread_mutex_unlock(&p->lock);
    if (!added) {
        code_unref(mine->code);
        free(mine);
    }
    return *out ? FRIT_OK : fail_memory(err, q->key.length);
}

void program_spec_release(void *self, const frit_launch_spec *spec)
{
    struct program *p = self;
    struct prepared *known = (struct prepared *)(uintptr_t)spec->driver[0];
    bool last;

    pthread_mutex_lock(&p->lock);
    last = --known->specs == 0;
    if (last) {
        map_remove(&p->prepared, known->key, known->key_bytes);
        remove_code(p, known->code);
    }
    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    code_unref(known->code);
    free(known);
}

/* ---- answering ---- */

static frit_status answer(const struct program *p, const struct prepared *known,
                          frit_launch_spec *out, frit_variant *variant)
{
    out->n_phases = known->n_phases;
    out->phases = known->phases;
    out->n_outputs = p->n_out;
    out->output_stride = sizeof(*known->outputs);
    out->outputs = known->outputs;
    out->workspace_bytes = known->workspace_bytes;
    out->driver[0] = (uint64_t)(uintptr_t)known;
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
