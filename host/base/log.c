/* SPDX-License-Identifier: Apache-2.0 */
/* Readers take the configuration under a lock that is held for a few compares; a message that is
 * not wanted at any topic is refused by one atomic load before. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

enum { MAX_TOPICS = 16, TOPIC_BYTES = 24 };

struct log_config {
    uint32_t level;
    uint32_t n_topics;
    struct {
        char name[TOPIC_BYTES];
        uint32_t level;
    } topic[MAX_TOPICS];
};

static struct {
    pthread_mutex_t lock;
    log_sink sink;
    void *ctx;
    struct log_config config;
    atomic_uint most; /* the most talkative level of any topic */
} state = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .config = {.level = FRIT_LOG_WARN}, .most = FRIT_LOG_WARN};

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};

static bool level_parse(const char *text, size_t length, uint32_t *out)
{
    for (uint32_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strlen(level_names[i]) == length && memcmp(level_names[i], text, length) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static frit_status parse(const char *text, struct log_config *out, frit_err *err)
{
    *out = (struct log_config){.level = FRIT_LOG_WARN};
    while (*text) {
        size_t length = strcspn(text, ",");
        const char *equals = memchr(text, '=', length);
        const char *word = equals ? equals + 1 : text;
        size_t topic_length = equals ? (size_t)(equals - text) : 0;
        uint32_t level;

        if (!level_parse(word, length - (size_t)(word - text), &level))
            return fail(err, FRIT_INVALID,
                        "'%.*s' is not a level; allowed: off error warn info debug trace",
                        (int)(length - (size_t)(word - text)), word);
        if (!equals) {
            out->level = level;
        } else {
            if (topic_length == 0 || topic_length >= TOPIC_BYTES || out->n_topics == MAX_TOPICS)
                return fail(err, FRIT_INVALID, "topic '%.*s' is empty, too long, or one too many",
                            (int)topic_length, text);
            memcpy(out->topic[out->n_topics].name, text, topic_length);
            out->topic[out->n_topics++].level = level;
        }
        text += length + (text[length] == ',');
        text += strspn(text, " ");
    }
    return FRIT_OK;
}

frit_status log_check(const char *text, frit_err *err)
{
    struct log_config config;

    return parse(text, &config, err);
}

frit_status log_configure(const char *text, frit_err *err)
{
    struct log_config config;
    uint32_t most;

    TRY(parse(text, &config, err));
    most = config.level;
    for (uint32_t i = 0; i < config.n_topics; i++)
        most = config.topic[i].level > most ? config.topic[i].level : most;
    pthread_mutex_lock(&state.lock);
    state.config = config;
    atomic_store(&state.most, most);
    pthread_mutex_unlock(&state.lock);
    return FRIT_OK;
}

void log_set_sink(log_sink sink, void *ctx)
{
    pthread_mutex_lock(&state.lock);
    state.sink = sink;
    state.ctx = ctx;
    pthread_mutex_unlock(&state.lock);
}

bool log_enabled(uint32_t level, const char *topic)
{
    uint32_t wanted;

    if (level > atomic_load_explicit(&state.most, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&state.lock);
    wanted = state.config.level;
    for (uint32_t i = 0; i < state.config.n_topics; i++) {
        if (strcmp(state.config.topic[i].name, topic) == 0)
            wanted = state.config.topic[i].level;
    }
    pthread_mutex_unlock(&state.lock);
    return level <= wanted;
}

void log_write(uint32_t level, const char *topic, const char *format, ...)
{
    char text[1024];
    log_sink sink;
    void *ctx;
    va_list args;

    if (!log_enabled(level, topic))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&state.lock);
    sink = state.sink;
    ctx = state.ctx;
    pthread_mutex_unlock(&state.lock);
    if (sink)
        sink(ctx, level, topic, text);
    else
        fprintf(stderr, "frit %s %s: %s\n",
                level_names[level <= FRIT_LOG_TRACE ? level : FRIT_LOG_TRACE], topic, text);
}
