/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what has come a core does in a turn, by news.c alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/data/core_data.h"
#include "broker/data/news.h"
#include "tests/broker/alone.h"

static unsigned stepped;
static bool step_once(struct leat_news *news, struct leat_core *core, int32_t *left)
{
    (void)news, (void)left;
    assert_ptr_equal(core, &alone.cores[0]);
    stepped++;
    return true;
}

/* Goal: as much as a turn has room for is done in it, and no more. */
static void last_piece_of_a_turns_work_is_done_in_it(void **state)
{
    (void)state;
    alone_begin();
    struct leat_core *core = &alone.cores[0];
    struct leat_news news[2];
    stepped = 0;
    leat_news_init(core);
    core->data->news->left = 1;
    leat_news_take(core, &news[0], step_once);
    assert_int_equal(stepped, 1);
    leat_news_take(core, &news[1], step_once);
    assert_int_equal(stepped, 1);
    assert_said("mail to 0\n");
    leat_news_turn_end(core);
    alone_deliver();
    assert_int_equal(stepped, 2);
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_piece_of_a_turns_work_is_done_in_it),
    };
    return cmocka_run_group_tests_name("broker news", tests, NULL, NULL);
}
