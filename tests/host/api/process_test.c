/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, second closes and cancelled threads. */
#include "api/calls.h"
#include "api/rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frit/plugin.h>

static const float six[6] = {1, 2, 3, 4, 5, 6};
static const char barred[] = "this process was forked while a host was open";

enum { HANGS_AFTER = 120 };

/* ---- in a child, where cmocka cannot report ---- */

static void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "in the child: %s\n", what);
    _exit(1);
}

static void expect_barred(frit_status status, const frit_err *err, const char *call)
{
    expect(status == FRIT_UNSUPPORTED && strstr(err->text, barred), call);
    expect(strstr(err->text, call) == err->text, err->text);
}

static void expect_error_tensor(frit_tensor *tensor, const char *call)
{
    expect(tensor, call);
    expect(frit_tensor_status(tensor) == FRIT_UNSUPPORTED, call);
    expect(strstr(frit_tensor_error(tensor), barred), call);
    frit_release(tensor);
}

static void expect_all_fail(const struct rig *rig, frit_tensor *live)
{
    const struct arguments w = {.device = rig->dev,
                                .tensor = live,
                                .list = {live, live},
                                .word = FRIT_F32,
                                .dims = {1, {1}}};

    for (size_t i = 0; i < N_ENTRIES; i++) {
        if (entries[i].tensor)
            expect_error_tensor(entries[i].tensor(&w), entries[i].name);
        else if (entries[i].status)
            expect(entries[i].status(&w) < 0, entries[i].name);
        else if (entries[i].other != call_frit_device_close)
            entries[i].other(&w);
    }
}

static void expect_texts(const struct rig *rig, frit_tensor *live)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device_desc desc = {.struct_size = sizeof(desc)};
    frit_stream *stream;
    frit_device *device;
    frit_host *host;
    frit_graph *graph;
    frit_safetensors *file;
    char *text;
    float out[6];

    expect_barred(frit_host_open(NULL, &host, &err), &err, "host_open");
    expect_barred(frit_device_open(rig->host, NULL, &device, &err), &err, "device_open");
    expect(!host && !device, "what is not opened is NULL");
    expect_barred(frit_why(rig->host, "cpu", &text, &err), &err, "why");
    expect_barred(frit_sync(rig->dev, &err), &err, "sync");
    expect_barred(frit_sync_all(rig->dev, &err), &err, "sync_all");
    expect_barred(frit_flush(rig->dev, &err), &err, "flush");
    expect_barred(frit_stream_open(rig->dev, &stream, &err), &err, "stream_open");
    expect_barred(frit_stream_enter(rig->dev, NULL, NULL, &err), &err, "stream_enter");
    expect_barred(frit_read(live, out, sizeof(out), &err), &err, "read");
    expect_barred(frit_write(live, out, sizeof(out), &err), &err, "write");
    expect_barred(frit_save_npy(live, "/dev/null", &err), &err, "read");
    expect_barred(frit_load_safetensors("/dev/null", &file, &err), &err, "load_safetensors");
    expect_barred(frit_save_safetensors(NULL, 0, NULL, 0, "/dev/null", &err), &err,
                  "save_safetensors");
    expect_barred(frit_graph_parse("x", "", 0, &graph, &err), &err, "graph_parse");
    expect(frit_device_info_at(rig->host, 0, &desc) == FRIT_UNSUPPORTED, "device_info_at");
}

static struct rig left;
static frit_tensor *left_tensor;

static void close_late(void)
{
    frit_release(left_tensor);
    frit_device_close(left.dev);
    frit_host_close(left.host);
}

static void use_in_child(const struct rig *rig, frit_tensor *live)
{
    alarm(HANGS_AFTER);
    left = *rig;
    left_tensor = live;
    atexit(close_late);
    expect_texts(rig, live);
    expect_all_fail(rig, live);
    close_late();
    if (FRIT_SANITIZER == FRIT_SANITIZER_ADDRESS)
        _exit(0); /* what only the threads knew that are gone would be leaks */
    exit(0);
}

/* Whether it hung. */
static bool has_hung(pid_t child)
{
    int status = -1;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return true;
    assert_int_equal(status, 0);
    return false;
}

static void await_child(pid_t child)
{
    assert_false(has_hung(child));
}

/* ---- forks ---- */

/* Threads that take every lock there is. */
struct crowd {
    const struct rig *rig;
    atomic_bool stop;
};

static void *work(void *ctx)
{
    struct crowd *crowd = ctx;
    frit_device *dev = crowd->rig->dev;

    while (!atomic_load(&crowd->stop)) {
        frit_tensor *a = frit_from_host(dev, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
        frit_tensor *b = frit_add(a, frit_take(frit_neg(a)));
        float out[6];

        if (frit_read(frit_take(b), out, sizeof(out), NULL) || out[5] != 0)
            abort();
        frit_release(a);
    }
    return NULL;
}

/* The address sanitizer of gcc 12 forks with its allocator's locks as they are, so that about one
 * child in ten thousand waits in malloc for a thread that is not there. */
enum { CROWD = 3, FORKS = 12, MAY_HANG = FRIT_SANITIZER == FRIT_SANITIZER_ADDRESS ? 2 : 0 };

static void test_a_child_can_only_close(void **state)
{
    struct rig rig;
    struct crowd crowd = {.rig = &rig};
    pthread_t threads[CROWD];
    frit_tensor *live, *sum;
    float out[6];
    int hung = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
    live = rig_f32(&rig, FRIT_SHAPE(6), six);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();

        if (child == 0)
            use_in_child(&rig, live);
        hung += has_hung(child);
    }
    assert_true(hung <= MAY_HANG);
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    sum = frit_add(live, live); /* here all goes on */
    assert_int_equal(frit_read(frit_take(sum), out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[5] == 12);
    frit_release(live);
    rig_close(&rig);
}

/* The last thread of a child ends with pthread_exit, so that destructors of its data run. */
static void test_a_child_s_thread_can_end(void **state)
{
    struct rig rig;
    pid_t child;

    (void)state;
    if (FRIT_SANITIZER == FRIT_SANITIZER_ADDRESS)
        skip(); /* it takes the unwound stack for overrun */
    rig_open(&rig, NULL, 0);
    frit_release(rig_f32(&rig, FRIT_SHAPE(6), six));
    child = fork();
    if (child == 0) {
        alarm(HANGS_AFTER);
        pthread_exit(NULL);
    }
    await_child(child);
    rig_close(&rig);
}

static void compute_and_exit(void)
{
    struct rig rig;
    frit_tensor *a, *b;
    float out[6];

    alarm(HANGS_AFTER);
    rig_open(&rig, NULL, 0);
    a = rig_f32(&rig, FRIT_SHAPE(6), six);
    b = frit_neg(a);
    expect(!frit_read(b, out, sizeof(out), NULL) && out[5] == -6, "it computes");
    frit_release(a);
    frit_release(b);
    rig_close(&rig);
    exit(0);
}

static void test_a_child_without_a_host_is_like_any_process(void **state)
{
    struct rig rig;
    pid_t child;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_release(rig_f32(&rig, FRIT_SHAPE(6), six));
    rig_close(&rig);
    child = fork();
    if (child == 0)
        compute_and_exit();
    await_child(child);
}

/* ---- second closes ---- */

struct lines {
    atomic_uint count;
    char text[256];
};

static void keep_line(void *ctx, uint32_t level, const char *topic, const char *text)
{
    struct lines *lines = ctx;

    (void)level;
    (void)topic;
    atomic_fetch_add(&lines->count, 1);
    snprintf(lines->text, sizeof(lines->text), "%s", text);
}

static void expect_line(struct lines *lines, const char *text)
{
    assert_int_equal(atomic_exchange(&lines->count, 0), 1);
    assert_non_null(strstr(lines->text, text));
}

static void test_a_second_close_is_reported(void **state)
{
    static struct lines lines;
    frit_host_params params = {.struct_size = sizeof(params), .log = keep_line, .log_ctx = &lines};
    frit_host *host;
    frit_device *a, *b;

    (void)state;
    assert_int_equal(frit_host_open(&params, &host, NULL), FRIT_OK);
    assert_int_equal(frit_device_open(host, "reference:0", &a, NULL), FRIT_OK);
    assert_int_equal(frit_device_open(host, "reference:0", &b, NULL), FRIT_OK);
    assert_ptr_equal(a, b);
    frit_device_close(a);
    frit_device_close(a);
    assert_int_equal(atomic_load(&lines.count), 0);
    frit_device_close(a);
    expect_line(&lines, "device_close");
    assert_int_equal(frit_device_open(host, "reference:0", &a, NULL), FRIT_OK);
    frit_host_close(host);
    assert_int_equal(atomic_load(&lines.count), 0);
    frit_device_close(a);
    expect_line(&lines, "device_close");
    frit_host_close(host);
    expect_line(&lines, "host_close");
    assert_non_null(strstr(lines.text, "closed before"));
}

/* ---- cancelled threads ---- */

struct reader {
    frit_device *device;
    atomic_bool reads, has_read, is_cancelled, lives_on;
};

static void *read_slowly(void *ctx)
{
    enum { N = 256 };
    static float out[N * N];
    struct reader *reader = ctx;
    frit_tensor *a = frit_ones(reader->device, FRIT_F32, FRIT_SHAPE(N, N)), *b = frit_ref(a);

    for (int i = 0; i < 4; i++)
        b = frit_matmul(frit_take(b), a);
    frit_release(a);
    atomic_store(&reader->reads, true);
    if (frit_read(frit_take(b), out, sizeof(out), NULL))
        return NULL;
    atomic_store(&reader->has_read, true);
    while (!atomic_load(&reader->is_cancelled)) /* it was read before, on a machine that is busy */
        sched_yield();
    pthread_testcancel();
    atomic_store(&reader->lives_on, true);
    return NULL;
}

static void test_a_call_ends_before_its_thread(void **state)
{
    struct rig rig;
    struct reader reader = {0};
    pthread_t thread;
    void *result;

    (void)state;
    if (FRIT_SANITIZER == FRIT_SANITIZER_ADDRESS)
        skip(); /* it takes the unwound stack for overrun */
    rig_open(&rig, NULL, 0);
    reader.device = rig.dev;
    alarm(HANGS_AFTER);
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
    while (!atomic_load(&reader.reads))
        usleep(100);
    usleep(3000);
    assert_int_equal(pthread_cancel(thread), 0);
    atomic_store(&reader.is_cancelled, true);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(atomic_load(&reader.has_read));
    assert_false(atomic_load(&reader.lives_on));
    rig_close(&rig);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_can_only_close),
        cmocka_unit_test(test_a_child_s_thread_can_end),
        cmocka_unit_test(test_a_child_without_a_host_is_like_any_process),
        cmocka_unit_test(test_a_second_close_is_reported),
        cmocka_unit_test(test_a_call_ends_before_its_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
