/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a network of tools/models from random weights on the 1,297 training images, and tests it
 * with the 500 test images, which nothing here was chosen by: rates, epochs and shifts were, with
 * --validate.
 *
 *   frit-train-digits [OPTION...] [ROOT]     see --help
 *
 * Equal seeds give equal bits on the same device with as many threads and replicas. */
#include "term.h"
#include "train/checkpoint.h"
#include "train/curve.h"
#include "train/options.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 60, WARM_UP = 10 /* per cent of the steps */, PRINTED = 10 };
#define RATE         3e-3
#define WEIGHT_DECAY 0.1
#define SHIFT        0.25 /* pixels */

struct session {
    struct options options;
    frit_host *host;
    frit_device *devices[MAX_REPLICAS];
    uint32_t n_devices;
    struct data data;
    struct run run;
    struct trainer trainer;
    frit_safetensors *resumed;
    struct progress progress;
    uint64_t first;    /* the step that this process began after */
    double *seconds;   /* a step in each epoch, on average */
    uint64_t n_epochs; /* of them */
    double begun;
    frit_err err;
};

/* Of a job's processes the first one reports, and keeps the run. */
static int is_first(const struct session *s)
{
    return s->trainer.first == 0;
}

/* ---- opening ---- */

static frit_status open_device(struct session *s, const char *name)
{
    const frit_status st = frit_device_open(s->host, name, &s->devices[s->n_devices], &s->err);

    s->n_devices += !st;
    return st;
}

/* The names of a list; their number. */
static uint32_t split(char *list, const char *names[MAX_REPLICAS])
{
    uint32_t n = 0;
    char *save = NULL;

    for (char *name = strtok_r(list, ", ", &save); name && n < MAX_REPLICAS;
         name = strtok_r(NULL, ", ", &save))
        names[n++] = name;
    return n;
}

/* One device; of the list with replicas every one, and in a process of a job the one that its
 * number gives. */
static frit_status open_devices(struct session *s)
{
    frit_job_desc job = {.struct_size = sizeof(job)};
    const char *names[MAX_REPLICAS];
    char list[1024];
    uint32_t n;
    frit_status st = frit_job_info(s->host, &job, &s->err);

    if (!st && BATCH % job.size) {
        snprintf(s->err.text, sizeof(s->err.text),
                 "batches of %d cannot be split into as many parts as there are processes, %u",
                 BATCH, job.size);
        st = FRIT_INVALID;
    }
    if (st)
        return st;
    if (!s->options.device || (s->options.replicas < 2 && job.size == 1))
        return open_device(s, s->options.device);
    snprintf(list, sizeof(list), "%s", s->options.device);
    n = split(list, names);
    if (job.size > 1)
        return open_device(s, n ? names[job.rank % n] : NULL);
    for (uint32_t i = 0; i < n && !st; i++)
        st = open_device(s, names[i]);
    return st;
}

static frit_status about_run(struct session *s)
{
    const struct options *options = &s->options;
    frit_status st;

    s->run.network = network_named(options->model ? options->model : "cnn");
    s->run.seed = options->seed ? options->seed : 1;
    s->run.epochs = options->epochs ? options->epochs : EPOCHS;
    s->run.validate = options->validate;
    if (!options->resume)
        return FRIT_OK;
    st = frit_load_safetensors(options->resume, &s->resumed, &s->err);
    return st ? st : checkpoint_about(s->resumed, &s->run, &s->err);
}

static frit_status no_memory(struct session *s)
{
    snprintf(s->err.text, sizeof(s->err.text), "no memory");
    return FRIT_NO_HOST_MEMORY;
}

static frit_status session_open(struct session *s)
{
    static const frit_setting settings[] = {{"tune", "deterministic", "yes"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};
    frit_optimizer_config config = frit_adamw_config(RATE);
    frit_status st = frit_host_open(&params, &s->host, &s->err);

    config.weight_decay = WEIGHT_DECAY;
    if (!st)
        st = open_devices(s);
    if (!st)
        st = about_run(s);
    if (!st)
        st = data_load(&s->data, s->devices[0], s->options.root ? s->options.root : ".",
                       s->run.validate ? s->run.seed : 0, &s->err);
    if (!st && !run_init(&s->run, s->data.train.n))
        st = no_memory(s);
    if (!st)
        st = trainer_open(&s->trainer, s->host, s->run.network, s->devices, s->n_devices,
                          s->options.replicas ? (uint32_t)s->options.replicas : 1, s->run.seed,
                          &config, &s->err);
    if (!st && s->resumed)
        st = checkpoint_restore(s->resumed, &s->run, &s->trainer, &s->err);
    s->seconds = calloc(s->run.epochs, sizeof(*s->seconds));
    return st || s->seconds ? st : no_memory(s);
}

static void session_close(struct session *s)
{
    trainer_close(&s->trainer);
    frit_safetensors_free(s->resumed);
    for (uint32_t i = 0; i < s->n_devices; i++)
        frit_device_close(s->devices[i]);
    frit_host_close(s->host);
    run_fini(&s->run);
    free(s->seconds);
}

/* ---- training ---- */

/* Rises in a line, then falls as half a wave of the cosine. */
static double rate_at(uint64_t step, uint64_t steps)
{
    const double warm = fmax(1, (double)steps * WARM_UP / 100), at = (double)step;

    if (at < warm)
        return RATE * (at + 1) / (warm + 1);
    return RATE * 0.5 * (1 + cos(acos(-1) * (at - warm) / ((double)steps - warm)));
}

static frit_status train_step(struct session *s, const uint32_t *order, frit_tensor **loss)
{
    struct run *run = &s->run;
    const struct draw draw = {.seed = run->seed, .step = run->step, .shift = SHIFT};
    float pixels[BATCH * PIXELS];
    int32_t labels[BATCH];

    data_batch(&s->data.train, order + run->step % run->steps_an_epoch * BATCH, BATCH, &draw,
               pixels, labels);
    trainer_set_rate(&s->trainer, rate_at(run->step, run->epochs * run->steps_an_epoch));
    return trainer_step(&s->trainer, pixels, labels, BATCH, loss, &s->err);
}

/* The steps of an epoch that are left, and not beyond `end`.  Losses are read at the end, so that
 * no step waits. */
static frit_status train_epoch(struct session *s, uint64_t end)
{
    struct run *run = &s->run;
    const uint64_t first = run->step, epoch = first / run->steps_an_epoch;
    const uint64_t next = (epoch + 1) * run->steps_an_epoch, last = next < end ? next : end;
    frit_tensor *losses[MAX_IMAGES / BATCH] = {0};
    frit_read_item items[MAX_IMAGES / BATCH];
    uint32_t order[MAX_IMAGES];
    const double start = term_clock();
    frit_status st = FRIT_OK;

    data_order(order, s->data.train.n, run->seed, epoch);
    for (; run->step < last && !st; run->step += !st) {
        st = train_step(s, order, &losses[run->step - first]);
        if (is_first(s))
            progress_step(&s->progress, run->step - s->first);
    }
    if (!st)
        st = trainer_sync(&s->trainer, &s->err);
    for (uint64_t i = 0; i < last - first; i++)
        items[i] = (frit_read_item){
            .tensor = losses[i], .data = &run->losses[first + i], .bytes = sizeof(*run->losses)};
    if (!st)
        st = frit_read_many(items, last - first, &s->err);
    for (uint64_t i = 0; i < last - first; i++)
        frit_release(losses[i]);
    s->seconds[s->n_epochs++] = (term_clock() - start) / (double)(last - first);
    return st;
}

/* The mean loss of an epoch. */
static double loss_of(const struct run *run, uint64_t epoch)
{
    double sum = 0;

    for (uint64_t i = 0; i < run->steps_an_epoch; i++)
        sum += (double)run->losses[epoch * run->steps_an_epoch + i];
    return sum / (double)run->steps_an_epoch;
}

static void print_epoch(struct session *s, uint64_t epoch)
{
    const uint64_t each = (s->run.epochs + PRINTED - 1) / PRINTED;

    if (!is_first(s) || ((epoch + 1) % each && epoch + 1 != s->run.epochs))
        return;
    progress_hide(&s->progress);
    printf("epoch %3" PRIu64 " of %" PRIu64 ": loss %.4f, %.0f of %u right\n", epoch + 1,
           s->run.epochs, loss_of(&s->run, epoch), (double)s->run.right[epoch], s->data.test.n);
    fflush(stdout);
}

static frit_status train(struct session *s)
{
    struct run *run = &s->run;
    const uint64_t steps = run->epochs * run->steps_an_epoch;
    const uint64_t end = s->options.stop && s->options.stop < steps ? s->options.stop : steps;
    frit_status st = FRIT_OK;

    s->first = run->step;
    if (is_first(s))
        progress_begin(&s->progress, "train", end - run->step);
    while (run->step < end && !st) {
        const uint64_t epoch = run->step / run->steps_an_epoch;
        uint32_t right = 0;

        st = train_epoch(s, end);
        if (!st && is_first(s) && run->step % run->steps_an_epoch == 0) {
            st = trainer_test(&s->trainer, &s->data.test, &right, &s->err);
            run->right[epoch] = (float)right;
            if (!st)
                print_epoch(s, epoch);
        }
        if (!st && s->options.save && is_first(s))
            st = checkpoint_save(run, &s->trainer, s->options.save, &s->err);
    }
    if (is_first(s))
        progress_hide(&s->progress);
    return st;
}

/* ---- results ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_result(struct session *s)
{
    const struct run *run = &s->run;
    const uint64_t epochs = run->step / run->steps_an_epoch;
    char step[16], total[16];
    double median;

    if (epochs)
        printf("%.0f of %u right after %" PRIu64 " epochs", (double)run->right[epochs - 1],
               s->data.test.n, epochs);
    else
        printf("%" PRIu64 " steps", run->step);
    printf(", %s", term_seconds(term_clock() - s->begun, total));
    if (s->n_epochs) {
        qsort(s->seconds, s->n_epochs, sizeof(*s->seconds), by_size);
        median = s->seconds[s->n_epochs / 2];
        printf("; %s a step, %.0f images/s", term_seconds(median, step), BATCH / median);
    }
    putchar('\n');
}

static int draw(struct session *s)
{
    const struct run *run = &s->run;
    const uint32_t n = (uint32_t)(run->step / run->steps_an_epoch);
    double *values = calloc(2 * (size_t)n + 1, sizeof(*values));
    struct curve curves[] = {
        {.title = "loss (training, mean of the epoch)", .values = values, .n = n, .is_log = 1},
        {.title = run->validate ? "accuracy (validation)" : "accuracy (test)", .n = n}};
    char title[128];
    int good = values != NULL;

    for (uint32_t i = 0; i < n && good; i++) {
        values[i] = loss_of(run, i);
        values[n + i] = 100.0 * (double)run->right[i] / s->data.test.n;
    }
    curves[0].unit = "";
    curves[1].unit = "%";
    curves[1].values = values + n;
    curve_fit(&curves[0]);
    curve_fit(&curves[1]);
    curves[1].high = 100;
    curves_print(curves, 2, stdout);
    snprintf(title, sizeof(title), "digits-%s, seed %" PRIu64 ", on %s", run->network->name,
             run->seed, frit_device_name(s->devices[0]));
    if (good && s->options.svg && !curves_write_svg(curves, 2, title, s->options.svg)) {
        fprintf(stderr, "frit-train-digits: %s: %s\n", s->options.svg, strerror(errno));
        good = 0;
    }
    free(values);
    return good;
}

static void print_head(const struct session *s)
{
    printf("digits-%s, %" PRIu64 " weights, on", s->run.network->name,
           network_size(s->run.network));
    for (uint32_t i = 0; i < s->n_devices; i++)
        printf("%s %s", i ? "," : "", frit_device_name(s->devices[i]));
    if (s->trainer.n_replicas > 1)
        printf(" in %u replicas", s->trainer.n_replicas);
    printf(": %u images, %" PRIu64 " epochs of %" PRIu64 " steps, seed %" PRIu64 "\n",
           s->data.train.n, s->run.epochs, s->run.steps_an_epoch, s->run.seed);
    if (s->run.step)
        printf("goes on after step %" PRIu64 "\n", s->run.step);
    fflush(stdout);
}

static int run_session(struct session *s)
{
    frit_status st = session_open(s);

    if (!st) {
        if (is_first(s))
            print_head(s);
        s->begun = term_clock();
        st = train(s);
    }
    if (st)
        fprintf(stderr, "frit-train-digits: %s\n", s->err.text);
    if (st || !is_first(s))
        return st != FRIT_OK;
    if (!draw(s))
        return 1;
    print_result(s);
    return 0;
}

int main(int argc, char **argv)
{
    struct session *s = calloc(1, sizeof(*s));
    int status = 1;

    if (!s) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    s->err.struct_size = sizeof(s->err);
    if (!options_parse(&s->options, argc, argv)) {
        status = 2;
    } else if (s->options.help) {
        options_help();
        status = 0;
    } else {
        status = run_session(s);
        session_close(s);
    }
    free(s);
    return status;
}
