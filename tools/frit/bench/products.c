/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `frit bench DEVICE` whose work is multiplying: floating-point operations per second. */
#include "bench/products.h"

#include <string.h>

#include "bench/bench.h"
#include "bench/device.h"
#include "invocation.h"

enum { OPERANDS = 5, MAX_ROUNDS = 64, Q4_BLOCK = 32 };

/* Devices that are programs run no larger rows, and nothing does with --quick; processors run no
 * huge ones. */
static const double small_flops = 2e8, huge_flops = 5e10;

struct product {
    const char *name;
    const char *what;
    double flops;
    uint32_t dtype;           /* of the operands */
    frit_dims dims[OPERANDS]; /* rank 0: there are no more */
    frit_tensor *(*run)(frit_tensor *const *in);
};

static frit_tensor *matmul(frit_tensor *const *in)
{
    return frit_matmul(in[0], in[1]);
}

static frit_tensor *matmul_turned(frit_tensor *const *in)
{
    frit_tensor *turned = frit_permute(in[1], FRIT_AXES(1, 0));

    return frit_matmul(in[0], frit_take(turned));
}

static frit_tensor *matmul_q4(frit_tensor *const *in)
{
    frit_tensor *w = frit_dequantize(in[1], in[2], NULL, .block = {2, {Q4_BLOCK, 1}});

    return frit_matmul(in[0], frit_take(w));
}

static frit_tensor *matmul_q4_turned(frit_tensor *const *in)
{
    frit_tensor *w = frit_dequantize(in[1], in[2], NULL, .block = {2, {1, Q4_BLOCK}});

    w = frit_permute(frit_take(w), FRIT_AXES(1, 0));
    return frit_matmul(in[0], frit_take(w));
}

static frit_tensor *matmul_bias_gelu(frit_tensor *const *in)
{
    frit_tensor *t = frit_matmul(in[0], in[1]);

    t = frit_add(frit_take(t), in[2]);
    return frit_gelu(frit_take(t));
}

static frit_tensor *conv3x3(frit_tensor *const *in)
{
    frit_tensor *t = frit_conv(in[0], in[1], in[2], .padding = {1, 1});

    return frit_relu(frit_take(t));
}

static frit_tensor *conv1x1(frit_tensor *const *in)
{
    return frit_conv(in[0], in[1], in[2]);
}

static frit_tensor *conv7x7(frit_tensor *const *in)
{
    frit_tensor *t = frit_conv(in[0], in[1], in[2], .padding = {3, 3}, .stride = {2, 2});

    return frit_relu(frit_take(t));
}

static frit_tensor *depthwise(frit_tensor *const *in)
{
    return frit_conv(in[0], in[1], in[2], .padding = {1, 1}, .groups = 128);
}

/* Two layers with a hidden one between. */
static frit_tensor *mlp(frit_tensor *const *in)
{
    frit_tensor *t = frit_matmul(in[0], in[1]);

    t = frit_add(frit_take(t), in[2]);
    t = frit_relu(frit_take(t));
    t = frit_matmul(frit_take(t), in[3]);
    return frit_add(frit_take(t), in[4]);
}

#define SQUARE(n)    \
    {                \
        {2, {n, n}}, \
        {            \
            2,       \
            {        \
                n, n \
            }        \
        }            \
    }
#define CUBE(n) (2.0 * (n) * (n) * (n))

static const struct product products[] = {
    {"matmul-256", "256^3 f32", CUBE(256), FRIT_F32, SQUARE(256), matmul},
    {"matmul-512", "512^3 f32", CUBE(512), FRIT_F32, SQUARE(512), matmul},
    {"matmul-1024", "1024^3 f32", CUBE(1024), FRIT_F32, SQUARE(1024), matmul},
    {"matmul-2048", "2048^3 f32", CUBE(2048), FRIT_F32, SQUARE(2048), matmul},
    {"matmul-bf16", "1024^3 bf16", CUBE(1024), FRIT_BF16, SQUARE(1024), matmul},
    {"matmul-bf16-8192", "8192^3 bf16", CUBE(8192.0), FRIT_BF16, SQUARE(8192), matmul},
    {"matmul-bias-gelu-bf16",
     "8192 x 768 x 3072 bf16",
     2.0 * 8192 * 768 * 3072,
     FRIT_BF16,
     {{2, {8192, 768}}, {2, {768, 3072}}, {1, {3072}}},
     matmul_bias_gelu},
    {"matmul-tall",
     "4096 x 256 x 256 f32",
     2.0 * 4096 * 256 * 256,
     FRIT_F32,
     {{2, {4096, 256}}, {2, {256, 256}}},
     matmul},
    {"matmul-turned", "1024^3 f32, the second one transposed", CUBE(1024), FRIT_F32, SQUARE(1024),
     matmul_turned},
    {"gemv",
     "4096 x 4096 f32 times a column",
     2.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {4096, 4096}}, {2, {4096, 1}}},
     matmul},
    {"skinny-8",
     "8 rows times 4096 x 4096 f32",
     16.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {8, 4096}}, {2, {4096, 4096}}},
     matmul},
    {"skinny-8-turned",
     "the same, transposed in memory",
     16.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {8, 4096}}, {2, {4096, 4096}}},
     matmul_turned},
    {"skinny-8-bf16",
     "8 rows times 4096 x 4096 bf16",
     16.0 * 4096 * 4096,
     FRIT_BF16,
     {{2, {8, 4096}}, {2, {4096, 4096}}},
     matmul},
    {"skinny-1",
     "1 row times 4096 x 4096 f32",
     2.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {1, 4096}}, {2, {4096, 4096}}},
     matmul},
    {"skinny-1-turned",
     "the same, transposed in memory",
     2.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {1, 4096}}, {2, {4096, 4096}}},
     matmul_turned},
    {"skinny-32",
     "32 rows times 4096 x 4096 f32",
     64.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {32, 4096}}, {2, {4096, 4096}}},
     matmul},
    {"q4-1",
     "1 row times 4096 x 4096 q4 in blocks of 32 with f32 scales: 0.3125 bytes an operation",
     2.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {1, 4096}}, {2, {4096, 4096}}, {2, {128, 4096}}},
     matmul_q4},
    {"q4-1-turned",
     "the same, transposed in memory",
     2.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {1, 4096}}, {2, {4096, 4096}}, {2, {4096, 128}}},
     matmul_q4_turned},
    {"q4-32",
     "32 rows times 4096 x 4096 q4",
     64.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {32, 4096}}, {2, {4096, 4096}}, {2, {128, 4096}}},
     matmul_q4},
    {"q4-32-turned",
     "the same, transposed in memory",
     64.0 * 4096 * 4096,
     FRIT_F32,
     {{2, {32, 4096}}, {2, {4096, 4096}}, {2, {4096, 128}}},
     matmul_q4_turned},
    {"batched",
     "64 times 128 x 64 x 128 f32",
     128.0 * 128 * 128 * 64,
     FRIT_F32,
     {{3, {64, 128, 64}}, {3, {64, 64, 128}}},
     matmul},
    {"matmul-bias-gelu",
     "256^3 f32",
     CUBE(256),
     FRIT_F32,
     {{2, {256, 256}}, {2, {256, 256}}, {1, {256}}},
     matmul_bias_gelu},
    {"conv3x3",
     "64 to 64 channels, 56 x 56, 8 images f32, bias, relu",
     16.0 * 64 * 56 * 56 * 64 * 9,
     FRIT_F32,
     {{4, {8, 64, 56, 56}}, {4, {64, 64, 3, 3}}, {1, {64}}},
     conv3x3},
    {"conv3x3-14",
     "256 to 256 channels, 14 x 14, 8 images f32, bias, relu",
     16.0 * 256 * 14 * 14 * 256 * 9,
     FRIT_F32,
     {{4, {8, 256, 14, 14}}, {4, {256, 256, 3, 3}}, {1, {256}}},
     conv3x3},
    {"conv1x1",
     "256 to 64 channels, 56 x 56, 8 images f32, bias",
     16.0 * 64 * 56 * 56 * 256,
     FRIT_F32,
     {{4, {8, 256, 56, 56}}, {4, {64, 256, 1, 1}}, {1, {64}}},
     conv1x1},
    {"conv7x7",
     "3 to 64 channels, 224 x 224, strides of 2, 8 images f32, bias, relu",
     16.0 * 64 * 112 * 112 * 3 * 49,
     FRIT_F32,
     {{4, {8, 3, 224, 224}}, {4, {64, 3, 7, 7}}, {1, {64}}},
     conv7x7},
    {"depthwise",
     "3x3, 128 channels, 56 x 56, 8 images f32, bias",
     16.0 * 128 * 56 * 56 * 9,
     FRIT_F32,
     {{4, {8, 128, 56, 56}}, {4, {128, 1, 3, 3}}, {1, {128}}},
     depthwise},
    {"mlp",
     "128 rows, 784 to 512 to 10 f32",
     256.0 * 512 * (784 + 10),
     FRIT_F32,
     {{2, {128, 784}}, {2, {784, 512}}, {1, {512}}, {2, {512, 10}}, {1, {10}}},
     mlp},
};

enum { N_PRODUCTS = sizeof(products) / sizeof(products[0]) };

const char *bench_product_at(size_t index)
{
    return index < N_PRODUCTS ? products[index].name : NULL;
}

struct operands {
    const struct product *product;
    frit_tensor *in[OPERANDS];
};

static frit_tensor *run(const void *self)
{
    const struct operands *operands = self;

    return operands->product->run(operands->in);
}

/* Makes q4 of operand 1, in blocks whose scales operand 2 has, for products of such weights. */
static void pack(const struct product *product, frit_tensor **in)
{
    const bool turned = product->run == matmul_q4_turned;
    const frit_dims block = {2, {turned ? 1 : Q4_BLOCK, turned ? Q4_BLOCK : 1}};

    if (turned || product->run == matmul_q4)
        in[1] = frit_quantize(frit_take(in[1]), in[2], NULL, FRIT_Q4, .block = block);
}

/* Operations per second; below 0 after a failure. */
static double measure(const struct bench *bench, frit_device *device, const struct bench_rate *rate,
                      frit_err *err)
{
    const struct bench_job job = {device, rate->run, rate->self, err};
    double times[MAX_ROUNDS];
    uint32_t n_rounds = bench->rounds < MAX_ROUNDS ? (uint32_t)bench->rounds : MAX_ROUNDS, n;
    bool good = true;

    n = bench_queue(bench, &job);
    for (uint32_t i = 0; i < n_rounds && good; i++) {
        times[i] = bench_run(&job, n);
        good = times[i] >= 0;
    }
    return good ? 1e9 * rate->flops / bench_median(times, n_rounds) : -1;
}

int bench_rate(const struct bench *bench, frit_device *device, const struct bench_rate *rate)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct bench_row row = {.suite = "device",
                            .row = rate->name,
                            .what = rate->what,
                            .device = frit_device_name(device),
                            .n_figures = 1};
    double flops = measure(bench, device, rate, &err);

    if (flops < 0)
        return fail_command(bench->in, "%s: %s", rate->name, err.text);
    row.figures[0] = (struct bench_figure){"gflop_per_s", "GFLOP/s", flops * 1e-9, 0, false};
    bench_print(bench, &row);
    return CLI_FINE;
}

bool bench_wants_rate(const struct bench *bench, const frit_device_desc *desc, const char *name,
                      double flops)
{
    bool small = bench->quick || strcmp(desc->type, "software") == 0;
    bool processor = strcmp(desc->type, "processor") == 0;

    if (!bench_wants(bench, name))
        return false;
    if (flops <= (small ? small_flops : huge_flops) || (!small && !processor))
        return true;
    if (invocation_has(bench->in, "--filter"))
        fprintf(stderr, "frit bench: %s is left out, being large\n", name);
    return false;
}

static int run_row(const struct bench *bench, frit_device *device, const struct product *product)
{
    struct operands operands = {.product = product};
    int status;

    for (uint32_t i = 0; i < OPERANDS && product->dims[i].rank; i++)
        operands.in[i] = frit_random_uniform(device, product->dtype, product->dims[i], -1, 1);
    pack(product, operands.in);
    status = bench_rate(
        bench, device,
        &(struct bench_rate){product->name, product->what, product->flops, run, &operands});
    for (uint32_t i = 0; i < OPERANDS; i++)
        frit_release(operands.in[i]);
    return status;
}

int bench_products(const struct bench *bench, frit_device *device, const frit_device_desc *desc)
{
    int status = CLI_FINE;

    for (size_t i = 0; i < N_PRODUCTS && status == CLI_FINE; i++)
        if (bench_wants_rate(bench, desc, products[i].name, products[i].flops))
            status = run_row(bench, device, &products[i]);
    return status;
}
