/* SPDX-License-Identifier: Apache-2.0 */
/* Life, description, compiling and saving of programs.
 *
 * Saved form: version, length of the first schedule's name, the name, the bytes of the block, and
 * the XXH3 of all that, since bytes with a fault may be those of a program that does something
 * else. */
#include "fuse/program.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"

/* ---- life ---- */

static void add_candidate(struct program *p, const struct schedule *schedule)
{
    uint32_t i = p->n_candidates++;

    p->schedules[i] = schedule;
    p->candidates[i] = (frit_candidate){
        .struct_size = sizeof(frit_candidate),
        .version = PROGRAM_VERSION,
        .priority = -(int32_t)i,
        .numeric_class = i ? FRIT_NUMERIC_REORDERED : FRIT_NUMERIC_EXACT,
        .identity = str_of(schedule->name),
    };
}

/* A block from foreign bytes may have more outputs than a launch. */
static frit_status accepts_whole(const struct schedule *schedule, const struct block *block,
                                 bool *out, frit_err *err)
{
    uint32_t covered;
    bool open;

    TRY(match_block(schedule, block, &covered, &open, err));
    *out = covered == block->n_ops &&
           (schedule->of_components || block->n_outputs <= FRIT_MAX_OUTPUTS);
    return FRIT_OK;
}

static frit_status choose_candidates(struct program *p, const struct schedule *first, frit_err *err)
{
    p->schedules = arena_array(&p->block.arena, n_schedules, sizeof(const struct schedule *));
    p->candidates = arena_array(&p->block.arena, n_schedules, sizeof(*p->candidates));
    if (!p->schedules || !p->candidates)
        return fail_memory(err, n_schedules * sizeof(*p->candidates));
    if (first)
        add_candidate(p, first);
    for (uint32_t i = 0; i < n_schedules; i++) {
        bool accepts = false;

        if (schedules[i] != first)
            TRY(accepts_whole(schedules[i], &p->block, &accepts, err));
        if (accepts)
            add_candidate(p, schedules[i]);
    }
    if (!p->n_candidates)
        return fail(err, FRIT_UNSUPPORTED, "no schedule makes a kernel of these ops");
    p->name = p->schedules[0]->name;
    return FRIT_OK;
}

static frit_status place_args(struct program *p, frit_err *err)
{
    uint32_t n = p->block.n_inputs + p->block.n_outputs;

    p->n_in = p->block.n_inputs;
    p->n_out = p->block.n_outputs;
    p->places = arena_array(&p->block.arena, (size_t)n + 1, sizeof(*p->places));
    if (!p->places)
        return fail_memory(err, n * sizeof(*p->places));
    for (uint32_t i = 0; i < n; i++)
        p->places[i] = i;
    p->places[n] = KERNELS_WORKSPACE;
    return FRIT_OK;
}

frit_status program_create(const struct kernels_device *device, const struct schedule *first,
                           struct block *block, struct program **out, frit_err *err)
{
    struct program *p = calloc(1, sizeof(*p));
    frit_status st;

    *out = NULL;
    if (!p) {
        block_fini(block);
        return fail_memory(err, sizeof(*p));
    }
    p->device = device;
    p->block = *block;
    pthread_mutex_init(&p->lock, NULL);
    st = choose_candidates(p, first, err);
    if (!st)
        st = place_args(p, err);
    if (st)
        program_destroy(p);
    else
        *out = p;
    return st;
}

void program_destroy(struct program *program)
{
    if (!program)
        return;
    map_fini(&program->prepared, prepared_destroy);
    free(program->answers);
    for (uint32_t i = 0; i < program->n_codes; i++)
        code_unref(program->codes[i]);
    free(program->codes);
    pthread_mutex_destroy(&program->lock);
    block_fini(&program->block);
    free(program);
}

/* ---- slots ---- */

static frit_status slot_describe(void *self, frit_program_info *out, frit_err *err)
{
    struct program *p = self;
    uint32_t generation = 0;

    (void)err;
    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; i < p->n_codes; i++)
        generation += code_generation(p->codes[i]);
    pthread_mutex_unlock(&p->lock);
    out->n_candidates = p->n_candidates;
    out->candidate_stride = sizeof(frit_candidate);
    out->generation = generation;
    out->n_ops = p->block.n_ops;
    out->name = str_of(p->name);
    out->candidates = p->candidates;
    return FRIT_OK;
}

/* What prepare answered with this variant; it lives as long as the program. */
static const struct prepared *find_answer(struct program *p, const frit_variant *variant)
{
    const struct prepared *found = NULL;

    if (variant->n_bytes != KIR_DIGEST)
        return NULL;
    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; i < p->n_answers && !found; i++) {
        if (memcmp(p->answers[i]->digest, variant->bytes, KIR_DIGEST) == 0)
            found = p->answers[i];
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static frit_status slot_compile(void *self, uint32_t candidate, const frit_variant *variant,
                                const frit_cancel *cancel, frit_err *err)
{
    struct program *p = self;
    const struct prepared *answer = find_answer(p, variant);

    (void)candidate;
    if (!answer)
        return fail(err, FRIT_INVALID, "%s: compile is asked for what prepare never gave", p->name);
    for (uint32_t i = 0; i < answer->n_bodies; i++)
        TRY(code_compile(answer->bodies[i].code, cancel, err));
    return FRIT_OK;
}

static void slot_destroy(void *self)
{
    program_destroy(self);
}

/* ---- saving ---- */

struct head {
    uint32_t version;
    uint32_t name_length;
};

static frit_status slot_to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct program *p = self;
    struct head head = {PROGRAM_VERSION, (uint32_t)strlen(p->schedules[0]->name)};
    uint64_t before = sizeof(head) + head.name_length;
    uint64_t room = *n_bytes > before ? *n_bytes - before : 0;
    uint64_t seal, given = *n_bytes;
    char *to = bytes;

    if (given >= before) {
        memcpy(to, &head, sizeof(head));
        memcpy(to + sizeof(head), p->schedules[0]->name, head.name_length);
    }
    TRY(block_save(&p->block, room ? to + before : NULL, &room, err));
    *n_bytes = before + room + sizeof(seal);
    if (given >= *n_bytes) {
        seal = XXH3_64bits(to, before + room);
        memcpy(to + before + room, &seal, sizeof(seal));
    }
    return FRIT_OK;
}

static const struct schedule *schedule_named(const char *name, uint32_t length)
{
    for (uint32_t i = 0; i < n_schedules; i++) {
        if (str_is((frit_str){name, length}, schedules[i]->name))
            return schedules[i];
    }
    return NULL;
}

/* ---- from blocks ---- */

const frit_program_table program_of_fuser = {
    .struct_size = sizeof(program_of_fuser),
    .describe = slot_describe,
    .prepare = program_prepare,
    .compile = slot_compile,
    .destroy = slot_destroy,
    .to_state = slot_to_state,
};

const frit_program_table program_of_op = {
    .struct_size = sizeof(program_of_op),
    .describe = slot_describe,
    .prepare = program_prepare,
    .compile = slot_compile,
    .destroy = slot_destroy,
};

bool kernels_owns(const frit_program *program)
{
    return program->table == &program_of_fuser || program->table == &program_of_op;
}

frit_status program_of_block(const struct kernels_device *device, const struct schedule *schedule,
                             struct block *block, uint32_t n_ops, frit_program *out, frit_err *err)
{
    struct program *program;
    frit_status st = block_close(block, n_ops, err);

    if (st) {
        block_fini(block);
        return st;
    }
    TRY(program_create(device, schedule, block, &program, err));
    out->table = &program_of_fuser;
    out->self = program;
    return FRIT_OK;
}

static frit_status load(const struct kernels_device *device, const struct schedule *schedule,
                        const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    struct program *program;
    struct block block;
    bool accepts = false;
    frit_status st;

    block_init(&block);
    st = block_load(&block, bytes, n_bytes, err);
    if (!st && block.n_ops)
        st = accepts_whole(schedule, &block, &accepts, err);
    if (!st && !accepts)
        st = fail(err, FRIT_INCOMPATIBLE, "%s: saved ops that it does not take", schedule->name);
    if (st) {
        block_fini(&block);
        return st;
    }
    TRY(program_create(device, schedule, &block, &program, err));
    out->table = &program_of_fuser;
    out->self = program;
    return FRIT_OK;
}

frit_status kernels_from_state(const struct kernels_device *device, const void *bytes,
                               uint64_t n_bytes, frit_program *out, frit_err *err)
{
    const struct schedule *schedule = NULL;
    const char *from = bytes;
    struct head head;
    uint64_t before, seal = 0;

    if (n_bytes >= sizeof(seal) + sizeof(head)) {
        n_bytes -= sizeof(seal);
        memcpy(&seal, from + n_bytes, sizeof(seal));
        if (seal != XXH3_64bits(from, n_bytes))
            return fail(err, FRIT_INCOMPATIBLE, "bytes of a saved program with a fault in them");
        memcpy(&head, from, sizeof(head));
        before = sizeof(head) + head.name_length;
        if (head.version == PROGRAM_VERSION && n_bytes >= before)
            schedule = schedule_named(from + sizeof(head), head.name_length);
    }
    if (!schedule)
        return fail(err, FRIT_INCOMPATIBLE, "bytes of no saved program of this version");
    return load(device, schedule, from + before, n_bytes - before, out, err);
}

/* ---- devices ---- */

frit_status kernels_open(struct kernels_device *device, frit_err *err)
{
    return codes_create(device, &device->codes, err);
}

void kernels_close(struct kernels_device *device)
{
    codes_destroy(device->codes);
    device->codes = NULL;
}
