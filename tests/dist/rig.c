/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <frit/host.h>
#include <frit/plugin.h>

struct shared *shared;
static bool is_all_right = true;

/* ---- the report ---- */

void report(bool is_right, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("%s  ", is_right ? "ok  " : "FAIL");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    is_all_right &= is_right;
    if (shared && !is_right)
        atomic_fetch_add(&shared->n_wrong, 1);
}

bool all_was_right(void)
{
    return is_all_right && (!shared || !shared->n_wrong);
}

bool check(const struct rank *rank, bool is_right, const char *what, int line)
{
    if (!is_right && atomic_fetch_add(&shared->n_failed, 1) == 0)
        snprintf(shared->fault, sizeof shared->fault, "rank %u, line %d: %s; %s", rank->number,
                 line, what, rank->err.text);
    return is_right;
}

const char *setting(const char *name)
{
    const char *text = getenv(name);

    return text ? text : "";
}

uint32_t number(const char *name, uint32_t usual)
{
    const char *text = setting(name);

    return *text ? (uint32_t)strtoul(text, NULL, 10) : usual;
}

uint64_t scaled(uint64_t count)
{
    const uint64_t scale = number("GPUS_SCALE", 1);

    return count > 1000 * scale ? count / scale : count < 1000 ? count : 1000;
}

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the host ---- */

static uint64_t host_now(void *self)
{
    (void)self;
    return now_ns();
}

static void host_log(void *self, uint32_t level, frit_str topic, frit_str text)
{
    (void)self;
    (void)level;
    (void)topic;
    if (*setting("GPUS_VERBOSE"))
        fprintf(stderr, "%.*s\n", (int)text.len, text.ptr);
}

static frit_status host_error(void *self, frit_err *err, frit_status status, int64_t native_code,
                              frit_str text)
{
    (void)self;
    if (!err)
        return status;
    err->status = status;
    err->native_code = native_code;
    snprintf(err->text, sizeof err->text, "%.*s", (int)text.len, text.ptr);
    return status;
}

static void *host_alloc(void *self, uint64_t bytes, uint64_t align)
{
    void *memory = NULL;

    (void)self;
    return posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) ? NULL
                                                                                           : memory;
}

static void host_free(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static frit_status host_option(void *self, frit_str name, frit_str *out, frit_err *err)
{
    const char *text = is(name, "nccl")   ? setting("GPUS_NCCL")
                       : is(name, "cuda") ? setting("GPUS_CUDA")
                                          : "";

    (void)self;
    (void)err;
    *out = (frit_str){text, strlen(text)};
    return FRIT_OK;
}

/* ---- the timeline ---- */

enum { N_SPANS = 4096 };

static const char *spans_file;
static pthread_mutex_t spans_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_spans;
static struct span {
    uint64_t begun, ended;
    char name[48];
} spans[N_SPANS];

void record_spans(const char *file)
{
    spans_file = file;
}

static uint64_t span_begin(void *self)
{
    (void)self;
    return spans_file ? now_ns() : 0;
}

static void span_end(void *self, uint64_t begun, frit_str name)
{
    (void)self;
    pthread_mutex_lock(&spans_lock);
    if (n_spans < N_SPANS) {
        spans[n_spans] = (struct span){.begun = begun, .ended = now_ns()};
        snprintf(spans[n_spans].name, sizeof spans[n_spans].name, "%.*s", (int)name.len, name.ptr);
        n_spans++;
    }
    pthread_mutex_unlock(&spans_lock);
}

static void counter(void *self, frit_str name, double value)
{
    (void)self;
    (void)name;
    (void)value;
}

/* In the form that Chrome and Perfetto read. */
void write_spans(const struct rank *rank)
{
    FILE *file = rank->number == 0 && spans_file ? fopen(spans_file, "w") : NULL;

    if (!file)
        return;
    fprintf(file, "[\n");
    for (uint32_t i = 0; i < n_spans; i++)
        fprintf(
            file,
            "{\"ph\": \"X\", \"pid\": 0, \"tid\": \"%s\", \"name\": \"%s\", \"ts\": %.3f, \"dur\": "
            "%.3f}%s\n",
            strncmp(spans[i].name, "compute", 7) == 0 ? "compute" : "engine", spans[i].name,
            (double)spans[i].begun / 1e3, (double)(spans[i].ended - spans[i].begun) / 1e3,
            i + 1 < n_spans ? "," : "");
    fprintf(file, "]\n");
    fclose(file);
}

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof core,
                                        .log = host_log,
                                        .err_set = host_error,
                                        .mem_alloc = host_alloc,
                                        .mem_free = host_free,
                                        .now_ns = host_now};
    static const frit_host_options options = {.struct_size = sizeof options,
                                              .get_str = host_option};
    static const frit_host_trace trace = {.struct_size = sizeof trace,
                                          .span_begin = span_begin,
                                          .span_end = span_end,
                                          .counter = counter};

    (void)self;
    return is(id, FRIT_HOST_CORE)      ? (const void *)&core
           : is(id, FRIT_HOST_OPTIONS) ? (const void *)&options
           : is(id, FRIT_HOST_TRACE)   ? (const void *)&trace
                                       : NULL;
}

/* ---- the engine ---- */

static const frit_host_root root = {.struct_size = sizeof root, .get_interface = get_interface};
static const frit_collective_table *table;
static void *instance;

static void open_engine(void)
{
    const frit_hello hello = {sizeof hello, FRIT_HELLO_MAGIC, FRIT_ABI_MIN,
                              FRIT_ABI_MAX, FRIT_SANITIZER,   0};
    frit_welcome welcome = {.struct_size = sizeof welcome};
    frit_err err = {.struct_size = sizeof err};
    frit_plugin_entry entry = NULL;
    void *library = dlopen(setting("GPUS_PLUGIN"), RTLD_NOW | RTLD_LOCAL);

    if (library)
        *(void **)&entry = dlsym(library, FRIT_PLUGIN_ENTRY);
    if (!entry || entry(&hello, &welcome) || welcome.plugin->open(&root, &instance, &err)) {
        fprintf(stderr, "gpus: the engine cannot be opened: %s\n", library ? err.text : dlerror());
        exit(1);
    }
    table = welcome.plugin->get_interface(instance, FRIT_STR(FRIT_COLLECTIVE_TABLE));
}

/* ---- the store ---- */

static struct value *find(frit_str key)
{
    for (uint32_t i = 0; i < shared->n_values; i++) {
        if (is(key, shared->values[i].key))
            return &shared->values[i];
    }
    return NULL;
}

static frit_status put(void *store, frit_str key, const void *bytes, uint64_t size, frit_err *err)
{
    struct value *value;

    (void)store;
    (void)err;
    pthread_mutex_lock(&shared->lock);
    value = &shared->values[shared->n_values++];
    snprintf(value->key, sizeof value->key, "%.*s", (int)key.len, key.ptr);
    memcpy(value->bytes, bytes, size);
    value->size = size;
    pthread_mutex_unlock(&shared->lock);
    return FRIT_OK;
}

static frit_status get(void *store, frit_str key, void *out, uint64_t capacity, uint64_t *size,
                       uint64_t timeout_ns, frit_err *err)
{
    const uint64_t begun = now_ns();
    const struct value *value;

    (void)store;
    do {
        pthread_mutex_lock(&shared->lock);
        value = find(key);
        if (value && value->size <= capacity) {
            memcpy(out, value->bytes, value->size);
            *size = value->size;
        }
        pthread_mutex_unlock(&shared->lock);
        if (value)
            return FRIT_OK;
        usleep(200);
    } while (now_ns() - begun < timeout_ns);
    return host_error(NULL, err, FRIT_TIMEOUT, 0, FRIT_STR("nobody has set it"));
}

/* ---- ranks ---- */

void meet(void)
{
    const uint32_t meeting = shared->n_meetings;

    if (atomic_fetch_add(&shared->n_met, 1) + 1 == shared->n_ranks) {
        shared->n_met = 0;
        shared->n_meetings++;
    }
    while (shared->n_meetings == meeting) {
        if (shared->n_failed)
            _exit(2);
        sched_yield();
    }
}

frit_status join(struct rank *rank, uint32_t generation, uint32_t number, uint32_t size,
                 uint64_t timeout_ns)
{
    const frit_group_id id = {{'g', 'p', 'u', 's', (uint8_t)generation}};
    const frit_group_params params = {.struct_size = sizeof params,
                                      .rank = number,
                                      .size = size,
                                      .id = &id,
                                      .timeout_ns = timeout_ns,
                                      .space = FRIT_STR("cuda.ptr"),
                                      .device = rank->device.context,
                                      .name = FRIT_STR("gpus"),
                                      .put = put,
                                      .get = get};

    return rank->table->group_create(rank->instance, &params, &rank->group, &rank->err);
}

void leave(struct rank *rank)
{
    rank->table->group_destroy(rank->group);
    rank->group = NULL;
}

uint64_t begin_buffers(struct rank *rank, const frit_collective_op *op)
{
    uint64_t value = 0;

    return rank->table->begin(rank->group, op, &value, &rank->err) ? 0 : value;
}

uint64_t begin_reduce(struct rank *rank, uint64_t at, uint64_t count, void *stream)
{
    void *memory = (void *)(uintptr_t)at;
    const frit_collective_buffer buffer = {memory, memory, count, FRIT_F32, 0};

    return begin_buffers(rank, &(frit_collective_op){.struct_size = sizeof(frit_collective_op),
                                                     .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                                     .combine = FRIT_CHOICE_combine_sum,
                                                     .n_buffers = 1,
                                                     .buffer_stride = sizeof buffer,
                                                     .buffers = &buffer,
                                                     .stream = stream});
}

frit_status wait_for(struct rank *rank, uint64_t value)
{
    return rank->table->wait(rank->group, value, 60000000000u, &rank->err);
}

struct thread {
    struct rank rank;
    void (*run)(struct rank *rank);
    pthread_t thread;
};

static void *thread_main(void *arg)
{
    struct thread *thread = arg;

    device_open(&thread->rank.device, thread->rank.device_number);
    thread->run(&thread->rank);
    return NULL;
}

/* In a process of its own: ranks first to end - 1. */
static _Noreturn void run_process(uint32_t first, uint32_t end, uint32_t n,
                                  void (*run)(struct rank *rank), const void *arg)
{
    static struct thread threads[MAX_RANKS];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_engine();
    for (uint32_t r = first; r < end; r++) {
        threads[r] = (struct thread){.run = run,
                                     .rank = {.number = r,
                                              .size = n,
                                              .device_number = r,
                                              .table = table,
                                              .instance = instance,
                                              .err = {.struct_size = sizeof(frit_err)},
                                              .arg = arg}};
        if (pthread_create(&threads[r].thread, NULL, thread_main, &threads[r]))
            exit(1);
    }
    for (uint32_t r = first; r < end; r++)
        pthread_join(threads[r].thread, NULL);
    fflush(NULL);
    _exit(0); /* what the libraries do at exit is not of interest */
}

static void reset(uint32_t n)
{
    pthread_mutexattr_t mutex;

    if (!shared) {
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
            exit(1);
    }
    memset(shared, 0, offsetof(struct shared, n_wrong));
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &mutex);
    shared->n_ranks = n;
}

static pid_t start_process(uint32_t first, uint32_t end, uint32_t n, void (*run)(struct rank *rank),
                           const void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        run_process(first, end, n, run, arg);
    if (pid < 0)
        exit(1);
    return pid;
}

void start_ranks(uint32_t n, void (*run)(struct rank *rank), const void *arg, pid_t pids[MAX_RANKS])
{
    reset(n);
    for (uint32_t r = 0; r < n; r++)
        pids[r] = start_process(r, r + 1, n, run, arg);
}

bool run_ranks(uint32_t n, bool as_threads, void (*run)(struct rank *rank), const void *arg)
{
    pid_t pids[MAX_RANKS];
    const uint32_t n_processes = as_threads ? 1 : n;
    bool is_right = true;
    int status;

    if (as_threads) {
        reset(n);
        pids[0] = start_process(0, n, n, run, arg);
    } else {
        start_ranks(n, run, arg, pids);
    }
    for (uint32_t i = 0; i < n_processes; i++) {
        if (waitpid(-1, &status, 0) > 0 && status == 0)
            continue;
        if (is_right && !shared->n_failed)
            report(false, "a process ended with status %#x", (unsigned)status);
        is_right = false;
        for (uint32_t other = 0; other < n_processes; other++)
            (void)kill(pids[other], SIGKILL);
    }
    if (shared->n_failed)
        report(false, "%s", shared->fault);
    return is_right && !shared->n_failed;
}
