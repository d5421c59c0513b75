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

enum event_kind { EVENT_SPAN, EVENT_COUNTER, EVENT_TRACK };

/* Of a process in the viewer. */
enum { TRACKS_THREADS = 1, TRACKS_DEVICES = 2 };

struct event {
    enum event_kind kind;
    uint32_t process;    /* TRACKS_* */
    uint32_t track;      /* thread, or number of a device's track */
    uint64_t start, end; /* of a span; a counter has a start */
    double value;        /* of a counter */
    char area[TIMELINE_AREA];
    char name[TIMELINE_NAME];
};

enum { OFF, CHANGING, ON };

static struct {
    atomic_uint mode;
    atomic_uint writers;
    atomic_uint_least64_t taken; /* slots requested */
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

static void record(const struct event *event, const char *area, frit_str name)
{
    uint64_t slot;

    atomic_fetch_add(&state.writers, 1);
    if (atomic_load(&state.mode) == ON) {
        slot = atomic_fetch_add(&state.taken, 1);
        if (slot < state.max_events) {
            struct event *to = &state.events[slot];

            *to = *event;
            if (!to->process) {
                to->process = TRACKS_THREADS;
                to->track = (uint32_t)gettid();
            }
            cut(str_of(area), to->area, sizeof(to->area));
            cut(name, to->name, sizeof(to->name));
        }
    }
    atomic_fetch_sub(&state.writers, 1);
}

bool timeline_is_on(void)
{
    return atomic_load_explicit(&state.mode, memory_order_relaxed) == ON;
}

uint64_t timeline_begin(void)
{
    return timeline_is_on() ? now_ns() : 0;
}

void timeline_end(uint64_t begun, const char *area, frit_str name)
{
    if (begun)
        record(&(struct event){.start = begun, .end = now_ns()}, area, name);
}

void timeline_span(uint32_t track, uint64_t start, uint64_t end, const char *area, frit_str name)
{
    record(&(struct event){.process = TRACKS_DEVICES, .track = track, .start = start, .end = end},
           area, name);
}

void timeline_track(uint32_t track, frit_str name)
{
    record(&(struct event){.kind = EVENT_TRACK, .process = TRACKS_DEVICES, .track = track}, "",
           name);
}

void timeline_counter(const char *area, frit_str name, double value)
{
    if (timeline_is_on())
        record(&(struct event){.kind = EVENT_COUNTER, .start = now_ns(), .value = value}, area,
               name);
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

/* Phase, process and track, then the time and what else a span or counter has. */
static void print_event(struct str *out, const struct event *event)
{
    static const char *const phases[] = {
        [EVENT_SPAN] = "X", [EVENT_COUNTER] = "C", [EVENT_TRACK] = "M"};
    uint64_t origin = event->start < state.origin ? event->start : state.origin;

    str_addf(out, "{\"name\":");
    print_text(out, event->kind == EVENT_TRACK ? "thread_name" : event->name);
    str_addf(out, ",\"cat\":");
    print_text(out, event->area);
    str_addf(out, ",\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, phases[event->kind],
             event->process, event->track);
    if (event->kind == EVENT_TRACK) {
        str_addf(out, ",\"args\":{\"name\":");
        print_text(out, event->name);
        str_addf(out, "}}");
        return;
    }
    print_time(out, "ts", event->start - origin);
    if (event->kind == EVENT_SPAN)
        print_time(out, "dur", event->end > event->start ? event->end - event->start : 0);
    if (event->kind == EVENT_COUNTER) {
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
