/* SPDX-License-Identifier: Apache-2.0 */
/* The events lie in one array that is there while recording is on.  A writer enters (`writers`),
 * then looks whether it is on: whoever stops turns it off, then waits until nobody is inside, so
 * that the array has no writers when it is printed and freed. */
#include "base/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"

struct event {
    uint64_t start, end; /* counters: end 0 */
    double value;
    uint32_t thread;
    char room[TIMELINE_ROOM];
    char name[TIMELINE_NAME];
};

enum { OFF, CHANGING, ON };

static struct {
    atomic_uint mode;
    atomic_uint writers;
    atomic_uint_least64_t taken; /* slots asked for */
    uint32_t max_events;
    uint64_t origin; /* when it was started */
    struct event *events;
} state;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

frit_status timeline_start(uint32_t max_events, frit_err *err)
{
    unsigned mode = OFF;
    struct event *events = calloc(max_events, sizeof(*events));

    if (!events)
        return fail_memory(err, max_events * sizeof(*events));
    if (!atomic_compare_exchange_strong(&state.mode, &mode, CHANGING)) {
        free(events);
        return fail(err, FRIT_BUSY, "a timeline is being recorded; end that one first");
    }
    state.events = events;
    state.max_events = max_events;
    state.origin = now_ns();
    atomic_store(&state.taken, 0);
    atomic_store(&state.mode, ON);
    return FRIT_OK;
}

/* ---- recording ---- */

static void cut(frit_str text, char *out, size_t size)
{
    size_t length = !text.ptr ? 0 : text.len < size ? (size_t)text.len : size - 1;

    if (length)
        memcpy(out, text.ptr, length);
    out[length] = '\0';
}

static void record(const struct event *event, const char *room, frit_str name)
{
    uint64_t slot;

    atomic_fetch_add(&state.writers, 1);
    if (atomic_load(&state.mode) == ON) {
        slot = atomic_fetch_add(&state.taken, 1);
        if (slot < state.max_events) {
            struct event *to = &state.events[slot];

            *to = *event;
            to->thread = (uint32_t)gettid();
            cut(str_of(room), to->room, sizeof(to->room));
            cut(name, to->name, sizeof(to->name));
        }
    }
    atomic_fetch_sub(&state.writers, 1);
}

uint64_t timeline_begin(void)
{
    return atomic_load_explicit(&state.mode, memory_order_relaxed) == ON ? now_ns() : 0;
}

void timeline_end(uint64_t begun, const char *room, frit_str name)
{
    if (begun)
        record(&(struct event){.start = begun, .end = now_ns()}, room, name);
}

void timeline_counter(const char *room, frit_str name, double value)
{
    if (atomic_load_explicit(&state.mode, memory_order_relaxed) == ON)
        record(&(struct event){.start = now_ns(), .value = value}, room, name);
}

/* ---- printing ---- */

static void print_text(struct str *out, const char *text)
{
    str_addf(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            str_addf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
            str_addf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            str_add(out, text, 1);
    }
    str_addf(out, "\"");
}

/* The decimal point is one in every locale; what is not finite has no number in JSON. */
static void print_value(struct str *out, double value)
{
    char text[40];

    if (!isfinite(value)) {
        str_addf(out, "null");
        return;
    }
    snprintf(text, sizeof(text), "%.17g", value);
    for (char *c = text; *c; c++) {
        if (!strchr("0123456789+-e", *c))
            *c = '.';
    }
    str_addf(out, "%s", text);
}

/* Viewers count in microseconds. */
static void print_time(struct str *out, const char *key, uint64_t ns)
{
    str_addf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static void print_event(struct str *out, const struct event *event)
{
    uint64_t origin = event->start < state.origin ? event->start : state.origin;

    str_addf(out, "{\"name\":");
    print_text(out, event->name);
    str_addf(out, ",\"cat\":");
    print_text(out, event->room);
    str_addf(out, ",\"ph\":\"%s\",\"pid\":1,\"tid\":%" PRIu32, event->end ? "X" : "C",
             event->thread);
    print_time(out, "ts", event->start - origin);
    if (event->end)
        print_time(out, "dur", event->end - event->start);
    if (!event->end) {
        str_addf(out, ",\"args\":{\"value\":");
        print_value(out, event->value);
        str_addf(out, "}");
    }
    str_addf(out, "}");
}

static void print(struct str *out)
{
    uint64_t taken = atomic_load(&state.taken);
    uint64_t n = taken < state.max_events ? taken : state.max_events;

    str_addf(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"lost\":%" PRIu64 "},", taken - n);
    str_addf(out, "\"traceEvents\":[\n");
    for (uint64_t i = 0; i < n; i++) {
        print_event(out, &state.events[i]);
        str_addf(out, i + 1 < n ? ",\n" : "\n");
    }
    str_addf(out, "]}\n");
}

void timeline_stop(struct str *out)
{
    unsigned mode = ON;

    if (!atomic_compare_exchange_strong(&state.mode, &mode, CHANGING))
        return;
    while (atomic_load(&state.writers))
        sched_yield();
    if (out)
        print(out);
    free(state.events);
    state.events = NULL;
    atomic_store(&state.mode, OFF);
}
