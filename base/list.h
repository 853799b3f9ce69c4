/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list: the link lies in the element, nothing allocates. */
#ifndef LEAT_BASE_LIST_H
#define LEAT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct leat_list {
    struct leat_list *prev,
        *next; /* a head points at itself when empty; an unlinked element likewise */
};

#define LEAT_CONTAINER(pointer, type, member)                                                      \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void leat_list_init(struct leat_list *head)
{
    head->prev = head->next = head;
}
static inline bool leat_list_empty(const struct leat_list *head)
{
    return head->next == head;
}
static inline void leat_list_insert_before(struct leat_list *at, struct leat_list *element)
{
    element->prev = at->prev;
    element->next = at;
    at->prev->next = element;
    at->prev = element;
}
static inline void leat_list_push_back(struct leat_list *head, struct leat_list *element)
{
    leat_list_insert_before(head, element);
}
static inline void leat_list_push_front(struct leat_list *head, struct leat_list *element)
{
    leat_list_insert_before(head->next, element);
}
/* Safe on an unlinked element that was initialised. */
static inline void leat_list_remove(struct leat_list *element)
{
    element->prev->next = element->next;
    element->next->prev = element->prev;
    leat_list_init(element);
}
static inline struct leat_list *leat_list_pop_front(struct leat_list *head)
{
    if (leat_list_empty(head)) return NULL;
    struct leat_list *first = head->next;
    leat_list_remove(first);
    return first;
}

/* Walk; the current element may be removed meanwhile. */
#define LEAT_LIST_EACH(head, it)                                                                   \
    for (struct leat_list *it = (head)->next, *it##_next = it->next; it != (head);                 \
         it = it##_next, it##_next = it->next)

#endif
