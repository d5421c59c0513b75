/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a transformer through the C API, from its first run until it is warm:
 *
 *   transformer [--layers N] [--dim N] [--heads N] [--batch N] [--tokens N] [--dtype f32|bf16]
 *               [--device NAME] [--steps N] [--patience SECONDS] [--quiet MILLISECONDS]
 *               [--set SECTION.KEY=VALUE]...
 *               [--train sgd|adam|adamw] [--json]
 *
 * Pre-norm blocks with causal attention; each step reads one sum.  With --train it is a step of
 * training, forward, backward and update of all weights, and the sum is the loss: the mean square
 * of the results.  A step is warm if neither it nor any later one had launches that went another
 * way while their program was compiled, or another number of launches that the driver had recorded
 * than the step before; --quiet, two seconds, has to pass, since drivers compile better code and
 * what a recording needs without a word.  The values of the weights follow from their indices, so
 * that peers/transformer_torch.py has the same ones.
 *
 * Needs nothing but libfrit: cc -O2 transformer.c $(pkg-config --cflags --libs frit) -lm */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frit/frit.h>
#include <frit/grad.h>
#include <frit/inspect.h>
#include <frit/train.h>

enum {
    MAX_LAYERS = 96,
    LAYER_TENSORS = 12,
    MAX_SETTINGS = 16,
    MAX_STEPS = 100000,
    QUIET_STEPS = 20, /* without waiting launches: it is warm */
};

/* ---- the command line ---- */

struct shape {
    int64_t layers, dim, heads, batch, tokens, steps, patience;
    int64_t quiet; /* milliseconds: many small steps are over before a driver has compiled */
    uint32_t dtype;
    const char *device;
    bool json;
    uint32_t optimizer; /* FRIT_SGD..; 0: no training */
    frit_setting settings[MAX_SETTINGS];
    uint64_t n_settings;
};

static void misused(const char *about)
{
    fprintf(stderr, "transformer: %s; see the top of its source\n", about);
    exit(2);
}

/* "SECTION.KEY=VALUE", where the key may have dots; written into. */
static void add_setting(struct shape *shape, char *text)
{
    char *value = strchr(text, '='), *key;

    if (!value || shape->n_settings == MAX_SETTINGS)
        misused("--set wants SECTION.KEY=VALUE");
    *value++ = 0;
    key = strchr(text, '.');
    if (strncmp(text, "plugin.", 7) == 0)
        key = strchr(text + 7, '.');
    if (!key)
        misused("--set wants SECTION.KEY=VALUE");
    *key++ = 0;
    shape->settings[shape->n_settings++] = (frit_setting){text, key, value};
}

static uint32_t optimizer_named(const char *name)
{
    static const char *const names[] = {
        [FRIT_SGD] = "sgd", [FRIT_ADAM] = "adam", [FRIT_ADAMW] = "adamw"};

    for (uint32_t i = FRIT_SGD; i <= FRIT_ADAMW; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    misused("--train is sgd, adam or adamw");
    return 0;
}

static void parse(struct shape *shape, int argc, char **argv)
{
    struct {
        const char *name;
        int64_t *value;
    } numbers[] = {{"--layers", &shape->layers},     {"--dim", &shape->dim},
                   {"--heads", &shape->heads},       {"--batch", &shape->batch},
                   {"--tokens", &shape->tokens},     {"--steps", &shape->steps},
                   {"--patience", &shape->patience}, {"--quiet", &shape->quiet}};

    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        bool known = false;

        if (strcmp(option, "--json") == 0) {
            shape->json = true;
            continue;
        }
        if (++i == argc)
            misused(option);
        for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]) && !known; n++) {
            known = strcmp(option, numbers[n].name) == 0;
            if (known)
                *numbers[n].value = strtoll(argv[i], NULL, 10);
            if (known && (*numbers[n].value < 1 || *numbers[n].value > MAX_STEPS))
                misused(option);
        }
        if (known)
            continue;
        if (strcmp(option, "--dtype") == 0)
            shape->dtype = frit_dtype_of_name(argv[i]);
        else if (strcmp(option, "--device") == 0)
            shape->device = argv[i];
        else if (strcmp(option, "--train") == 0)
            shape->optimizer = optimizer_named(argv[i]);
        else if (strcmp(option, "--set") == 0)
            add_setting(shape, argv[i]);
        else
            misused(option);
    }
    if (shape->dtype != FRIT_F32 && shape->dtype != FRIT_BF16)
        misused("--dtype is f32 or bf16");
    if (shape->layers > MAX_LAYERS || shape->dim % shape->heads)
        misused("too many layers, or a dim that the heads do not divide");
}

/* ---- values ---- */

/* Element i of the tensor `seed` is spread evenly over `width` around `middle`. */
static float value_at(uint64_t seed, uint64_t i, double middle, double width)
{
    uint32_t bits = (uint32_t)((i + seed * 7919) * 2654435761u);

    return (float)(middle + width * ((bits >> 8) / 16777216.0 - 0.5));
}

static uint16_t bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct model {
    const struct shape *shape;
    frit_device *device;
    uint64_t n_seeds;
    frit_tensor *x;
    frit_tensor *layer[MAX_LAYERS][LAYER_TENSORS];
    frit_optimizer *optimizer; /* of all of them, or NULL */
};

static frit_tensor *make(struct model *model, frit_dims dims, double middle, double width)
{
    uint64_t n = 1, seed = model->n_seeds++;
    bool is_half = model->shape->dtype == FRIT_BF16;
    frit_tensor *made;
    void *data;

    for (int64_t d = 0; d < dims.rank; d++)
        n *= (uint64_t)dims.dim[d];
    data = malloc(n * sizeof(float));
    for (uint64_t i = 0; data && i < n; i++) {
        float value = value_at(seed, i, middle, width);

        if (is_half)
            ((uint16_t *)data)[i] = bf16_of(value);
        else
            ((float *)data)[i] = value;
    }
    made = frit_from_host(model->device, model->shape->dtype, dims, data, n * (is_half ? 2 : 4));
    free(data);
    return made;
}

enum {
    NORM_1,
    SHIFT_1,
    QKV,
    QKV_BIAS,
    OUT,
    OUT_BIAS,
    NORM_2,
    SHIFT_2,
    UP,
    UP_BIAS,
    DOWN,
    DOWN_BIAS
};

static void make_layer(struct model *model, frit_tensor *w[LAYER_TENSORS])
{
    int64_t d = model->shape->dim;
    const struct {
        frit_dims dims;
        double middle, width;
    } rows[LAYER_TENSORS] = {
        [NORM_1] = {FRIT_SHAPE(d), 1, 0.2},
        [SHIFT_1] = {FRIT_SHAPE(d), 0, 0.2},
        [QKV] = {FRIT_SHAPE(d, 3 * d), 0, sqrt(12.0 / (double)d)},
        [QKV_BIAS] = {FRIT_SHAPE(3 * d), 0, 0.2},
        [OUT] = {FRIT_SHAPE(d, d), 0, sqrt(12.0 / (double)d)},
        [OUT_BIAS] = {FRIT_SHAPE(d), 0, 0.2},
        [NORM_2] = {FRIT_SHAPE(d), 1, 0.2},
        [SHIFT_2] = {FRIT_SHAPE(d), 0, 0.2},
        [UP] = {FRIT_SHAPE(d, 4 * d), 0, sqrt(12.0 / (double)d)},
        [UP_BIAS] = {FRIT_SHAPE(4 * d), 0, 0.2},
        [DOWN] = {FRIT_SHAPE(4 * d, d), 0, sqrt(3.0 / (double)d)},
        [DOWN_BIAS] = {FRIT_SHAPE(d), 0, 0.2},
    };

    for (int i = 0; i < LAYER_TENSORS; i++)
        w[i] = make(model, rows[i].dims, rows[i].middle, rows[i].width);
}

static void make_model(struct model *model)
{
    const struct shape *s = model->shape;

    frit_persistent_begin(model->device);
    model->x = make(model, FRIT_SHAPE(s->batch, s->tokens, s->dim), 0, 2);
    for (int64_t i = 0; i < s->layers; i++)
        make_layer(model, model->layer[i]);
    frit_persistent_end(model->device);
}

static frit_status make_optimizer(struct model *model, frit_err *err)
{
    const frit_optimizer_config config = frit_optimizer_config_of(model->shape->optimizer, 1e-4);

    if (!model->shape->optimizer)
        return FRIT_OK;
    return frit_optimizer_create(&config, model->layer[0],
                                 (uint64_t)model->shape->layers * LAYER_TENSORS, &model->optimizer,
                                 err);
}

static void release_model(struct model *model)
{
    frit_optimizer_destroy(model->optimizer);
    frit_release(model->x);
    for (int64_t i = 0; i < model->shape->layers; i++) {
        for (int k = 0; k < LAYER_TENSORS; k++)
            frit_release(model->layer[i][k]);
    }
}

/* ---- the step ---- */

/* Part `which` of q, k, v, with the heads before the tokens. */
static frit_tensor *heads_of(const struct shape *s, frit_tensor *qkv, int64_t which)
{
    frit_tensor *part = frit_slice(qkv, FRIT_SLICES({0, s->batch, 1}, {0, s->tokens, 1},
                                                    {which * s->dim, (which + 1) * s->dim, 1}));

    part = frit_reshape(part, FRIT_SHAPE(s->batch, s->tokens, s->heads, s->dim / s->heads));
    return frit_permute(part, FRIT_AXES(0, 2, 1, 3));
}

static frit_tensor *attend(const struct shape *s, frit_tensor *x, frit_tensor *const *w)
{
    frit_tensor *h = frit_layer_norm(x, w[NORM_1], w[SHIFT_1]);
    frit_tensor *qkv = frit_linear(h, w[QKV], w[QKV_BIAS]);

    h = frit_attention(heads_of(s, qkv, 0), heads_of(s, qkv, 1), heads_of(s, qkv, 2), NULL, NULL,
                       .causal = 1);
    h = frit_permute(h, FRIT_AXES(0, 2, 1, 3));
    h = frit_reshape(h, FRIT_SHAPE(s->batch, s->tokens, s->dim));
    return frit_add(x, frit_linear(h, w[OUT], w[OUT_BIAS]));
}

static frit_tensor *feed(frit_tensor *x, frit_tensor *const *w)
{
    frit_tensor *h = frit_layer_norm(x, w[NORM_2], w[SHIFT_2]);

    h = frit_gelu(frit_linear(h, w[UP], w[UP_BIAS]));
    return frit_add(x, frit_linear(h, w[DOWN], w[DOWN_BIAS]));
}

static frit_tensor *forward(const struct model *model)
{
    frit_tensor *x = model->x;

    for (int64_t i = 0; i < model->shape->layers; i++)
        x = feed(attend(model->shape, x, model->layer[i]), model->layer[i]);
    return frit_cast(x, FRIT_F32);
}

/* Forward, backward, and the update of all weights; the loss. */
static frit_tensor *train(struct model *model)
{
    const uint64_t n = (uint64_t)model->shape->layers * LAYER_TENSORS;
    frit_tensor **weights = model->layer[0], *x, *loss = NULL;
    frit_err err = {.struct_size = sizeof(err)};
    frit_status st = frit_grad_begin(model->device, &err);

    for (uint64_t i = 0; i < n && !st; i++)
        st = frit_grad_watch(weights[i], &err);
    if (!st) {
        x = forward(model);
        loss = frit_mean(frit_mul(x, x));
        st = frit_grad_backward(loss, &err);
    }
    if (!st)
        st = frit_optimizer_step(model->optimizer, weights, NULL, &err);
    frit_grad_end(model->device);
    if (st) {
        fprintf(stderr, "transformer: %s\n", err.text);
        exit(1);
    }
    return loss;
}

/* Runs a step and waits for its sum. */
static double step(struct model *model)
{
    frit_scope scope = frit_scope_begin(model->device);
    frit_tensor *sum = frit_keep(model->optimizer ? train(model) : frit_sum(forward(model)));
    float value = 0;

    frit_scope_end(scope);
    if (frit_read(sum, &value, sizeof(value), NULL)) {
        fprintf(stderr, "transformer: %s\n", frit_tensor_error(sum));
        exit(1);
    }
    frit_release(sum);
    return (double)value;
}

/* ---- measuring ---- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static frit_stats stats_of(const struct model *model)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(model->device, &stats);
    return stats;
}

struct outcome {
    double first_s, first_sum, sum;
    uint64_t first_launches;
    bool warm;             /* else patience ended first */
    int64_t cold_steps;    /* until it was warm */
    double cold_s;         /* from the beginning of the first */
    double longest_ms;     /* of the steps after the first, until it was warm */
    uint64_t cold_waiting; /* launches */
    uint64_t searches, programs, compiles;
    double warm_ms, least_ms;
    double host_ms; /* of the calling thread's processor, a warm step */
    double captured;
    double launches, bound, waiting, allocs, frees, new_searches, submits; /* per warm step */
};

/* Of the calling thread's processor. */
static double thread_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Steps until QUIET_STEPS in a row, and for so long, were alike and had nothing that waited for its
 * program. */
static void warm_up(struct model *model, struct outcome *out)
{
    const double patience = (double)model->shape->patience, quiet_ms = (double)model->shape->quiet;
    const frit_stats before = stats_of(model);
    frit_stats last = before;
    double begun = seconds(), ended = begun, at = begun, quiet_since = begun;
    uint64_t recorded = 0; /* launches of the last step */

    for (int64_t i = 0, quiet = 0; !out->warm && i < MAX_STEPS; i++) {
        const double step_begun = at;
        frit_stats now;
        bool alike;

        out->sum = step(model);
        at = seconds();
        now = stats_of(model);
        if (i == 0) {
            out->first_s = at - begun;
            out->first_sum = out->sum;
            out->first_launches = now.launches - before.launches;
        } else if ((at - step_begun) * 1e3 > out->longest_ms) {
            out->longest_ms = (at - step_begun) * 1e3;
        }
        alike = now.waiting == last.waiting &&
                now.captured_launches - last.captured_launches == recorded;
        recorded = now.captured_launches - last.captured_launches;
        last = now;
        quiet = alike ? quiet + 1 : 0;
        quiet_since = i && alike ? quiet_since : at;
        if (quiet == 0) {
            out->cold_steps = i + 1;
            ended = at;
        }
        out->warm = quiet >= QUIET_STEPS && (at - quiet_since) * 1e3 >= quiet_ms;
        if (at - begun > patience)
            break;
    }
    out->cold_s = ended - begun;
    out->cold_waiting = last.waiting - before.waiting;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static double median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void measure_warm(struct model *model, struct outcome *out)
{
    int64_t n = model->shape->steps;
    double *ms = malloc(2 * (size_t)n * sizeof(*ms)), *host = ms + n;
    frit_stats before = stats_of(model), after;

    if (!ms)
        exit(1);
    for (int64_t i = 0; i < n; i++) {
        double begun = seconds(), own = thread_seconds();

        out->sum = step(model);
        ms[i] = (seconds() - begun) * 1e3;
        host[i] = (thread_seconds() - own) * 1e3;
    }
    after = stats_of(model);
    out->warm_ms = median(ms, n);
    out->least_ms = ms[0];
    out->host_ms = median(host, n);
    out->launches = (double)(after.launches - before.launches) / (double)n;
    out->bound = (double)(after.bound_launches - before.bound_launches) / (double)n;
    out->captured = (double)(after.captured_launches - before.captured_launches) / (double)n;
    out->waiting = (double)(after.waiting - before.waiting) / (double)n;
    out->allocs = (double)(after.driver_allocs - before.driver_allocs) / (double)n;
    out->frees = (double)(after.driver_frees - before.driver_frees) / (double)n;
    out->new_searches = (double)(after.explorations - before.explorations) / (double)n;
    out->submits = (double)(after.submits - before.submits) / (double)n;
    out->searches = after.explorations;
    out->programs = after.programs;
    out->compiles = after.compiles;
    free(ms);
}

static void print_text(const struct model *model, const struct outcome *o)
{
    const struct shape *s = model->shape;

    printf("%s: %lld layers, d = %lld, %lld heads, B = %lld, T = %lld, %s; sum %.6g\n",
           frit_device_name(model->device), (long long)s->layers, (long long)s->dim,
           (long long)s->heads, (long long)s->batch, (long long)s->tokens,
           frit_dtype_name(s->dtype), o->sum);
    printf("  first result, %.6g, after %.3f s, %llu launches\n", o->first_sum, o->first_s,
           (unsigned long long)o->first_launches);
    printf(
        "  %s after %lld steps, %.3f s, %llu launches that waited for their program; the longest "
        "step but the first %.3f ms\n",
        o->warm ? "warm" : "NOT warm", (long long)o->cold_steps, o->cold_s,
        (unsigned long long)o->cold_waiting, o->longest_ms);
    printf("  %llu searches, %llu programs, %llu compiles in all\n",
           (unsigned long long)o->searches, (unsigned long long)o->programs,
           (unsigned long long)o->compiles);
    printf("  warm: %.3f ms a step (least %.3f), %.3f of them the calling thread's processor; per "
           "step %.4g launches, %.4g by bound plans, %.4g captured, %.4g waiting, %.4g "
           "submissions, %.4g driver allocations, %.4g frees, %.4g searches\n",
           o->warm_ms, o->least_ms, o->host_ms, o->launches, o->bound, o->captured, o->waiting,
           o->submits, o->allocs, o->frees, o->new_searches);
}

static void print_json(const struct model *model, const struct outcome *o)
{
    const struct shape *s = model->shape;

    printf("{\"device\":\"%s\",\"layers\":%lld,\"dim\":%lld,\"heads\":%lld,\"batch\":%lld,"
           "\"tokens\":%lld,\"dtype\":\"%s\",\"first_sum\":%.9g,\"sum\":%.9g,",
           frit_device_name(model->device), (long long)s->layers, (long long)s->dim,
           (long long)s->heads, (long long)s->batch, (long long)s->tokens,
           frit_dtype_name(s->dtype), o->first_sum, o->sum);
    printf("\"first_s\":%.6g,\"first_launches\":%llu,\"warm\":%s,\"cold_steps\":%lld,"
           "\"cold_s\":%.6g,\"longest_ms\":%.6g,\"cold_waiting\":%llu,\"searches\":%llu,"
           "\"programs\":%llu,\"compiles\":%llu,",
           o->first_s, (unsigned long long)o->first_launches, o->warm ? "true" : "false",
           (long long)o->cold_steps, o->cold_s, o->longest_ms, (unsigned long long)o->cold_waiting,
           (unsigned long long)o->searches, (unsigned long long)o->programs,
           (unsigned long long)o->compiles);
    printf("\"warm_ms\":%.6g,\"least_ms\":%.6g,\"host_ms\":%.6g,\"launches\":%.6g,\"bound\":%.6g,"
           "\"captured\":%.6g,\"waiting\":%.6g,"
           "\"submits\":%.6g,\"driver_allocs\":%.6g,\"driver_frees\":%.6g,\"new_searches\":%.6g}\n",
           o->warm_ms, o->least_ms, o->host_ms, o->launches, o->bound, o->captured, o->waiting,
           o->submits, o->allocs, o->frees, o->new_searches);
}

int main(int argc, char **argv)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct shape shape = {.layers = 12,
                          .dim = 768,
                          .heads = 12,
                          .batch = 1,
                          .tokens = 128,
                          .steps = 30,
                          .patience = 120,
                          .quiet = 2000,
                          .dtype = FRIT_F32,
                          .settings = {{"fusion", "store", "none"}, {"frit", "artefacts", "none"}},
                          .n_settings = 2};
    static struct model model;
    struct outcome outcome = {0};
    frit_host_params params = {.struct_size = sizeof(params)};
    frit_host *host = NULL;

    parse(&shape, argc, argv);
    params.settings = shape.settings;
    params.n_settings = shape.n_settings;
    model.shape = &shape;
    if (frit_host_open(&params, &host, &err) ||
        frit_device_open(host, shape.device, &model.device, &err)) {
        fprintf(stderr, "transformer: %s\n", err.text);
        return 1;
    }
    make_model(&model);
    if (frit_sync(model.device, &err) || make_optimizer(&model, &err)) {
        fprintf(stderr, "transformer: %s\n", err.text);
        return 1;
    }
    warm_up(&model, &outcome);
    measure_warm(&model, &outcome);
    if (shape.json)
        print_json(&model, &outcome);
    else
        print_text(&model, &outcome);
    release_model(&model);
    frit_device_close(model.device);
    frit_host_close(host);
    return 0;
}
