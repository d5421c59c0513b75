/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `fake-candidates` through its tables, as the loader gives them: it does what its
 * README says. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frit/native.h>

#include "fake/candidates/stats.h"
#include "host/load/rig.h"

enum { MAX_SETTINGS = 8, SPACE = 16, CANARY = 0x5a, MS = 1000000 };

struct rig_candidates {
    struct rig rig;
    const struct plugin *plugin;
    const frit_backend *backend;
    const candidates_stats *stats;
    void *device;
    frit_memory *memory;
    frit_program program;
    frit_program_info info;
    frit_operand operands[3];
    frit_err err;
    /* Of the last launch. */
    uint64_t value;
    frit_failure failure;
};

/* Device memory, as offsets of floats: operands at 0 and SPACE, the result at 3 * SPACE between
 * canaries. */
static const uint64_t places[3] = {0, SPACE, 3 * SPACE};

static frit_str str(const char *text)
{
    return (frit_str){text, strlen(text)};
}

static frit_operand tensor(uint32_t value, uint32_t rank)
{
    return (frit_operand){.kind = FRIT_OPERAND_TENSOR,
                          .dtype = FRIT_F32,
                          .value = value,
                          .rank = rank,
                          .extent = {rank ? 2 : 0}};
}

static void program_init(struct rig_candidates *r, uint32_t op)
{
    static const frit_attrs_reduce all = {.struct_size = sizeof(all), .axes = {.count = 1}};
    static const frit_attrs_none none = {.struct_size = sizeof(none)};
    const uint32_t n_in = op == FRIT_OP_mul ? 2 : 1;
    const frit_op_desc desc = {.struct_size = sizeof(desc),
                               .id = op,
                               .rev = 1,
                               .n_in = n_in,
                               .n_out = 1,
                               .operand_stride = sizeof(frit_operand),
                               .in = r->operands,
                               .out = r->operands + n_in,
                               .attrs = op == FRIT_OP_sum ? (const void *)&all : &none};

    for (uint32_t i = 0; i <= n_in; i++)
        r->operands[i] = tensor(i, op == FRIT_OP_sum && i == 1 ? 0 : 1);
    r->program = (frit_program){.struct_size = sizeof(r->program)};
    r->info = (frit_program_info){.struct_size = sizeof(r->info)};
    assert_int_equal(r->backend->op_program(r->device, &desc, &r->program, &r->err), FRIT_OK);
    assert_int_equal(r->program.table->describe(r->program.self, &r->info, &r->err), FRIT_OK);
}

/* `options`: pairs of name and value, NULL after the last. */
static void begin(struct rig_candidates *r, uint32_t op, const char *const *options)
{
    static char path[4096], keys[MAX_SETTINGS][64];
    const frit_open_params params = {.struct_size = sizeof(params)};
    const frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = 1024, .align = 64};
    frit_allocation memory = {.struct_size = sizeof(memory)};
    frit_setting settings[MAX_SETTINGS + 2] = {{"plugin.fake-candidates", "library", path}};

    snprintf(path, sizeof(path), "%s/candidates/libfrit-fake-candidates.so", rig_fake_dir());
    for (int i = 0; options[2 * i]; i++) {
        snprintf(keys[i], sizeof(keys[i]), "option.%s", options[2 * i]);
        settings[i + 1] = (frit_setting){"plugin.fake-candidates", keys[i], options[2 * i + 1]};
    }
    memset(r, 0, sizeof(*r));
    r->err.struct_size = sizeof(r->err);
    assert_int_equal(rig_open(&r->rig, settings), FRIT_OK);
    r->plugin = rig_plugin(&r->rig, "fake-candidates");
    r->backend = &r->plugin->backend;
    r->stats = r->plugin->root->get_interface(r->plugin->instance, FRIT_STR(CANDIDATES_STATS));
    assert_int_equal(r->backend->device_open(r->plugin->instance, 0, &params, &r->device, &r->err),
                     FRIT_OK);
    assert_int_equal(r->backend->alloc(r->device, &desc, &memory, &r->err), FRIT_OK);
    r->memory = memory.memory;
    program_init(r, op);
}

#define BEGIN(r, op, ...) begin(r, op, (const char *const[]){__VA_ARGS__, NULL})

static void end(struct rig_candidates *r)
{
    r->program.table->destroy(r->program.self);
    r->backend->free(r->device, r->memory);
    r->backend->device_close(r->device);
    rig_close(&r->rig);
}

/* ---- launches ---- */

/* The bytes of device memory. */
static float *mapped(const struct rig_candidates *r)
{
    const frit_native_table *table =
        r->plugin->root->get_interface(r->plugin->instance, FRIT_STR(FRIT_NATIVE_TABLE));

    assert_non_null(table);
    return table->get(r->device, r->memory, FRIT_STR("host.ptr"));
}

/* Operands 1.5, 2.5, ... and 2, 3, ...; everything else is canaries. */
static void fill(const struct rig_candidates *r)
{
    float *at = mapped(r);

    memset(at, CANARY, 1024);
    for (int i = 0; i < SPACE; i++) {
        at[i] = 1.5f + (float)i;
        at[SPACE + i] = 2 + (float)i;
    }
}

struct call {
    frit_arg_sig sigs[3];
    frit_arg args[3];
    frit_signature signature;
    frit_launch_spec spec;
    frit_variant variant;
    frit_launch launch;
};

/* A launch over `n` elements, whose result may lie in the place of the first operand. */
static void call_init(struct rig_candidates *r, struct call *c, int64_t n, bool in_place)
{
    const uint32_t n_in = r->operands[2].kind ? 2 : 1;

    memset(c, 0, sizeof(*c));
    for (uint32_t i = 0; i <= n_in; i++) {
        const bool is_sum = n_in == 1 && i == 1;
        const uint64_t place = i < n_in ? places[i] : in_place ? places[0] : places[2];

        c->sigs[i] =
            (frit_arg_sig){.dtype = FRIT_F32, .rank = !is_sum, .dims = {n}, .strides = {1}};
        c->args[i] = (frit_arg){.memory = r->memory,
                                .offset = 4 * place,
                                .extent = is_sum ? 4 : 4 * (uint64_t)n,
                                .dtype = FRIT_F32,
                                .rank = !is_sum,
                                .dims = {n},
                                .strides = {1}};
    }
    c->signature = (frit_signature){.struct_size = sizeof(c->signature),
                                    .n_in = n_in,
                                    .n_out = 1,
                                    .arg_stride = sizeof(frit_arg_sig),
                                    .index_width = 32,
                                    .args = c->sigs};
    c->launch = (frit_launch){.struct_size = sizeof(c->launch),
                              .n_args = n_in + 1,
                              .arg_stride = sizeof(frit_arg),
                              .cookie = 77,
                              .program = &r->program,
                              .spec = &c->spec,
                              .variant = &c->variant,
                              .args = c->args};
}

static frit_status prepare(struct rig_candidates *r, struct call *c, uint32_t candidate)
{
    c->launch.candidate = candidate;
    c->spec = (frit_launch_spec){.struct_size = sizeof(c->spec)};
    return r->program.table->prepare(r->program.self, candidate, &c->signature, &c->spec,
                                     &c->variant, &r->err);
}

/* Runs it between two timestamps; returns the ticks between them. */
static uint64_t run(struct rig_candidates *r, struct call *c)
{
    frit_cmd cmds[3] = {{.kind = FRIT_CMD_TIMESTAMP, .dst_offset = 512},
                        {.kind = FRIT_CMD_LAUNCH, .launch = &c->launch},
                        {.kind = FRIT_CMD_TIMESTAMP, .dst_offset = 520}};
    uint64_t ticks[2];

    for (int i = 0; i < 3; i++) {
        cmds[i].struct_size = sizeof(cmds[i]);
        cmds[i].dst = r->memory;
    }
    r->failure = (frit_failure){
        .struct_size = sizeof(r->failure), .value = r->value, .command = FRIT_ALL_COMMANDS};
    assert_int_equal(
        r->backend->submit(r->device, NULL, cmds, 3, sizeof(*cmds), NULL, 0, &r->value, &r->err),
        FRIT_OK);
    assert_int_equal(r->backend->wait(r->device, NULL, r->value, UINT64_MAX, &r->failure, &r->err),
                     FRIT_OK);
    memcpy(ticks, (const char *)mapped(r) + 512, sizeof(ticks));
    return ticks[1] - ticks[0];
}

static uint64_t launch(struct rig_candidates *r, uint32_t candidate, int64_t n, bool in_place)
{
    struct call c;
    uint64_t ticks;

    fill(r);
    call_init(r, &c, n, in_place);
    assert_int_equal(prepare(r, &c, candidate), FRIT_OK);
    ticks = run(r, &c);
    r->program.table->spec_release(r->program.self, &c.spec);
    return ticks;
}

/* How many of the `n` results are those of the first candidate. */
static int right(const struct rig_candidates *r, int64_t n, bool in_place)
{
    const float *result = mapped(r) + (in_place ? places[0] : places[2]);
    int count = 0;

    for (int i = 0; i < n; i++)
        count += result[i] == (1.5f + (float)i) * (2 + (float)i);
    return count;
}

/* Bytes that are no canaries, in front of the place of the results and behind `n` of them. */
static void beside(const struct rig_candidates *r, int64_t n, int *in_front, int *behind)
{
    const unsigned char *at = (const unsigned char *)(mapped(r) + places[2]);

    *in_front = *behind = 0;
    for (int i = 0; i < 4 * SPACE; i++) {
        *in_front += at[i - 4 * SPACE] != CANARY;
        *behind += i >= 4 * n && at[i] != CANARY;
    }
}

/* ---- tests ---- */

static void right_ones_are_right(void **state)
{
    static const char *const names[] = {"first", "fast",  "slow",      "equal",    "reordered",
                                        "small", "large", "preferred", "declines", "fast_once"};
    struct rig_candidates r;
    int in_front, behind;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates",
          "fast, slow, equal, reordered, small, large, preferred, declines, fast_once", "cost_ns",
          "1000");
    assert_int_equal(r.info.n_candidates, 10);
    for (uint32_t i = 0; i < 10; i++) {
        const frit_candidate *candidate = &r.info.candidates[i];

        assert_string_equal(candidate->identity.ptr, names[i]);
        assert_int_equal(candidate->numeric_class,
                         i == 4 ? FRIT_NUMERIC_REORDERED : FRIT_NUMERIC_EXACT);
        for (int n = 4; n < 6; n++)
            for (int in_place = 0; in_place < 2; in_place++) {
                launch(&r, i, n, in_place);
                assert_int_equal(right(&r, n, in_place), n);
            }
        launch(&r, i, 5, false);
        beside(&r, 5, &in_front, &behind);
        assert_int_equal(in_front + behind, 0);
        assert_int_equal(r.stats->launches(r.plugin->instance, str(names[i])), 5);
        assert_int_equal(r.stats->prepares(r.plugin->instance, str(names[i])), 5);
    }
    assert_int_equal(r.stats->launches(r.plugin->instance, FRIT_STR("nobody")), UINT64_MAX);
    end(&r);
}

static void wrong_ones_are_wrong(void **state)
{
    struct rig_candidates r;
    int in_front, behind;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates",
          "wrong_odd silent beyond before wrong_in_place class_lies reduced far", "cost_ns",
          "1000");
    launch(&r, 1, 6, false);
    assert_int_equal(right(&r, 6, false), 6);
    launch(&r, 1, 5, false);
    assert_int_equal(right(&r, 5, false), 4);
    launch(&r, 2, 6, false);
    beside(&r, 0, &in_front, &behind);
    assert_int_equal(in_front + behind, 0);
    launch(&r, 3, 6, false);
    beside(&r, 6, &in_front, &behind);
    assert_int_equal(right(&r, 6, false), 6);
    assert_int_equal(in_front, 0);
    assert_int_equal(behind, 4);
    launch(&r, 4, 6, false);
    beside(&r, 6, &in_front, &behind);
    assert_int_equal(right(&r, 6, false), 6);
    assert_int_equal(in_front, 4);
    assert_int_equal(behind, 0);
    launch(&r, 5, 6, false);
    assert_int_equal(right(&r, 6, false), 6);
    launch(&r, 5, 6, true);
    assert_int_equal(right(&r, 6, true), 0);
    for (uint32_t i = 6; i < 9; i++) {
        launch(&r, i, 6, false);
        assert_int_equal(right(&r, 6, false), 0);
    }
    assert_int_equal(r.info.candidates[7].numeric_class, FRIT_NUMERIC_REDUCED);
    assert_int_equal(r.info.candidates[8].numeric_class, FRIT_NUMERIC_REORDERED);
    end(&r);
}

static void sums(void **state)
{
    struct rig_candidates r;
    float first, other;

    (void)state;
    BEGIN(&r, FRIT_OP_sum, "candidates", "reordered wrong_odd", "cost_ns", "1000");
    launch(&r, 0, 11, false);
    first = mapped(&r)[places[2]];
    assert_true(first == 11 * 6.5f);
    launch(&r, 1, 11, false);
    other = mapped(&r)[places[2]];
    assert_true(other == first);
    launch(&r, 2, 11, false);
    assert_true(mapped(&r)[places[2]] == first + 1);
    launch(&r, 2, 10, false);
    assert_true(mapped(&r)[places[2]] == 10 * 6);
    end(&r);
}

static void the_simulated_clock_counts_costs(void **state)
{
    struct rig_candidates r;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates", "fast:33 slow fast_once small large sleeps", "cost_ns",
          "1000000000", "clock", "simulated", "split", "8", "fast_calls", "2");
    assert_int_equal(launch(&r, 0, 6, false), 1000 * MS);
    assert_int_equal(launch(&r, 1, 6, false), 330 * MS);
    assert_int_equal(launch(&r, 2, 6, false), 2000 * MS);
    assert_int_equal(launch(&r, 3, 6, false), 250 * MS);
    assert_int_equal(launch(&r, 3, 6, false), 250 * MS);
    assert_int_equal(launch(&r, 3, 6, false), 4000 * (uint64_t)MS);
    assert_int_equal(launch(&r, 4, 6, false), 500 * MS);
    assert_int_equal(launch(&r, 4, 9, false), 4000 * (uint64_t)MS);
    assert_int_equal(launch(&r, 5, 6, false), 4000 * (uint64_t)MS);
    assert_int_equal(launch(&r, 5, 9, false), 500 * MS);
    assert_int_equal(launch(&r, 6, 6, false), 60000 * (uint64_t)MS);
    end(&r);
}

static void launches_take_what_they_cost(void **state)
{
    struct rig_candidates r;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates", "slow sleeps", "cost_ns", "2000000", "sleep_ms", "60");
    assert_true(launch(&r, 0, 6, false) >= 2 * MS);
    assert_true(launch(&r, 1, 6, false) >= 4 * MS);
    assert_true(launch(&r, 2, 6, false) >= 60 * MS);
    end(&r);
}

static void refusals_and_failures(void **state)
{
    struct rig_candidates r;
    struct call c;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates", "refuses refuses_later big_workspace fails", "cost_ns",
          "1000", "refuse_after", "2");
    call_init(&r, &c, 6, false);
    assert_int_equal(prepare(&r, &c, 1), FRIT_UNSUPPORTED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(prepare(&r, &c, 2), i < 2 ? FRIT_OK : FRIT_UNSUPPORTED);
    assert_int_equal(prepare(&r, &c, 3), FRIT_OK);
    assert_int_equal(c.spec.workspace_bytes, 1 << 30);
    assert_int_equal(prepare(&r, &c, 5), FRIT_INVALID);
    launch(&r, 4, 6, false);
    assert_int_equal(r.failure.status, FRIT_IO);
    assert_int_equal(r.failure.cookie, 77);
    assert_int_equal(r.failure.command, 2);
    launch(&r, 0, 6, false);
    assert_int_equal(r.failure.status, FRIT_OK);
    end(&r);
}

static void candidates_are_compiled(void **state)
{
    struct rig_candidates r;
    struct call c;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates", "fast", "compiles", "yes");
    call_init(&r, &c, 6, false);
    assert_int_equal(prepare(&r, &c, 1), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(r.program.table->compile(r.program.self, 1, &c.variant, NULL, &r.err),
                     FRIT_OK);
    assert_int_equal(prepare(&r, &c, 1), FRIT_OK);
    assert_int_equal(prepare(&r, &c, 0), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(r.stats->compiles(r.plugin->instance, FRIT_STR("fast")), 1);
    end(&r);
}

static void descriptions_that_change(void **state)
{
    frit_program_info again = {.struct_size = sizeof(again)};
    struct rig_candidates r;
    struct call c;
    int32_t priority;

    (void)state;
    BEGIN(&r, FRIT_OP_mul, "candidates",
          "changes_identity changes_version changes_priority nameless twin preferred declines");
    call_init(&r, &c, 6, false);
    assert_int_equal(r.program.table->describe(r.program.self, &again, &r.err), FRIT_OK);
    assert_string_equal(again.candidates[0].identity.ptr, r.info.candidates[0].identity.ptr);
    assert_string_not_equal(again.candidates[1].identity.ptr, r.info.candidates[1].identity.ptr);
    assert_int_not_equal(again.candidates[2].version, r.info.candidates[2].version);
    priority = r.program.table->priority(r.program.self, 3, &c.signature);
    assert_int_not_equal(r.program.table->priority(r.program.self, 3, &c.signature), priority);
    assert_int_equal(again.candidates[4].identity.len, 0);
    assert_string_equal(again.candidates[5].identity.ptr, "first");
    assert_int_equal(r.program.table->priority(r.program.self, 6, &c.signature), 1);
    assert_int_equal(r.program.table->priority(r.program.self, 7, &c.signature), -1);
    end(&r);
}

/* How a process ends that launches the candidate. */
static int status_after(struct rig_candidates *r, uint32_t candidate)
{
    const struct itimerval soon = {.it_value.tv_usec = 50000};
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        setitimer(ITIMER_REAL, &soon, NULL);
        launch(r, candidate, 6, false);
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* They are in the log, which counts launches of all processes. */
static void ends_and_hangs(void **state)
{
    char path[] = "/tmp/frit-candidates-XXXXXX", line[3][128] = {""}, expected[128];
    int file = mkstemp(path), status;
    struct rig_candidates r;
    FILE *log;

    (void)state;
    assert_true(file >= 0);
    close(file);
    BEGIN(&r, FRIT_OP_mul, "candidates", "crashes hangs", "log", path);
    launch(&r, 0, 6, true);
    assert_int_not_equal(status_after(&r, 1), 0);
    status = status_after(&r, 2);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    end(&r);
    log = fopen(path, "r");
    assert_non_null(log);
    for (int i = 0; i < 3; i++)
        assert_non_null(fgets(line[i], sizeof(line[i]), log));
    snprintf(expected, sizeof(expected), "%ld mul first in-place\n", (long)getpid());
    assert_string_equal(line[0], expected);
    rig_contains(line[1], " mul crashes apart\n");
    rig_contains(line[2], " mul hangs apart\n");
    assert_int_equal(fgetc(log), EOF);
    fclose(log);
    unlink(path);
}

static void options_are_checked(void **state)
{
    static char path[4096];
    static const char *const lists[] = {"nobody", "fast fast", "fast:", "fast:x", "first"};

    (void)state;
    snprintf(path, sizeof(path), "%s/candidates/libfrit-fake-candidates.so", rig_fake_dir());
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const frit_setting settings[] = {{"plugin.fake-candidates", "library", path},
                                         {"plugin.fake-candidates", "option.candidates", lists[i]},
                                         {0}};
        struct rig rig;

        assert_int_equal(rig_open(&rig, settings), FRIT_OK);
        rig_contains(rig_plugin(&rig, "fake-candidates")->detail, "is unknown, or there already");
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_ones_are_right),
        cmocka_unit_test(wrong_ones_are_wrong),
        cmocka_unit_test(sums),
        cmocka_unit_test(the_simulated_clock_counts_costs),
        cmocka_unit_test(launches_take_what_they_cost),
        cmocka_unit_test(refusals_and_failures),
        cmocka_unit_test(candidates_are_compiled),
        cmocka_unit_test(descriptions_that_change),
        cmocka_unit_test(ends_and_hangs),
        cmocka_unit_test(options_are_checked),
    };

    return cmocka_run_group_tests_name("fake/candidates", tests, rig_setup, rig_teardown);
}
