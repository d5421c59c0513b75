/* SPDX-License-Identifier: Apache-2.0 */
/* Forms follow from facts; a comparison of a line with a single element is a range, and so is the
 * `and` of a range with a range or a single element. */
#ifndef TILE_FORMS_H
#define TILE_FORMS_H

struct make;

/* The form of every value, and who needs lanes. */
void make_forms(struct make *m);

#endif
