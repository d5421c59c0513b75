/* SPDX-License-Identifier: Apache-2.0 */
/* Random products of matrices: sliced, transposed and broadcast operands, batches, bias, and types,
 * of whole numbers, so that each device has the same sums. */
#include "device/rig.h"

#include <string.h>

enum { CASES = 240, MAX_BATCH = 3, MAX_EXTENT = 20, MAX_FIRST = 2 };

static uint64_t state;

static int64_t below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u; /* MMIX's */
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* ---- matrices ---- */

/* Batches of matrices within a larger tensor [batches, rows, columns]. */
struct matrix {
    int64_t batches, rows, columns, first; /* of rows and of columns */
    bool swapped;                          /* rows are stored as columns */
    int64_t dims[3];                       /* as stored */
    float *numbers;
    frit_tensor *tensor;
};

static float whole_number(void)
{
    return (float)(below(9) - 4);
}

static float number_at(const struct matrix *m, int64_t batch, int64_t row, int64_t column)
{
    const int64_t y = m->first + (m->swapped ? column : row),
                  x = m->first + (m->swapped ? row : column);

    return m->numbers[((m->batches > 1 ? batch : 0) * m->dims[1] + y) * m->dims[2] + x];
}

static void replace(frit_tensor **to, frit_tensor *by)
{
    frit_release(*to);
    *to = by;
}

/* `rank` 2: without a dim of batches. */
static struct matrix matrix_make(struct rig *rig, int64_t rank, int64_t batches, int64_t rows,
                                 int64_t columns, uint32_t dtype)
{
    struct matrix m = {.batches = rank == 2 ? 1 : batches,
                       .rows = rows,
                       .columns = columns,
                       .first = below(MAX_FIRST + 1),
                       .swapped = below(2)};
    const int64_t behind = below(2), y = m.swapped ? columns : rows, x = m.swapped ? rows : columns;
    const frit_range along_y = {m.first, m.first + y, 1}, along_x = {m.first, m.first + x, 1};
    int64_t count;

    m.dims[0] = m.batches;
    m.dims[1] = m.first + y + behind;
    m.dims[2] = m.first + x + behind;
    count = m.dims[0] * m.dims[1] * m.dims[2];
    m.numbers = malloc((size_t)count * sizeof *m.numbers);
    assert_non_null(m.numbers);
    for (int64_t i = 0; i < count; i++)
        m.numbers[i] = whole_number();
    m.tensor = rank == 2 ? rig_tensor(rig, FRIT_SHAPE(m.dims[1], m.dims[2]), m.numbers)
                         : rig_tensor(rig, FRIT_SHAPE(m.dims[0], m.dims[1], m.dims[2]), m.numbers);
    replace(&m.tensor, frit_cast(m.tensor, dtype));
    replace(&m.tensor, rank == 2 ? frit_slice(m.tensor, FRIT_SLICES(along_y, along_x))
                                 : frit_slice(m.tensor, FRIT_SLICES({0}, along_y, along_x)));
    if (m.swapped)
        replace(&m.tensor, frit_transpose(m.tensor, -1, -2));
    return m;
}

static void matrix_free(struct matrix *m)
{
    frit_release(m->tensor);
    free(m->numbers);
}

/* ---- cases ---- */

static void run_case(struct rig *rig, int number)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F16, FRIT_BF16, FRIT_F64};
    const uint32_t dtype = dtypes[below(2) ? 0 : below(4)];
    const int64_t batches = 1 + below(MAX_BATCH), m = 1 + below(MAX_EXTENT),
                  n = 1 + below(MAX_EXTENT), k = 1 + below(MAX_EXTENT);
    const bool is_linear = below(3) == 0, has_bias = is_linear && below(4);
    struct matrix a = matrix_make(rig, 2 + below(2), below(4) ? batches : 1, m, k, dtype);
    struct matrix b = matrix_make(rig, is_linear ? 2 : 2 + below(2), batches, k, n, dtype);
    const int64_t of_all = a.batches > b.batches ? a.batches : b.batches;
    frit_tensor *bias = NULL, *product;
    float of_bias[MAX_EXTENT], *got;

    for (int i = 0; i < MAX_EXTENT; i++)
        of_bias[i] = whole_number();
    if (has_bias) {
        bias = rig_tensor(rig, FRIT_SHAPE(n), of_bias);
        replace(&bias, frit_cast(bias, dtype));
    }
    product = is_linear ? frit_linear(a.tensor, b.tensor, bias) : frit_matmul(a.tensor, b.tensor);
    replace(&product, frit_cast(product, FRIT_F32));
    got = rig_read(product);
    for (int64_t i = 0; i < of_all * m * n; i++) {
        float sum = has_bias ? of_bias[i % n] : 0;

        for (int64_t l = 0; l < k; l++)
            sum += number_at(&a, i / n / m, i / n % m, l) * number_at(&b, i / n / m, l, i % n);
        /* Of bf16, sums of more than 8 bits are rounded. */
        if (!rig_near((double)got[i], (double)sum, (double)sum, dtype == FRIT_BF16 ? 0x1p15 : 0))
            fail_msg("case %d: element %d is %g, not %g", number, (int)i, (double)got[i],
                     (double)sum);
    }
    free(got);
    frit_release(bias);
    matrix_free(&a);
    matrix_free(&b);
}

static void test_random_products(void **unused)
{
    struct rig rig;

    (void)unused;
    rig_open(&rig);
    for (int i = 0; i < CASES; i++) {
        state = (uint64_t)i * 2 + 1;
        for (int k = 0; k < 4; k++) /* neighbouring seeds begin alike */
            (void)below(2);
        run_case(&rig, i);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_products)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
