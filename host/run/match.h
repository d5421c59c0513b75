/* SPDX-License-Identifier: Apache-2.0 */
/* Matching: each recorded op that has got its last death moves a walker through the automaton.
 *
 * A composite op that the driver does not claim is keyed by its expansion too, since equal calls
 * may expand into ops whose inner dims differ in which are equal.  Expanding calls the driver, so
 * that it needs the baton and no lock; a predicted op has the key that it had and needs neither. */
#ifndef RUN_MATCH_H
#define RUN_MATCH_H

#include <stdbool.h>

#include <frit/frit.h>

struct explorer;
struct segment;
struct segment_expansion;
struct walker;

/* Takes predicted ops; false: the next op is not one, and has to be keyed. */
bool match_predicted(struct segment *segment, struct walker *walker);
/* Whether the next op can only be keyed with its expansion; also makes its deaths final. */
bool match_needs_form(struct segment *segment);
/* Takes the next op; `form` NULL: it is not expanded. */
void match_key(struct segment *segment, struct walker *walker,
               const struct segment_expansion *form);
/* The walker leaves the trie: nothing is known from here on. */
void match_off_trie(struct segment *segment, struct walker *walker);

/* With the baton and no lock: takes the next op, expanded where that is needed.  The segment is
 * detached, or the calling thread is the only one that records into it. */
void match_expanded(struct explorer *explorer, frit_device *device, struct segment *segment,
                    struct walker *walker);

#endif
