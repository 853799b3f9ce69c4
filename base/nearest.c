/* SPDX-License-Identifier: Apache-2.0 */
/* Words by how many letters have to be changed, added or left out. */
#include "base/nearest.h"

#include <limits.h>
#include <string.h>

enum { WORD_MAX = 40 };

static unsigned distance(const char *a, const char *b)
{
    unsigned row[WORD_MAX + 1];
    size_t n = strlen(b);
    if (n > WORD_MAX || strlen(a) > WORD_MAX) return UINT_MAX;
    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            unsigned up = row[j];
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            if (up + 1 < best) best = up + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[n];
}

const char *leat_nearest_word(const char *word, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    unsigned least = (unsigned)strlen(word) / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        unsigned far = distance(word, names[i]);
        if (strncmp(names[i], word, strlen(word)) == 0) far = 1;
        if (far < least) {
            least = far;
            nearest = names[i];
        }
    }
    return nearest;
}
