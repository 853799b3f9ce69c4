/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of one size that are not in use now, kept for the next use. */
#ifndef LEAT_BASE_FREE_LIST_H
#define LEAT_BASE_FREE_LIST_H

#include <string.h>

#include "base/mem.h"

/* The first word of a kept struct is the address of the next kept struct. Zeros: no struct is kept. */
struct leat_free_list {
    void *first;
};
static inline void leat_free_list_give(struct leat_free_list *list, void *element)
{
    memcpy(element, &list->first, sizeof list->first);
    list->first = element;
}
/** The struct that was given last, as it was, except its first word; NULL: no struct is kept. */
static inline void *leat_free_list_take(struct leat_free_list *list)
{
    void *element = list->first;
    if (element) memcpy(&list->first, element, sizeof list->first);
    return element;
}
/** Of structs of the heap. */
static inline void leat_free_list_fini(struct leat_free_list *list)
{
    void *element;
    while ((element = leat_free_list_take(list)))
        leat_mem_free(element);
}

#endif
