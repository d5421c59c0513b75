/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tune/record_rig.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <frit/program.h>

enum { MOST_CANDIDATES = 6, MOST_SAMPLES = 12, MOST_KEY = 200, TEXT = 80, MOST_SPLITS = 4 };

static uint32_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Words, blanks, digits and letters of two to four bytes; never empty where `n` is not 0. */
static void random_text(uint64_t *state, char *out, uint32_t n)
{
    static const char *const pieces[] = {"a",  "end", " ", "samples",      "0",
                                         "\\", "\"",  "µ", "\xe2\x82\xac", "\xf0\x9f\x8e\xb5"};

    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        const char *piece = pieces[next(state) % (sizeof(pieces) / sizeof(pieces[0]))];

        if (strlen(out) + strlen(piece) < TEXT)
            strcat(out, piece);
    }
}

struct tune_record *record_rig_random(uint64_t seed)
{
    uint64_t state = seed, samples[MOST_CANDIDATES][MOST_SAMPLES], splits[MOST_SPLITS];
    char what[TEXT], identity[MOST_CANDIDATES][TEXT], evidence[MOST_CANDIDATES][TEXT];
    struct tune_candidate candidates[MOST_CANDIDATES];
    unsigned char key[MOST_KEY];
    const struct tune_record record = {.key = key,
                                       .key_bytes = 1 + next(&state) % MOST_KEY,
                                       .what = what,
                                       .clock = next(&state) % TUNE_CLOCKS,
                                       .reason = next(&state) % TUNE_REASONS,
                                       .n_splits = next(&state) % (MOST_SPLITS + 1),
                                       .splits = splits,
                                       .n_candidates = next(&state) % (MOST_CANDIDATES + 1),
                                       .candidates = candidates};
    struct tune_record *copy;

    for (size_t i = 0; i < record.key_bytes; i++)
        key[i] = (unsigned char)next(&state);
    for (uint32_t i = 0; i < MOST_SPLITS; i++)
        splits[i] = UINT64_MAX >> next(&state) % 64;
    random_text(&state, what, next(&state) % 5);
    for (uint32_t i = 0; i < record.n_candidates; i++) {
        random_text(&state, identity[i], 1 + next(&state) % 5);
        random_text(&state, evidence[i], next(&state) % 5);
        for (uint32_t j = 0; j < MOST_SAMPLES; j++)
            samples[i][j] = UINT64_MAX >> next(&state) % 64;
        candidates[i] = (struct tune_candidate){.identity = identity[i],
                                                .version = next(&state) * 3,
                                                .numeric_class = next(&state) % 4,
                                                .state = next(&state) % TUNE_STATES,
                                                .n_samples = next(&state) % (MOST_SAMPLES + 1),
                                                .samples = samples[i],
                                                .evidence = evidence[i]};
    }
    assert_int_equal(tune_record_copy(&record, &copy, NULL), FRIT_OK);
    return copy;
}

struct tune_record *record_rig_small(uint64_t key, uint64_t ns)
{
    const uint64_t slow[] = {2 * ns, 2 * ns + 1};
    const struct tune_candidate candidates[] = {
        {.identity = "tile 64", .version = 3, .state = TUNE_RIGHT, .n_samples = 1, .samples = &ns},
        {.identity = "plain", .state = TUNE_RIGHT, .n_samples = 2, .samples = slow},
        {.identity = "odd",
         .numeric_class = FRIT_NUMERIC_REDUCED,
         .state = TUNE_WRONG,
         .evidence = "output 0 differs by 2.0 at 17"}};
    const struct tune_record record = {.key = &key,
                                       .key_bytes = sizeof(key),
                                       .what = "matmul 128x128 f32",
                                       .clock = TUNE_DEVICE_CLOCK,
                                       .n_candidates = 3,
                                       .candidates = candidates};
    struct tune_record *copy;

    assert_int_equal(tune_record_copy(&record, &copy, NULL), FRIT_OK);
    return copy;
}
