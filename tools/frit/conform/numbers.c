/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that a case gets, and whether what came out is right. */
#include "conform/numbers.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "conform/conform.h"
#include "element.h"

/* What the comparison needs to know of a float type. */
struct float_kind {
    int fraction; /* bits after the point */
    int least;    /* exponent of the least normal number */
    double largest;
};

static bool is_float(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_FLOAT;
}

static struct float_kind float_kind(uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    int greatest;

    assert(info.exponent > 0);
    greatest = (1 << (info.exponent - 1)) - 1;
    return (struct float_kind){.fraction = info.fraction,
                               .least = 1 - greatest,
                               .largest = ldexp(2 - ldexp(1, -info.fraction), greatest)};
}

static bool is_unsigned(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_UINT;
}

/* ---- random numbers: SplitMix64 (Steele, Lea, Flood 2014) ---- */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double between(uint64_t *state, double low, double high)
{
    return low + (double)(draw(state) >> 11) * 0x1p-53 * (high - low);
}

static int64_t whole(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(draw(state) % (uint64_t)(high - low + 1));
}

/* ---- elements ---- */

/* The nearest number of a float type of 16 bits, ties to even, as its pattern. */
static uint16_t narrow_bits(uint32_t dtype, double value)
{
    const struct float_kind kind = float_kind(dtype);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinite = (uint16_t)(0x8000 - (1 << kind.fraction));
    int exponent;
    double steps;

    if (isnan(value))
        return (uint16_t)(sign | infinite | 1 << (kind.fraction - 1));
    if (fabs(value) > kind.largest)
        return sign | infinite;
    if (value == 0)
        return sign;
    exponent = ilogb(value);
    exponent = exponent < kind.least ? kind.least : exponent;
    steps = nearbyint(ldexp(fabs(value), kind.fraction - exponent));
    return sign | (uint16_t)(((exponent - kind.least) << kind.fraction) + (int)steps);
}

static void put_float(uint32_t dtype, void *data, uint64_t i, double value)
{
    switch (frit_storage_bytes(dtype, 1)) {
    case 8:
        ((double *)data)[i] = value;
        break;
    case 4:
        ((float *)data)[i] = (float)value;
        break;
    default:
        ((uint16_t *)data)[i] = narrow_bits(dtype, value);
    }
}

static void put_bits(uint32_t dtype, void *data, uint64_t i, uint64_t bits)
{
    size_t size = (size_t)frit_storage_bytes(dtype, 1);

    memcpy((char *)data + i * size, &bits, size);
}

static double float_of(char kind, uint64_t *state)
{
    switch (kind) {
    case 'u':
        return between(state, -1, 1);
    case 'p':
        return between(state, 0.125, 4);
    case 'a':
        return between(state, 1, 5);
    case 'z':
        return between(state, 0.5, 4) * (draw(state) & 1 ? 1 : -1);
    case 'm':
        return between(state, 0.75, 1.25);
    case 'e':
        return (double)whole(state, -3, 3);
    case 'l':
        return between(state, -4, 0);
    default:
        return between(state, -4, 4);
    }
}

static int64_t integer_of(char kind, bool positive, uint64_t *state)
{
    switch (kind) {
    case 'u':
        return whole(state, positive ? 0 : -1, 1);
    case 'p':
    case 'a':
        return whole(state, 1, 100);
    case 'z':
        return whole(state, 1, 9) * (positive || draw(state) & 1 ? 1 : -1);
    case 'm':
        return draw(state) % 5 ? 1 : 2;
    case 'e':
        return whole(state, positive ? 0 : -3, positive ? 6 : 3);
    case 'l':
        return positive ? whole(state, 0, 3) : whole(state, -10, 0);
    default:
        return positive ? whole(state, 0, 200) : whole(state, -100, 100);
    }
}

/* Number `turn` of the values at which types end and rules change. */
static double special_float(uint32_t dtype, uint64_t turn, bool denormals)
{
    const struct float_kind kind = float_kind(dtype);
    double least = ldexp(1, kind.least);
    const double values[] = {(double)NAN,
                             (double)INFINITY,
                             -(double)INFINITY,
                             0.0,
                             -0.0,
                             kind.largest,
                             -kind.largest,
                             least,
                             -least,
                             1,
                             -1,
                             0.5,
                             1.5,
                             2.5,
                             -2.5,
                             3,
                             -0.5,
                             0.25,
                             7,
                             -0.75,
                             denormals ? least / 2 : 1,
                             denormals ? -least / 4 : -3};

    return values[turn % (sizeof(values) / sizeof(values[0]))];
}

static uint64_t special_integer(uint32_t dtype, uint64_t turn)
{
    uint32_t width = 8 * (uint32_t)frit_storage_bytes(dtype, 1);
    uint64_t top = (uint64_t)1 << (width - 1), ones = top - 1 + top;
    /* The last three lie beside the middle of two numbers of f32, of f64, and of f32 where f64 has
     * only the middle. */
    const uint64_t values[] = {0,
                               1,
                               2,
                               3,
                               7,
                               ones,
                               ones - 1,
                               top,
                               top - 1,
                               top + 1,
                               width,
                               width - 1,
                               width + 1,
                               (uint64_t)-3,
                               ((uint64_t)1 << 24) + 3,
                               ((uint64_t)1 << 53) + 3,
                               ((uint64_t)1 << 62) + ((uint64_t)1 << 38) + 1};

    return values[turn % (sizeof(values) / sizeof(values[0]))];
}

/* Operands go through the special values at different paces, so that all pairs of them meet. */
static uint64_t pace(uint64_t i, uint32_t index)
{
    return index == 0 ? i : index == 1 ? i / 22 + i : i / 5 + 2 * i;
}

void conform_fill(const struct conform_case *one, const struct conform_operand *operand,
                  uint32_t index, bool denormals, void *data, uint64_t count)
{
    uint32_t dtype = operand->dtype;
    bool special = one->special && operand->kind >= 'A' && operand->kind <= 'Z';
    char kind = (char)tolower((unsigned char)operand->kind);
    uint64_t state = one->row.op->id * 1000003u + one->dtype * 8191u + index * 131u + count;

    if (operand->bound) {
        for (uint64_t i = 0; i < count; i++)
            put_bits(
                dtype, data, i,
                (uint64_t)whole(&state, special ? -2 : 0, operand->bound - (special ? -2 : 1)));
    } else if (kind == 'k' && !is_float(dtype) && dtype != FRIT_BOOL) {
        for (uint64_t i = 0; i < frit_storage_bytes(dtype, (int64_t)count); i++)
            ((uint8_t *)data)[i] = (uint8_t)draw(&state);
    } else if (is_float(dtype)) {
        for (uint64_t i = 0; i < count; i++)
            put_float(dtype, data, i,
                      special ? special_float(dtype, pace(i, index), denormals)
                              : float_of(kind, &state));
    } else if (dtype == FRIT_BOOL) {
        for (uint64_t i = 0; i < count; i++)
            put_bits(dtype, data, i, draw(&state) & 1);
    } else {
        for (uint64_t i = 0; i < count; i++)
            put_bits(dtype, data, i,
                     special ? special_integer(dtype, pace(i, index))
                             : (uint64_t)integer_of(kind, is_unsigned(dtype), &state));
    }
}

void conform_widen(uint32_t dtype, const void *data, uint64_t count, double *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = element_value(dtype, data, i);
}

/* ---- comparison ---- */

/* One unit in the last place of a number's binade. */
static double unit_of(struct float_kind kind, double value)
{
    int exponent = value != 0 && isfinite(value) ? ilogb(value) : kind.least;

    return ldexp(1, (exponent < kind.least ? kind.least : exponent) - kind.fraction);
}

static bool same_bits(uint32_t dtype, const void *a, const void *b, uint64_t i)
{
    size_t size = (size_t)frit_storage_bytes(dtype, 1);

    return memcmp((const char *)a + i * size, (const char *)b + i * size, size) == 0;
}

/* How many of the rule's units there are for as many terms. */
static double units_of(const struct conform_wanted *want)
{
    if (want->terms <= 1)
        return want->ulp;
    if (want->dtype == FRIT_F64 || want->rule == CONFORM_NEAR)
        return want->ulp * sqrt(want->terms);
    return want->ulp * (1 + log2(want->terms));
}

/* How far an element may be from the exact value, besides its own error. */
static double slack_of(const struct conform_wanted *want)
{
    double error = 0, most = want->rule == CONFORM_FOLD ? 0 : want->most;

    if (want->rule < CONFORM_FOLD || want->rule > CONFORM_PARTS || !want->wide)
        return 0;
    for (uint64_t i = 0; i < want->count; i++) {
        double own = element_value(want->dtype, want->own, i);

        if (!isfinite(own) || !isfinite(want->wide[i]))
            continue;
        error = fmax(error, fabs(own - want->wide[i]));
        most = fmax(most, fabs(want->wide[i]));
    }
    return 4 * error + units_of(want) * unit_of(float_kind(want->dtype), most);
}

static bool is_near(const struct conform_wanted *want, uint64_t i, double slack, double given)
{
    const struct float_kind kind = float_kind(want->dtype);
    double own = element_value(want->dtype, want->own, i);
    double exact = want->wide ? want->wide[i] : own;
    double least = ldexp(1, kind.least);

    if (want->rule == CONFORM_PARTS && isfinite(exact) && isfinite(given))
        return fabs(given - exact) <= slack || (want->flushes && fabs(given - exact) <= least);
    if (isnan(own) || isnan(given))
        return isnan(own) && isnan(given);
    if (want->flushes && fabs(own) <= least && fabs(given) <= least)
        return true;
    if (want->rule == CONFORM_EQUAL && own == given)
        return true;
    if (want->rule <= CONFORM_EQUAL || !isfinite(own) || !isfinite(given))
        return false;
    if (want->rule == CONFORM_NEAR)
        slack = fabs(own - exact) + units_of(want) * unit_of(kind, exact);
    return fabs(given - exact) <= slack;
}

/* Integers to their last digit; of floats `value`, without the sign of NaN. */
static void put_number(uint32_t dtype, const void *data, uint64_t i, double value, char text[32])
{
    const uint32_t size = (uint32_t)frit_storage_bytes(dtype, 1), unused = 64 - 8 * size;
    uint64_t bits = 0;

    if (is_float(dtype)) {
        snprintf(text, 32, "%.9g", isnan(value) ? fabs(value) : value);
        return;
    }
    memcpy(&bits, (const char *)data + i * size, size);
    if (frit_dtype_info_of(dtype).cls == FRIT_DTYPE_INT)
        snprintf(text, 32, "%" PRId64, (int64_t)(bits << unused) >> unused);
    else
        snprintf(text, 32, "%" PRIu64, bits);
}

static void say(const struct conform_wanted *want, const void *got, uint64_t i, uint64_t wrong,
                char reason[CONFORM_REASON])
{
    bool real = is_float(want->dtype);
    double own = element_value(want->dtype, want->own, i);
    double given = element_value(want->dtype, got, i);
    double exact = want->wide ? want->wide[i] : own;
    double wanted = real ? exact : own;
    char got_text[32], wanted_text[32];
    int used;

    put_number(want->dtype, got, i, given, got_text);
    put_number(want->dtype, want->own, i, wanted, wanted_text);
    used = snprintf(reason, CONFORM_REASON, "element %" PRIu64 " is %s, not %s", i, got_text,
                    wanted_text);

    if (real && isfinite(exact) && isfinite(given))
        used += snprintf(reason + used, (size_t)(CONFORM_REASON - used), " (%.3g ulp)",
                         fabs(given - exact) / unit_of(float_kind(want->dtype), exact));
    if (want->count > 1)
        snprintf(reason + used, (size_t)(CONFORM_REASON - used),
                 "; %" PRIu64 " of %" PRIu64 " are wrong", wrong, want->count);
}

/* Packed elements by their bits; the spare ones of the last byte count for nothing. */
static bool same_packed(const struct conform_wanted *want, const void *got,
                        char reason[CONFORM_REASON])
{
    uint32_t bits = (uint32_t)frit_storage_bytes(want->dtype, 8), each = bits ? 8 / bits : 1;
    const uint8_t *a = want->own, *b = got;

    for (uint64_t i = 0; i < want->count; i++) {
        uint64_t byte = i / each, shift = i % each * bits;
        uint32_t mask = (1u << bits) - 1;

        if ((a[byte] >> shift & mask) == (b[byte] >> shift & mask))
            continue;
        snprintf(reason, CONFORM_REASON, "element %" PRIu64 " has the bits 0x%x, not 0x%x", i,
                 b[byte] >> shift & mask, a[byte] >> shift & mask);
        return false;
    }
    return true;
}

bool conform_compare(const struct conform_wanted *want, const void *got,
                     char reason[CONFORM_REASON])
{
    double slack = slack_of(want);
    uint64_t wrong = 0, first = 0;

    if (want->rule == CONFORM_ANY)
        return true;
    if (frit_dtype_info_of(want->dtype).cls == FRIT_DTYPE_PACKED)
        return same_packed(want, got, reason);
    for (uint64_t i = 0; i < want->count; i++) {
        if (same_bits(want->dtype, want->own, got, i) ||
            (is_float(want->dtype) && is_near(want, i, slack, element_value(want->dtype, got, i))))
            continue;
        first = wrong++ ? first : i;
    }
    if (wrong)
        say(want, got, first, wrong, reason);
    return wrong == 0;
}
