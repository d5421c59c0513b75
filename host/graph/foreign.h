/* SPDX-License-Identifier: Apache-2.0 */
/* What NumPy, PyTorch and ONNX call ops, attributes and element types: for hints in messages. */
#ifndef GRAPH_FOREIGN_H
#define GRAPH_FOREIGN_H

#include <stddef.h>

#include <frit/types.h>

struct foreign {
    const char *theirs;
    const char *ours; /* "" where nothing is the same alone */
    const char *note; /* "" or what else to say, without a full stop */
};

/* By name; case and underscores do not matter.  NULL: unknown. */
const struct foreign *foreign_op(frit_str word);
/* The first row whose name here is one of `names`, else one without a name here. */
const struct foreign *foreign_attr(frit_str word, const char *const *names, size_t count);
/* The name here of an element type, NULL: unknown. */
const char *foreign_dtype(frit_str word);
/* What to add where a list attribute has too many entries; "" for nothing. */
const char *foreign_list(const char *attr);
/* "; here it is NAME: NOTE" into `text`, what a message ends with; returns text. */
const char *foreign_text(const struct foreign *row, char *text, size_t size);
/* Row k of ops, attributes or element types; NULL beyond the last. */
const struct foreign *foreign_op_at(size_t index);
const struct foreign *foreign_attr_at(size_t index);
const struct foreign *foreign_dtype_at(size_t index);

#endif
