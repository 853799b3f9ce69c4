/* SPDX-License-Identifier: Apache-2.0 */
/* What a node complains of: all of it is in the node log, and so much is kept for people until it has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/net/core.h"
#include "broker/node.h"

static char last[LEAT_COMPLAINT_BYTES_MAX + 1];
static unsigned lines;

static void each(void *arg, const char *line)
{
    assert_ptr_equal(arg, &lines);
    lines++;
    snprintf(last, sizeof last, "%s", line);
}

static unsigned told(const struct leat_node *node)
{
    lines = 0;
    last[0] = '\0';
    leat_node_complaints(node, each, &lines);
    return lines;
}

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    assert_int_equal(level, LEAT_NODE_LOG_ERROR);
    snprintf(ctx, LEAT_COMPLAINT_BYTES_MAX, "%s", line);
}

static void complaints_are_kept(void **state)
{
    (void)state;
    char line[LEAT_COMPLAINT_BYTES_MAX];
    char *kept[LEAT_COMPLAINTS_MAX + 1] = {NULL};
    struct leat_node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->complaints = kept;
    leat_node_log_set(node_log, line, LEAT_NODE_LOG_ERROR);
    assert_int_equal(told(node), 0);
    leat_node_complain(node, "log %u is damaged", 7);
    assert_string_equal(line, "log 7 is damaged");
    assert_int_equal(told(node), 1);
    assert_string_equal(last, "log 7 is damaged");
    for (unsigned i = 1; i < LEAT_COMPLAINTS_MAX; i++)
        leat_node_complain(node, "log %u", i);
    assert_int_equal(told(node), LEAT_COMPLAINTS_MAX);
    assert_string_equal(last, "log 255");
    leat_node_complain(node, "one more");
    leat_node_complain(node, "another");
    assert_string_equal(line, "another");
    assert_int_equal(told(node), LEAT_COMPLAINTS_MAX + 1);
    assert_string_equal(last, "and 2 complaints more, see the node log");
    assert_null(kept[LEAT_COMPLAINTS_MAX]);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    for (unsigned i = 0; i < LEAT_COMPLAINTS_MAX; i++)
        leat_mem_free(kept[i]);
    free(node);
}

/* Memory may go only when a node that was up has stopped, its last flush succeeded, and nothing is damaged. */
static void the_pool_is_spent_by_an_orderly_stop_alone(void **state)
{
    (void)state;
    char *kept[LEAT_COMPLAINTS_MAX] = {NULL};
    struct leat_node *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->complaints = kept;
    node->store = calloc(1, 1024 * 1024); /* without a segment */
    assert_non_null(node->store);
    node->life = LEAT_LIFE_STOPS;
    node->rc = LEAT_OK;
    assert_true(leat_node_pool_is_spent(node));
    for (enum leat_node_life life = LEAT_LIFE_MADE; life <= LEAT_LIFE_GIVES_UP; life++) {
        node->life = life;
        assert_int_equal(leat_node_pool_is_spent(node), life == LEAT_LIFE_STOPS);
        /* A node that stops still knows all its replicas: other nodes may ask. */
        assert_int_equal(leat_node_is_up(node), life == LEAT_LIFE_UP || life == LEAT_LIFE_STOPS);
    }
    node->life = LEAT_LIFE_STOPS;
    node->rc = LEAT_E_DISK;
    assert_false(leat_node_pool_is_spent(node));
    node->rc = LEAT_OK;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    leat_node_complain(node, "segment 3 is damaged");
    assert_false(leat_node_pool_is_spent(node));
    leat_mem_free(kept[0]);
    free(node->store);
    free(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complaints_are_kept),
        cmocka_unit_test(the_pool_is_spent_by_an_orderly_stop_alone),
    };
    return cmocka_run_group_tests_name("broker complain", tests, NULL, NULL);
}
