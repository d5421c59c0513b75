/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise rows and activations. */
#include <string.h>

#include "host/grad/forms.h"

static const struct {
    const char *row;
    const struct domain *domain;
} domains[] = {{"log", &positive},     {"sqrt", &positive},    {"rsqrt", &positive},
               {"recip", &away},       {"tan", &within_one},   {"asin", &within_one},
               {"acos", &within_one},  {"atanh", &within_one}, {"acosh", &above_one},
               {"log1p", &within_one}, {"div", &away},         {"rem", &away},
               {"pow", &positive},     {"hypot", &away},       {"atan2", &away}};

static struct domain domain_of(const struct script *s)
{
    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
        if (strcmp(domains[i].row, s->row->name) == 0)
            return *domains[i].domain;
    }
    return any;
}

static void unary(struct script *s)
{
    const struct words x = script_operand(s, script_dims(s, 0, 4, 4), domain_of(s));

    script_line(s, "output y = %s %s", s->row->name, x.text);
}

/* The gradient through the row itself is zero. */
static void steps(struct script *s)
{
    const struct words x = script_operand(s, script_dims(s, 0, 4, 4), any);

    script_line(s, "u = %s %s", s->row->name, x.text);
    script_line(s, "output y = add u, %s", x.text);
}

/* A tensor that broadcasts to the dims, the operand before once more, or a number. */
static struct words second(struct script *s, frit_dims dims, struct domain domain,
                           struct words first)
{
    if (script_chance(s, 15))
        return script_format("%.3f", script_real(s, domain.low, domain.high));
    if (script_chance(s, 10) && strcmp(s->row->name, "rem") != 0)
        return first;
    return script_broadcast(s, dims, domain);
}

static void binary(struct script *s)
{
    const struct domain domain = domain_of(s);
    const frit_dims dims = script_dims(s, 0, 4, 4);
    struct words a = script_broadcast(s, dims, domain), b = second(s, dims, domain, a);

    if (script_chance(s, 20)) {
        const struct words swapped = a;

        a = b;
        b = swapped;
    }
    script_line(s, "output y = %s %s, %s", s->row->name, a.text, b.text);
}

/* An exponent of 0, 1, 2 or 3 as a number has slopes of its own. */
static void power(struct script *s)
{
    if (script_chance(s, 30)) {
        const struct words a = script_operand(s, script_dims(s, 0, 4, 4), any);

        script_line(s, "output y = pow %s, %d.0", a.text, (int)script_between(s, 0, 3));
    } else {
        binary(s);
    }
}

static struct words number_or(struct script *s, frit_dims dims, double low, double high)
{
    return script_chance(s, 50) ? script_format("%.1f", script_real(s, low, high))
                                : script_broadcast(s, dims, (struct domain){low, high});
}

static void where(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 3, 4);
    const struct words mask = script_mask(s, dims), a = script_broadcast(s, dims, any);
    const struct words b = number_or(s, dims, -1, 1);

    if (script_chance(s, 50))
        script_line(s, "output y = where %s, %s, %s", mask.text, a.text, b.text);
    else
        script_line(s, "output y = where %s, %s, %s", mask.text, b.text, a.text);
}

static void mask_fill(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 3, 4);
    const struct words x = script_broadcast(s, dims, any), mask = script_mask(s, dims);

    script_line(s, "output y = mask_fill %s, %s, %s", x.text, mask.text,
                number_or(s, dims, -1, 1).text);
}

/* Now and then the upper border is below the lower one. */
static void clamp(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 3, 4);
    const struct words x = script_broadcast(s, dims, any);
    const struct words low = number_or(s, dims, -1.2, script_chance(s, 20) ? 1 : -0.3);

    script_line(s, "output y = clamp %s, %s, %s", x.text, low.text,
                number_or(s, dims, script_chance(s, 20) ? -1 : 0.3, 1.2).text);
}

static void hard_sigmoid(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 3, 4);
    const struct words x = script_broadcast(s, dims, any);
    const struct words alpha = number_or(s, dims, 0.2, 0.9), beta = number_or(s, dims, 0.1, 0.9);

    script_line(s, "output y = hard_sigmoid %s, %s, %s", x.text, alpha.text, beta.text);
}

static void leaky_relu(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 3, 4);
    const struct words x = script_broadcast(s, dims, any);

    script_line(s, "output y = leaky_relu %s, %s", x.text, number_or(s, dims, -0.5, 0.5).text);
}

const struct form forms_map[] = {{"abs", unary},
                                 {"neg", unary},
                                 {"sign", steps},
                                 {"exp", unary},
                                 {"expm1", unary},
                                 {"log", unary},
                                 {"log1p", unary},
                                 {"sqrt", unary},
                                 {"erf", unary},
                                 {"sin", unary},
                                 {"cos", unary},
                                 {"tanh", unary},
                                 {"floor", steps},
                                 {"round", steps},
                                 {"ceil", steps},
                                 {"trunc", steps},
                                 {"recip", unary},
                                 {"rsqrt", unary},
                                 {"square", unary},
                                 {"tan", unary},
                                 {"asin", unary},
                                 {"acos", unary},
                                 {"atan", unary},
                                 {"sinh", unary},
                                 {"cosh", unary},
                                 {"asinh", unary},
                                 {"acosh", unary},
                                 {"atanh", unary},
                                 {"add", binary},
                                 {"sub", binary},
                                 {"mul", binary},
                                 {"div", binary},
                                 {"rem", binary},
                                 {"pow", power},
                                 {"maximum", binary},
                                 {"minimum", binary},
                                 {"atan2", binary},
                                 {"hypot", binary},
                                 {"where", where},
                                 {"clamp", clamp},
                                 {"mask_fill", mask_fill},
                                 {"relu", unary},
                                 {"gelu", unary},
                                 {"silu", unary},
                                 {"sigmoid", unary},
                                 {"log_sigmoid", unary},
                                 {"hard_sigmoid", hard_sigmoid},
                                 {"leaky_relu", leaky_relu},
                                 {"softplus", unary},
                                 {0}};
