/* SPDX-License-Identifier: Apache-2.0 */
#include "plugins/collective/world.h"

#include <stdio.h>
#include <string.h>

#include "plugins/load.h"

/* ---- the host ---- */

static frit_status set_error(void *self, frit_err *err, frit_status status, int64_t native_code,
                             frit_str text)
{
    (void)self;
    if (err) {
        err->status = status;
        err->native_code = native_code;
        snprintf(err->text, sizeof(err->text), "%.*s", (int)text.len, text.ptr);
    }
    return status;
}

char world_log[512];

static void write_log(void *self, uint32_t level, frit_str topic, frit_str text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    (void)self;
    (void)level;
    (void)topic;
    pthread_mutex_lock(&lock);
    snprintf(world_log, sizeof(world_log), "%.*s", (int)text.len, text.ptr);
    pthread_mutex_unlock(&lock);
}

static void *take_memory(void *self, uint64_t bytes, uint64_t align)
{
    struct world *world = self;
    void *memory = NULL;

    if (atomic_load(&world->refuse) > 0 && atomic_fetch_sub(&world->refuse, 1) == 1)
        return NULL;
    if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes))
        return NULL;
    atomic_fetch_add(&world->n_live, 1);
    atomic_fetch_add(&world->n_allocated, 1);
    return memory;
}

static void give_memory(void *self, void *memory)
{
    struct world *world = self;

    if (memory)
        atomic_fetch_sub(&world->n_live, 1);
    free(memory);
}

static uint64_t now_ns(void *self)
{
    struct timespec now;

    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static frit_status get_text(void *self, frit_str name, frit_str *out, frit_err *err)
{
    const char *text = world_engine.option(name);

    (void)self;
    (void)err;
    *out = (frit_str){text, strlen(text)};
    return FRIT_OK;
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof(core),
                                        .log = write_log,
                                        .err_set = set_error,
                                        .mem_alloc = take_memory,
                                        .mem_free = give_memory,
                                        .now_ns = now_ns};

    static const frit_host_options options = {.struct_size = sizeof(options), .get_str = get_text};

    (void)self;
    if (is(id, FRIT_HOST_OPTIONS) && world_engine.option)
        return &options;
    return is(id, FRIT_HOST_CORE) ? &core : NULL;
}

void world_open_without_id(struct world *world)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (world_engine.start)
        world_engine.start();
    *world = (struct world){.plugin = load_plugin(world_engine.plugin)};
    world->root = (frit_host_root){
        .struct_size = sizeof(world->root), .self = world, .get_interface = get_interface};
    assert_int_equal(world->plugin->open(&world->root, &world->instance, &err), FRIT_OK);
    world->table = world->plugin->get_interface(world->instance, FRIT_STR(FRIT_COLLECTIVE_TABLE));
    assert_non_null(world->table);
}

void world_open(struct world *world)
{
    frit_err err = {.struct_size = sizeof(err)};

    world_open_without_id(world);
    if (world->table->group_id(world->instance, &world->id, &err))
        fail_msg("%s", err.text);
}

void world_close(struct world *world)
{
    world->plugin->close(world->instance);
    assert_int_equal(atomic_load(&world->n_live), 0);
}

/* ---- ranks ---- */

frit_status rank_join(struct rank *rank, uint64_t timeout_ns)
{
    frit_group_params params = {.struct_size = sizeof(params),
                                .rank = rank->number,
                                .size = rank->size,
                                .id = &rank->world->id,
                                .timeout_ns = timeout_ns,
                                .name = FRIT_STR("test")};

    world_engine.set_device(rank->number, &params);
    return rank->world->table->group_create(rank->world->instance, &params, &rank->group,
                                            &rank->err);
}

static void *rank_main(void *arg)
{
    struct rank *rank = arg;

    CHECK(rank, rank_join(rank, patience) == FRIT_OK);
    if (rank->fault)
        return NULL;
    rank->run(rank);
    rank->world->table->group_destroy(rank->group);
    return NULL;
}

void run_ranks(struct world *world, uint32_t size, void (*run)(struct rank *rank), void *arg)
{
    static struct rank ranks[MAX_RANKS];

    assert_int_equal(world->table->group_id(world->instance, &world->id, NULL), FRIT_OK);
    pthread_barrier_init(&world->all, NULL, size);
    for (uint32_t r = 0; r < size; r++) {
        ranks[r] = (struct rank){.world = world, .number = r, .size = size, .run = run, .arg = arg};
        ranks[r].err.struct_size = sizeof(frit_err);
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < size; r++)
        pthread_join(ranks[r].thread, NULL);
    pthread_barrier_destroy(&world->all);
    for (uint32_t r = 0; r < size; r++) {
        if (ranks[r].fault)
            fail_msg("rank %u of %u, line %d: %s; %s", r, size, ranks[r].line, ranks[r].fault,
                     ranks[r].err.text);
    }
}

void run_alone(uint32_t size, void (*run)(struct rank *rank), void *arg)
{
    struct world world;

    world_open(&world);
    run_ranks(&world, size, run, arg);
    world_close(&world);
}

uint64_t rank_begin(struct rank *rank, uint32_t kind, uint32_t combine, uint32_t dtype,
                    const void *from, void *into, uint64_t count)
{
    const frit_collective_buffer buffer = {from, into, count, dtype, 0};
    const frit_collective_op op = {.struct_size = sizeof(op),
                                   .kind = kind,
                                   .combine = combine,
                                   .root = kind == FRIT_COLLECTIVE_BROADCAST ? rank->size / 2 : 0,
                                   .n_buffers = kind != FRIT_COLLECTIVE_BARRIER,
                                   .buffer_stride = sizeof(buffer),
                                   .buffers = &buffer};
    uint64_t value = 0;

    rank->err.status = FRIT_OK;
    return rank->world->table->begin(rank->group, &op, &value, &rank->err) ? 0 : value;
}

frit_status rank_wait(struct rank *rank, uint64_t value)
{
    return rank->world->table->wait(rank->group, value, patience, &rank->err);
}

void sleep_ms(int ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&time, NULL);
}
