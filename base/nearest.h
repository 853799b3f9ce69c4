/* SPDX-License-Identifier: Apache-2.0 */
/* What a mistyped word may have meant. */
#ifndef LEAT_BASE_NEAREST_H
#define LEAT_BASE_NEAREST_H

#include <stddef.h>

/** The nearest of `names`, or NULL: none is near. A beginning of a name is near, from two letters on. */
const char *leat_nearest_word(const char *word, const char *const *names, size_t count);

#endif
