/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `frit explain --html`: one HTML file without external resources.  page.html is the
 * page, with places for what a run gives; its script reads the same JSON that `frit explain --json`
 * prints. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdio.h>

/* What stands in the page.  All texts are terminated. */
struct page {
    const char *name;     /* of the program */
    const char *text;     /* what `frit explain` prints */
    const char *json;     /* what `frit explain --json` prints, with times */
    const char *timeline; /* of all runs, a Chrome trace */
};

void page_write(const struct page *page, FILE *out);

#endif
