/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka/handlers/names.h"

#include <string.h>

#include "base/assert.h"

int leat_kafka_name_order(struct leat_kafka_string a, struct leat_kafka_string b)
{
    int32_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = bytes > 0 ? memcmp(a.text, b.text, (size_t)bytes) : 0;
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

bool leat_kafka_names_init(struct leat_kafka_names *names, struct leat_kafka_request *request,
                           uint32_t most)
{
    names->at = leat_kafka_take(request, most, sizeof *names->at);
    names->count = 0;
    names->most = most;
    return names->at != NULL;
}

/* A heap, the last in order at the root: it makes way for what comes before it. */
static void sift_down(struct leat_kafka_names *names, struct leat_kafka_string name)
{
    uint32_t at = 0;
    LEAT_ASSERT_CMP(names->count, >, 0);
    for (uint32_t child; (child = 2 * at + 1) < names->count; at = child) {
        if (child + 1 < names->count &&
            leat_kafka_name_order(names->at[child + 1], names->at[child]) > 0)
            child++;
        if (leat_kafka_name_order(names->at[child], name) <= 0) break;
        names->at[at] = names->at[child];
    }
    names->at[at] = name;
}

void leat_kafka_names_add(struct leat_kafka_names *names, struct leat_kafka_string name)
{
    LEAT_ASSERT_CMP(names->count, <=, names->most);
    if (names->most == 0) return;
    if (names->count == names->most) {
        if (leat_kafka_name_order(name, names->at[0]) < 0) sift_down(names, name);
        return;
    }
    uint32_t at = names->count++;
    for (; at > 0 && leat_kafka_name_order(name, names->at[(at - 1) / 2]) > 0; at = (at - 1) / 2)
        names->at[at] = names->at[(at - 1) / 2];
    names->at[at] = name;
}

void leat_kafka_names_sort(struct leat_kafka_names *names)
{
    const uint32_t count = names->count;
    while (names->count > 1) {
        struct leat_kafka_string last = names->at[0];
        names->count--;
        sift_down(names, names->at[names->count]);
        names->at[names->count] = last;
    }
    names->count = count;
}
