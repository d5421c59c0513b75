/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin gets from its host: the root, and the tables frit.host.core/1, options/1, trace/1,
 * exec/1 and cache/1.
 *
 * `self` of every slot is the plugin's own service, which stays until the process ends: threads of
 * the plugin may go on when it is closed, and find there what needs no host.  The next instance of
 * the same plugin takes it over.  Options are parsed once, before `open`, so that every wrong value
 * is reported with its origin, whether the plugin reads it or not. */
#include "load/service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "exec/job_queue.h"
#include "exec/team.h"
#include "load/artefact.h"
#include "load/load.h"
#include "load/option.h"

enum { TOPIC_BYTES = 24 };

struct service {
    frit_host_root root;
    struct service *next; /* of all */
    bool is_used;         /* by a plugin that is open, or about to be */
    const frit_plugin *plugin;
    char id[48];
    atomic_uint threads;
    pthread_rwlock_t lock; /* write: to begin and to end; guards what follows */
    struct lent lent;      /* all zero: the plugin is closed */
    const char *space; /* of its artefacts; NULL: nothing is cached, since the build is unknown */
    uint32_t n_options;
    const struct option *options;
};

static struct {
    pthread_mutex_t lock;
    struct service *first;
} services = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* ---- frit.host.core/1 ---- */

static const char *topic_text(frit_str topic, char text[TOPIC_BYTES])
{
    plugin_text(topic, text, TOPIC_BYTES);
    return text;
}

static void core_log(void *self, uint32_t level, frit_str topic, frit_str text)
{
    const struct service *service = self;
    char line[768], word[TOPIC_BYTES];

    plugin_text(text, line, sizeof(line));
    log_write(level ? level : FRIT_LOG_ERROR, topic_text(topic, word), "%s: %s", service->id, line);
}

static uint32_t core_log_enabled(void *self, uint32_t level, frit_str topic)
{
    char word[TOPIC_BYTES];

    (void)self;
    return log_enabled(level ? level : FRIT_LOG_ERROR, topic_text(topic, word));
}

static frit_status core_err_set(void *self, frit_err *err, frit_status status, int64_t native_code,
                                frit_str text)
{
    (void)self;
    if (!err)
        return status;
    err->struct_size = sizeof(*err);
    err->status = status;
    err->native_code = native_code;
    plugin_text(text, err->text, sizeof(err->text));
    return status;
}

static void *core_mem_alloc(void *self, uint64_t bytes, uint64_t align)
{
    (void)self;
    if (bytes > SIZE_MAX / 2 || align > SIZE_MAX / 4 || (align & (align - 1)))
        return NULL;
    if (align <= _Alignof(max_align_t))
        return malloc(bytes ? bytes : 1);
    return aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
}

static void core_mem_free(void *self, void *ptr)
{
    (void)self;
    free(ptr);
}

static uint64_t core_now_ns(void *self)
{
    struct timespec now;

    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const frit_host_core core_table = {
    .struct_size = sizeof(frit_host_core),
    .log = core_log,
    .log_enabled = core_log_enabled,
    .err_set = core_err_set,
    .mem_alloc = core_mem_alloc,
    .mem_free = core_mem_free,
    .now_ns = core_now_ns,
};

/* ---- frit.host.options/1 ---- */

/* `type` 0: any.  NULL, and err written, where there is no such option. */
static const struct option *option_get(const struct service *service, frit_str key, uint32_t type,
                                       frit_err *err)
{
    char word[48];

    for (uint32_t i = 0; i < service->n_options; i++) {
        const struct option *option = &service->options[i];

        if (!str_is(key, option->name))
            continue;
        if (!type || option->type == type)
            return option;
        (void)fail(err, FRIT_INVALID, "option '%s' of plugin %s is declared as %s, not as %s",
                   option->name, service->id, option_type_name(option->type),
                   option_type_name(type));
        return NULL;
    }
    plugin_text(key, word, sizeof(word));
    (void)fail(err, FRIT_INVALID, "plugin %s did not declare an option '%s'", service->id, word);
    return NULL;
}

static frit_status options_get_str(void *self, frit_str key, frit_str *out, frit_err *err)
{
    const struct option *option = option_get(self, key, 0, err);

    if (!option)
        return FRIT_INVALID;
    *out = str_of(option->text);
    return FRIT_OK;
}

static frit_status options_get_i64(void *self, frit_str key, int64_t *out, frit_err *err)
{
    const struct option *option = option_get(self, key, FRIT_OPTION_I64, err);

    if (!option)
        return FRIT_INVALID;
    *out = option->i64;
    return FRIT_OK;
}

static frit_status options_get_f64(void *self, frit_str key, double *out, frit_err *err)
{
    const struct option *option = option_get(self, key, FRIT_OPTION_F64, err);

    if (!option)
        return FRIT_INVALID;
    *out = option->f64;
    return FRIT_OK;
}

static frit_status options_get_bool(void *self, frit_str key, uint32_t *out, frit_err *err)
{
    const struct option *option = option_get(self, key, FRIT_OPTION_BOOL, err);

    if (!option)
        return FRIT_INVALID;
    *out = (uint32_t)option->i64;
    return FRIT_OK;
}

static const frit_host_options options_table = {
    .struct_size = sizeof(frit_host_options),
    .get_str = options_get_str,
    .get_i64 = options_get_i64,
    .get_f64 = options_get_f64,
    .get_bool = options_get_bool,
};

/* ---- frit.host.trace/1 ---- */

static uint64_t trace_span_begin(void *self)
{
    (void)self;
    return timeline_begin();
}

static void trace_span_end(void *self, uint64_t begun, frit_str name)
{
    const struct service *service = self;

    timeline_end(begun, service->id, name);
}

static void trace_counter(void *self, frit_str name, double value)
{
    const struct service *service = self;

    timeline_counter(service->id, name, value);
}

static const frit_host_trace trace_table = {
    .struct_size = sizeof(frit_host_trace),
    .span_begin = trace_span_begin,
    .span_end = trace_span_end,
    .counter = trace_counter,
};

/* ---- frit.host.exec/1 ---- */

static uint32_t exec_threads(void *self)
{
    struct service *service = self;

    return atomic_load_explicit(&service->threads, memory_order_relaxed);
}

static void exec_parallel_for(void *self, uint64_t count, uint64_t grain,
                              void (*run)(void *ctx, uint64_t first, uint64_t end, uint32_t thread),
                              void *ctx)
{
    team_for(exec_threads(self), count, grain ? grain : 1, run, ctx);
}

/* A task or what was spawned. */
struct task_job {
    struct job job; /* first */
    frit_task task;
    void (*spawned)(void *ctx); /* NULL: a task */
};

static void run_spawned(struct job *job)
{
    const struct task_job *task = (struct task_job *)job;

    task->spawned(task->task.ctx);
}

/* What was spawned runs in any case. */
static void end_spawned(struct job *job)
{
    if (!job->begun)
        run_spawned(job);
    free(job);
}

static void run_task(struct job *job)
{
    const struct task_job *task = (struct task_job *)job;

    task->task.run(task->task.ctx, &job->cancel);
}

static void end_task(struct job *job)
{
    const struct task_job *task = (struct task_job *)job;

    if (!job->begun)
        task->task.drop(task->task.ctx);
    free(job);
}

/* A copy of `from` goes to the queue. */
static frit_status add_job(struct service *service, const struct task_job *from, uint64_t *id,
                           frit_err *err)
{
    struct task_job *task = malloc(sizeof(*task));
    frit_status st;

    if (!task)
        return fail_memory(err, sizeof(*task));
    *task = *from;
    pthread_rwlock_rdlock(&service->lock);
    st = service->lent.jobs ? job_queue_add(service->lent.jobs, &task->job, id, err)
                            : fail(err, FRIT_INVALID, "plugin %s is closed", service->id);
    pthread_rwlock_unlock(&service->lock);
    if (st)
        free(task);
    return st;
}

static frit_status exec_spawn(void *self, void (*run)(void *ctx), void *ctx, frit_err *err)
{
    const struct service *service = self;
    const struct task_job task = {.job = {.run = run_spawned,
                                          .end = end_spawned,
                                          .owner = service,
                                          .key = &service->root.self, /* one at a time */
                                          .key_bytes = sizeof(service->root.self)},
                                  .task = {.ctx = ctx},
                                  .spawned = run};

    return add_job(self, &task, NULL, err);
}

static frit_status exec_task_spawn(void *self, const frit_task *task, uint64_t *id, frit_err *err)
{
    struct task_job job = {.job = {.run = run_task, .end = end_task, .owner = self}};

    *id = 0;
    if (!FRIT_HAS(task, frit_task, priority) || !task->run || !task->drop)
        return fail(err, FRIT_INVALID, "plugin %s: a task needs run and drop",
                    ((const struct service *)self)->id);
    job.task = *task;
    job.job.priority = task->priority;
    return add_job(self, &job, id, err);
}

static void exec_task_raise(void *self, uint64_t id, uint64_t by)
{
    struct service *service = self;

    pthread_rwlock_rdlock(&service->lock);
    if (service->lent.jobs)
        job_queue_raise_id(service->lent.jobs, self, id, by);
    pthread_rwlock_unlock(&service->lock);
}

static void exec_task_cancel(void *self, uint64_t id)
{
    struct service *service = self;
    struct job *job = NULL;

    pthread_rwlock_rdlock(&service->lock);
    if (service->lent.jobs)
        job = job_queue_cancel_id(service->lent.jobs, self, id);
    pthread_rwlock_unlock(&service->lock);
    if (job)
        job->end(job);
}

static const frit_host_exec exec_table = {
    .struct_size = sizeof(frit_host_exec),
    .threads = exec_threads,
    .parallel_for = exec_parallel_for,
    .spawn = exec_spawn,
    .task_spawn = exec_task_spawn,
    .task_raise = exec_task_raise,
    .task_cancel = exec_task_cancel,
};

/* `wanted` 0: what the process may run on. */
static uint32_t count_threads(int64_t wanted)
{
    uint32_t most = wanted > 0 ? (uint32_t)wanted : team_processors();

    return most < TEAM_MAX ? most : TEAM_MAX;
}

/* ---- frit.host.cache/1 ---- */

static bool keeps(const struct service *service)
{
    return service->lent.artefacts && service->space;
}

static frit_status cache_get(void *self, frit_str space, const void *key, uint64_t n_key,
                             void **bytes, uint64_t *n_bytes, frit_err *err)
{
    struct service *service = self;
    frit_status status = FRIT_OK;

    *bytes = NULL;
    *n_bytes = 0;
    pthread_rwlock_rdlock(&service->lock);
    if (keeps(service)) {
        const struct artefact_name name = {service->space, space, key, n_key};

        status = artefact_get(service->lent.artefacts, &name, bytes, n_bytes, err);
    }
    pthread_rwlock_unlock(&service->lock);
    return status;
}

static frit_status cache_put(void *self, frit_str space, const void *key, uint64_t n_key,
                             const void *bytes, uint64_t n_bytes, frit_err *err)
{
    struct service *service = self;
    frit_status status;

    pthread_rwlock_rdlock(&service->lock);
    if (keeps(service)) {
        const struct artefact_name name = {service->space, space, key, n_key};

        status = artefact_put(service->lent.artefacts, service->lent.artefact_bytes, &name, bytes,
                              n_bytes, err);
    } else {
        status = fail(err, FRIT_UNSUPPORTED, "nothing is kept: option [frit] artefacts is none");
    }
    pthread_rwlock_unlock(&service->lock);
    return status;
}

static const frit_host_cache cache_table = {
    .struct_size = sizeof(frit_host_cache),
    .get = cache_get,
    .put = cache_put,
};

/* Of the build of the plugin: its build id, or else its file as it is now. */
static const char *space_of(struct arena *arena, const struct plugin *plugin)
{
    char text[256];
    struct stat st;

    if (plugin->build_id[0])
        snprintf(text, sizeof(text), "%s %s %s", plugin->id, plugin->version, plugin->build_id);
    else if (plugin->path && !stat(plugin->path, &st))
        snprintf(text, sizeof(text), "%s %s %lld %lld.%09ld", plugin->id, plugin->version,
                 (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    else
        return NULL;
    return arena_text(arena, text, strlen(text));
}

/* ---- the root ---- */

static const void *root_get_interface(void *self, frit_str id)
{
    (void)self;
    if (str_is(id, FRIT_HOST_CORE))
        return &core_table;
    if (str_is(id, FRIT_HOST_OPTIONS))
        return &options_table;
    if (str_is(id, FRIT_HOST_EXEC))
        return &exec_table;
    if (str_is(id, FRIT_HOST_CACHE))
        return &cache_table;
    return str_is(id, FRIT_HOST_TRACE) ? &trace_table : NULL;
}

/* ---- begin and end ---- */

static struct service *make_service(const frit_plugin *plugin)
{
    struct service *service = calloc(1, sizeof(*service));

    if (!service)
        return NULL;
    service->plugin = plugin;
    service->root = (frit_host_root){
        .struct_size = sizeof(service->root), .self = service, .get_interface = root_get_interface};
    pthread_rwlock_init(&service->lock, NULL);
    service->next = services.first;
    services.first = service;
    return service;
}

/* One that an earlier instance of the plugin has left, or a new one. */
static struct service *take_service(const frit_plugin *plugin)
{
    struct service *service;

    pthread_mutex_lock(&services.lock);
    service = services.first;
    while (service && (service->is_used || service->plugin != plugin))
        service = service->next;
    if (!service)
        service = make_service(plugin);
    if (service)
        service->is_used = true;
    pthread_mutex_unlock(&services.lock);
    return service;
}

frit_status service_create(struct arena *arena, struct plugin *plugin,
                           const struct conf_plugin *section, const struct lent *lent,
                           struct service **out)
{
    struct service *service = take_service(plugin->root);
    frit_status status;

    if (!service)
        return FRIT_NO_HOST_MEMORY;
    pthread_rwlock_wrlock(&service->lock);
    if (strcmp(service->id, plugin->id) != 0) /* a thread of an earlier instance may read it */
        snprintf(service->id, sizeof(service->id), "%s", plugin->id);
    service->threads = count_threads(lent->threads);
    service->lent = *lent;
    service->space = space_of(arena, plugin);
    service->n_options = plugin->root->n_options;
    status = options_merge(arena, plugin, section, &service->options);
    pthread_rwlock_unlock(&service->lock);
    if (status)
        service_end(service);
    else
        *out = service;
    return status;
}

void service_end_tasks(const struct service *service)
{
    if (service && service->lent.jobs)
        job_queue_cancel_all(service->lent.jobs, service);
}

void service_end(struct service *service)
{
    if (!service)
        return;
    pthread_rwlock_wrlock(&service->lock);
    service->threads = 1;
    service->lent = (struct lent){0};
    service->space = NULL;
    service->n_options = 0;
    service->options = NULL;
    pthread_rwlock_unlock(&service->lock);
    pthread_mutex_lock(&services.lock);
    service->is_used = false;
    pthread_mutex_unlock(&services.lock);
}

const char *service_space(const struct service *service)
{
    return keeps(service) ? service->space : NULL;
}

const frit_host_root *service_root(const struct service *service)
{
    return &service->root;
}
