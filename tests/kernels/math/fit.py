#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of kernels/math and writes kernels/math/coefs.c.

Each is the minimax polynomial of a function on an interval under a weight, in 50 digits on a dense grid:
by the Remez exchange, or by Lawson's reweighted least squares where 0 lies inside, as powers without the
lowest ones do not satisfy Haar's condition there.  Coefficients are rounded to the type one after the other from the lowest, and
the ones above are fitted again around what was rounded.  Needs mpmath.

    fit.py > kernels/math/coefs.c      the numbers
    fit.py --errors                    the weighted errors, in units of 2^-24 and 2^-53
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, log, exp, sqrt, atan, asin, atanh, erf, erfc, sin, sinh

mp.dps = 50
DIGITS = {0: 24, 1: 53}
REFITS = 4  # across 0 the coefficients beyond matter little
HALF = sqrt(mpf(1) / 2)


def rounded(value, bits):
    if value == 0:
        return mpf(0)
    man, e = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(man, bits)), e - bits)


def grid(lo, hi, n):
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    return [mid - half * cos(pi * (2 * i + 1) / (2 * n)) for i in range(n)]


def remez(xs, target, weight, powers):
    """Coefficients on `powers` that level the weighted error; xs rise."""
    n = len(powers)
    at = [round((1 - cos(pi * i / n)) / 2 * (len(xs) - 1)) for i in range(n + 1)]
    for _ in range(12):
        a = matrix(n + 1, n + 1)
        b = matrix(n + 1, 1)
        for row, i in enumerate(at):
            for col, p in enumerate(powers):
                a[row, col] = xs[i] ** p
            a[row, n] = (-1) ** row / weight[i]
            b[row] = target[i]
        c = lu_solve(a, b)
        error = [weight[i] * (target[i] - sum(c[k] * xs[i] ** p for k, p in enumerate(powers)))
                 for i in range(len(xs))]
        peaks = []
        for i, e in enumerate(error):
            if peaks and (e > 0) == (error[peaks[-1]] > 0):
                if abs(e) > abs(error[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        worst = max(abs(e) for e in error)
        if len(peaks) < n + 1 or peaks == at:
            break
        at = peaks
    return [c[k] for k in range(n)], worst


def lawson(xs, target, weight, powers):
    """The same where the exchange need not work: least squares, weighted again by the error."""
    n, share, best = len(powers), [mpf(1) / len(xs)] * len(xs), None
    rows = [[x ** p * w for p in powers] for x, w in zip(xs, weight)]
    goal = [t * w for t, w in zip(target, weight)]
    for _ in range(6):
        a = matrix(n, n)
        b = matrix(n, 1)
        for row, g, s in zip(rows, goal, share):
            for i in range(n):
                b[i] += s * row[i] * g
                for j in range(i, n):
                    a[i, j] += s * row[i] * row[j]
        for i in range(n):
            for j in range(i):
                a[i, j] = a[j, i]
        c = lu_solve(a, b)
        error = [abs(g - sum(c[k] * row[k] for k in range(n))) for row, g in zip(rows, goal)]
        if best is None or max(error) < best[1]:
            best = [c[k] for k in range(n)], max(error)
        share = [s * e for s, e in zip(share, error)]
        share = [s / sum(share) for s in share]
    return best


def fit(function, weight, lo, hi, n, bits):
    across = lo < 0 < hi
    xs = grid(mpf(lo), mpf(hi), (12 if across else 30) * n)
    target, w, fixed = [function(x) for x in xs], [weight(x) for x in xs], []
    while len(fixed) < n:
        k = len(fixed)
        c, _ = (lawson if across and k else remez)(xs, target, w, range(k, n))
        new = [rounded(v, bits) for v in (c if across and k == REFITS else c[:1])]
        target = [t - sum(v * x ** (k + i) for i, v in enumerate(new)) for t, x in zip(target, xs)]
        fixed += new
    return fixed, max(abs(t * v) for t, v in zip(target, w))


def odd_rest(f):
    """Of an odd f(x) = x + x^3 P(x^2): P and its weight for errors relative to f."""
    def rest(w):
        x = sqrt(w)
        return (f(x) - x) / (x * w)
    return rest, lambda w: w * sqrt(w) / f(sqrt(w))


def atanh_rest(z):  # log((1 + s) / (1 - s)) = 2 s + s z P(z), z = s^2
    s = sqrt(z)
    return (2 * atanh(s) - 2 * s) / (s * z)


def mills(a):  # e^(a^2 / 2) times the normal distribution's tail beyond a
    return exp(a * a / 2) * erfc(a / sqrt(mpf(2))) / 2


def tail(t):  # mills(a) / q, q = MILLS / (a + MILLS) = t + MIDDLE
    return mills(MILLS / (t + MIDDLE) - MILLS) / (t + MIDDLE)


MILLS, MIDDLE = mpf(4), mpf(5) / 8
LN2 = log(mpf(2))
NEAR = -LN2 / 2 * mpf("1.001"), LN2 / 2 * mpf("1.001")
# name: (function, weight, interval, terms for F32 and F64 (0: not used))
POLYS = {
    "exp": (exp, lambda r: exp(-r), ((-LN2, LN2),) * 2, (8, 14)),
    "exp_near": (exp, lambda r: exp(-r), (NEAR,) * 2, (7, 0)),
    "expm1": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: abs(r**2 / mp.expm1(r)), (NEAR,) * 2, (5, 11)),
    "tanh": (*odd_rest(mp.tanh), ((0, mpf("0.3025")),) * 2, (5, 11)),
    "sinh": (*odd_rest(sinh), ((0, 1),) * 2, (4, 8)),
    "log": (lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: abs(f**3 / mp.log1p(f)),
            ((HALF - 1, 1 / HALF - 1),) * 2, (8, 0)),
    "log_s": (atanh_rest, lambda z: z, ((0, mpf("0.0295")),) * 2, (3, 7)),
    "atanh": (*odd_rest(atanh), ((0, mpf(1) / 4),) * 2, (6, 14)),
    "sin": (*odd_rest(sin), ((0, pi**2 / 16),) * 2, (3, 6)),
    "cos": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)),
            ((0, pi**2 / 16),) * 2, (3, 6)),
    "tan": (*odd_rest(mp.tan), ((0, pi**2 / 16),) * 2, (6, 14)),
    "atan": (*odd_rest(atan), ((0, 1),) * 2, (9, 21)),
    "asin": (*odd_rest(asin), ((0, mpf(1) / 4),) * 2, (5, 12)),
    "erf": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), ((0, 1),) * 2, (6, 14)),
    "erf_log": (lambda x: log(erfc(x)), erfc, ((1, mpf("3.95")), (1, mpf("5.95"))), (8, 19)),
    "pow": (lambda z: (atanh_rest(z) - mpf(2) / 3) / z, lambda z: z**2, ((0, mpf("0.0295")),) * 2, (3, 7)),
    "mills": (tail, lambda t: 1 / tail(t), ((MILLS / (15 + MILLS) - MIDDLE, 1 - MIDDLE),
              (MILLS / (39 + MILLS) - MIDDLE, 1 - MIDDLE)), (11, 24)),
}
# name: the number, the bits of its high part in F32 and F64; the low part has all bits
SPLITS = {"ln2": (LN2, 16, 42), "pi_2": (pi / 2, 24, 53), "log2e": (1 / LN2, 24, 53), "2_3": (mpf(2) / 3, 24, 53)}


def text(value):
    return float(value).hex()


# the words of 2 / pi: the first has `lead` bits of it, for the type's width and range
TURNS = (32, 6, 8), (64, 9, 20)


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or list(POLYS)
    results = {}
    for name in names:
        function, weight, intervals, terms = POLYS[name]
        for kind in (0, 1):
            if terms[kind]:
                results[name, kind] = fit(function, weight, *intervals[kind], terms[kind], DIGITS[kind])
                if "--errors" in sys.argv:
                    print(name, "F64" if kind else "F32", mp.nstr(results[name, kind][1] * 2 ** DIGITS[kind], 3),
                          flush=True)
    if "--errors" in sys.argv:
        return
    print("/* SPDX-License-Identifier: Apache-2.0 */\n/* Polynomials, lowest coefficient first, for F32 and F64.  Generated by"
          " tests/kernels/math/fit.py,\n * which lists for each the approximated function, the interval and the weight. */\n#include \"math/coefs.h\"")
    for name, (value, *bits) in SPLITS.items():
        parts = [(hi := rounded(value, b), rounded(value - hi, d)) for b, d in zip(bits, DIGITS.values())]
        print(f"\nconst struct split split_{name}[2] = {{")
        for hi, lo in parts:
            print(f"    {{{text(hi)}, {text(lo)}}},")
        print("};")
    mp.dps = 420
    print(f"\nconst uint64_t turns[2][TURNS] = {{")
    for width, lead, count in TURNS:
        words = [int(2 / pi * mpf(2)**(lead + width * i)) % 2**width for i in range(count)]
        print(f"    {{{', '.join(hex(w) for w in words)}}},")
    print("};")
    mp.dps = 50
    for name in names:
        print(f"\nconst struct poly poly_{name}[2] = {{")
        for kind in (0, 1):
            c = results.get((name, kind), ([], 0))[0]
            print(f"    {{{len(c)}, {{{', '.join(text(v) for v in c) or 0}}}}},")
        print("};")


main()
