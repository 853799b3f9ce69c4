/* SPDX-License-Identifier: Apache-2.0 */
/* Streams found, made, changed and deleted, by streams.c alone: what is said to the coordinators, and waited for. */
#include "broker/admin/core_admin.h"
#include "broker/data/core_data.h"
#include "tests/broker/made_rig.h"

/* ---- making ---- */

static void on_made(struct leat_maker *maker)
{
    assert_ptr_equal(maker->owner, &it);
    assert_int_equal(atomic_load(&alone.node.logs_making), 0);
    said("made %s %u: %s", leat_err_name(maker->rc), maker->id, maker->error.text);
}

static void make(struct leat_maker *maker)
{
    const struct leat_stream_settings settings = {.streamlets = 3, .logs = 4};
    *maker = (struct leat_maker){.address = 99, .on_done = on_made, .owner = &it};
    leat_maker_start(core, maker, "orders", 6, &settings);
    assert_int_equal(atomic_load(&alone.node.logs_making), 12);
    char expected[96];
    snprintf(expected, sizeof expected,
             "coordinate %d \"orders\" for 99: change 0, 3 x 4, cores 2 of 100\n",
             LEAT_COORDINATE_STREAM_CREATE);
    assert_said(expected);
}

static void coordinated(leat_err rc)
{
    it.request->rc = rc == LEAT_OK ? LEAT_OK : leat_error_set(&it.request->error, rc, "not so");
    it.request->desc = rc == LEAT_OK ? alone.desc : NULL;
    it.request->on_done(it.request);
}

static void first_ready(struct leat_list *list)
{
    struct leat_list *link = leat_list_pop_front(list);
    assert_non_null(link);
    struct leat_stream_wait *wait = LEAT_CONTAINER(link, struct leat_stream_wait, link);
    wait->on_ready(wait);
}

static void ready(struct leat_list *list)
{
    assert_true(list->next == list->prev); /* one at most */
    first_ready(list);
}

static void stream_that_is_made_is_waited_for(void **state)
{
    (void)state;
    struct leat_maker maker;
    begin();
    make(&maker);
    coordinated(LEAT_E_TOO_MANY);
    assert_said("made TOO_MANY 0: not so\n");
    assert_int_equal(it.unrefs, 0);
    make(&maker); /* it is here, and every core has it */
    alone.stream.published = true;
    coordinated(LEAT_OK);
    assert_said("made OK 7: \n");
    assert_int_equal(it.unrefs, 1);
    make(&maker); /* it is here */
    alone.stream.published = false;
    coordinated(LEAT_OK);
    assert_said("");
    assert_int_equal(atomic_load(&alone.node.logs_making), 12);
    ready(&alone.stream.waiters);
    assert_said("made OK 7: \n");
    make(&maker); /* it is on its way */
    alone.no_stream = true;
    core->data->stream_seen = 6;
    coordinated(LEAT_OK);
    assert_said("");
    assert_int_equal(maker.wait.id, 7);
    ready(&core->admin->stream_awaits);
    assert_said("made OK 7: \n");
    make(&maker); /* it came by, and was deleted */
    core->data->stream_seen = 7;
    coordinated(LEAT_OK);
    assert_said("made OK 7: \n");
    end();
}

/* ---- finding ---- */

static void on_sought(struct leat_seeker *seeker)
{
    assert_ptr_equal(seeker->owner, &it);
    said("sought");
}

static char names[3][LEAT_STREAM_NAME_BYTES_MAX + 1] = {"orders", "orders", "orders"};
static struct leat_error errors[3];

static void seek_for(struct leat_seeker *seeker, uint32_t count)
{
    memset(errors, 0, sizeof errors);
    it.seeks = 0;
    *seeker = (struct leat_seeker){.core = core,
                                   .sharer = &it.sharer,
                                   .address = 99,
                                   .may_create = true,
                                   .settings = {.streamlets = 3, .logs = 4},
                                   .count = count,
                                   .names = names,
                                   .errors = errors,
                                   .on_done = on_sought,
                                   .owner = &it};
}

#define RATE                                                                                       \
    "has 1 of own asked: 100, 5\ntake 1 of all asked: 200, 10\ntake 1 of own asked: 100, 5\n"

static void assert_made(const char *sought)
{
    char expected[256];
    snprintf(expected, sizeof expected,
             "%s" RATE "coordinate %d \"orders\" for 99: change 0, 3 x 4, cores 2 of 100\n", sought,
             LEAT_COORDINATE_STREAM_CREATE);
    assert_said(expected);
}

static void streams_are_sought_one_after_the_other(void **state)
{
    (void)state;
    struct leat_seeker seeker;
    begin();
    seek_for(&seeker, 3);
    it.sought[1] = LEAT_E_AGAIN;
    leat_seeker_start(&seeker);
    assert_said("seek orders\nseek orders, caught up\n");
    it.sought[1] = LEAT_OK;
    it.seek->on_again(it.seek);
    assert_said("seek orders, caught up\nseek orders, caught up\nsought\n");
    seek_for(&seeker, 0);
    leat_seeker_start(&seeker);
    assert_said("sought\n");
    it.sought[0] = LEAT_E_UNKNOWN_STREAM; /* nothing is made for who may not */
    it.sought[1] = LEAT_E_TIMEOUT;
    seek_for(&seeker, 2);
    seeker.may_create = false;
    seeker.was_there = true, seeker.at = 9, seeker.seek.caught_up = true;
    leat_seeker_start(&seeker);
    assert_said("seek orders\nseek orders, caught up\nsought\n");
    assert_int_equal(errors[0].code, LEAT_E_UNKNOWN_STREAM);
    assert_int_equal(errors[1].code, LEAT_E_TIMEOUT);
    it.sought[0] = LEAT_E_TIMEOUT; /* nor when it is not known that there is none */
    seek_for(&seeker, 1);
    leat_seeker_start(&seeker);
    assert_said("seek orders\nsought\n");
    end();
}

static void stream_that_is_missing_is_made(void **state)
{
    (void)state;
    struct leat_seeker seeker;
    begin();
    it.sought[0] = LEAT_E_UNKNOWN_STREAM;
    seek_for(&seeker, 2);
    leat_seeker_start(&seeker);
    assert_made("seek orders\n");
    assert_int_equal(errors[0].code, LEAT_OK);
    alone.stream.published = true;
    coordinated(LEAT_OK);
    assert_said("seek orders, caught up\nsought\n");
    assert_int_equal(errors[0].code, LEAT_OK);
    seek_for(&seeker, 2); /* it can't be made */
    leat_seeker_start(&seeker);
    said_enough();
    coordinated(LEAT_E_TIMEOUT);
    assert_said("seek orders, caught up\nsought\n");
    assert_int_equal(errors[0].code, LEAT_E_TIMEOUT);
    assert_string_equal(errors[0].text, "not so");
    it.sought[1] = LEAT_E_UNKNOWN_STREAM; /* another made it just now: it is looked for once more */
    seek_for(&seeker, 1);
    seeker.was_there = true;
    leat_seeker_start(&seeker);
    said_enough();
    coordinated(LEAT_E_STREAM_EXISTS);
    assert_made("seek orders\n");
    coordinated(LEAT_E_STREAM_EXISTS);
    assert_said("sought\n");
    assert_int_equal(errors[0].code, LEAT_E_STREAM_EXISTS);
    it.sought[1] = LEAT_OK; /* each name that another made is */
    it.sought[2] = LEAT_E_UNKNOWN_STREAM;
    seek_for(&seeker, 2);
    leat_seeker_start(&seeker);
    said_enough();
    coordinated(LEAT_E_STREAM_EXISTS);
    assert_made("seek orders\nseek orders, caught up\n");
    it.seeks = 1;
    coordinated(LEAT_E_STREAM_EXISTS);
    assert_said("seek orders\nsought\n");
    end();
}

static void stream_that_may_not_be_made_is_told_now_and_then(void **state)
{
    (void)state;
    static const char *const told =
        "node log warn: stream \"orders\", asked for by who would use it, is not made\n";
    struct leat_seeker seeker;
    begin();
    for (unsigned i = 0; i < 3; i++)
        it.sought[i] = LEAT_E_UNKNOWN_STREAM;
    it.name = LEAT_E_BAD_NAME;
    seek_for(&seeker, 1);
    leat_seeker_start(&seeker);
    assert_said("seek orders\nsought\n");
    assert_int_equal(errors[0].code, LEAT_E_BAD_NAME);
    it.name = LEAT_OK;
    seek_for(&seeker, 1);
    seeker.settings.streamlets = LEAT_BROKER_STREAM_LOGS_MAX;
    leat_seeker_start(&seeker);
    assert_true(said_one("seek orders\n") && said_one(told));
    assert_said("sought\n");
    assert_int_equal(errors[0].code, LEAT_E_TOO_MANY);
    for (unsigned i = 0; i < 3; i++) {
        alone.now_us += i == 1 ? LEAT_REFUSAL_TELL_US - 1 : i == 2 ? 1 : 0;
        it.full_own = true;
        seek_for(&seeker, 1);
        leat_seeker_start(&seeker);
        assert_true(said_one("seek orders\n") && said_one("has 1 of own asked"));
        assert_int_equal(said_one(told), i == 2);
        assert_said("sought\n");
        assert_int_equal(errors[0].code, LEAT_E_STARTING);
    }
    end();
}

static void who_wants_all_waits_for_what_is_committed(void **state)
{
    (void)state;
    struct leat_seeker seeker;
    begin();
    seek_for(&seeker, 1);
    seeker.all = true;
    leat_seeker_start(&seeker); /* nobody else is there */
    assert_said("seek orders\nsought\n");
    core->members.links = (void *)&it;
    seek_for(&seeker, 1);
    leat_seeker_start(&seeker);
    assert_said("seek orders\nsought\n");
    seek_for(&seeker, 1);
    seeker.all = true;
    leat_seeker_start(&seeker);
    assert_said("catch up for 99\n");
    it.catch_up->on_done(it.catch_up, LEAT_E_TIMEOUT);
    assert_said("seek orders, caught up\nsought\n");
    end();
}

/* ---- deleting ---- */

static void on_deleted(struct leat_deleter *deleter)
{
    assert_ptr_equal(deleter->owner, &it);
    said("deleted %s: %s", leat_err_name(deleter->rc), deleter->error.text);
}

static void delete (struct leat_deleter *deleter)
{
    *deleter =
        (struct leat_deleter){.core = core, .address = 99, .on_done = on_deleted, .owner = &it};
    leat_deleter_start(deleter, "orders", 6);
    char expected[96];
    snprintf(expected, sizeof expected,
             "coordinate %d \"orders\" for 99: change 0, 0 x 0, cores 0 of 0\n",
             LEAT_COORDINATE_STREAM_DELETE);
    assert_said(expected);
    deleter->request.stream_id = ALONE_STREAM;
}

static void stream_that_is_deleted_is_waited_for(void **state)
{
    (void)state;
    struct leat_deleter deleter, other;
    begin();
    delete (&deleter);
    coordinated(LEAT_E_TIMEOUT);
    assert_said("deleted TIMEOUT: not so\n");
    assert_true(leat_list_empty(&alone.stream.waiters));
    delete (&deleter);
    coordinated(LEAT_OK);
    for (unsigned i = 0; i < 2; i++) { /* it was only published */
        assert_said("");
        ready(&alone.stream.waiters);
    }
    delete (&other);
    coordinated(LEAT_OK);
    first_ready(&alone.stream.waiters); /* which waits behind the other now */
    alone.no_stream = true;
    for (unsigned i = 0; i < 2; i++) {
        assert_said("");
        first_ready(&alone.stream.waiters);
        assert_said("deleted OK: \n");
    }
    assert_true(leat_list_empty(&alone.stream.waiters));
    delete (&deleter); /* no core here has it any more */
    coordinated(LEAT_OK);
    assert_said("deleted OK: \n");
    end();
}

/* ---- changing ---- */

static void on_changed(struct leat_changer *changer)
{
    assert_ptr_equal(changer->owner, &it);
    assert_int_equal(atomic_load(&alone.node.logs_making), 0);
    said("changed %s: %s", leat_err_name(changer->rc), changer->error.text);
}

static void change(struct leat_changer *changer, uint32_t what, uint64_t making)
{
    *changer = (struct leat_changer){.core = core,
                                     .address = 99,
                                     .change = what,
                                     .settings = {.streamlets = 3, .logs = 4},
                                     .on_done = on_changed,
                                     .owner = &it};
    leat_changer_start(changer, "orders", 6);
    assert_int_equal(atomic_load(&alone.node.logs_making), making);
    char expected[96];
    snprintf(expected, sizeof expected,
             "coordinate %d \"orders\" for 99: change %u, 3 x 4, cores 0 of 0\n",
             LEAT_COORDINATE_STREAM_CHANGE, what);
    assert_said(expected);
}

static void stream_that_is_changed_is_waited_for(void **state)
{
    (void)state;
    struct leat_changer changer;
    begin();
    change(&changer, LEAT_CHANGE_STREAMLETS, 12); /* no such stream is here */
    coordinated(LEAT_E_TIMEOUT);
    assert_said("changed TIMEOUT: not so\n");
    assert_int_equal(it.unrefs, 0);
    it.named = true;
    alone.stream.logs = 8;
    change(&changer, LEAT_CHANGE_STREAMLETS | LEAT_CHANGE_RETENTION_MS, 4);
    coordinated(LEAT_OK);
    assert_said("catch up for 99\n");
    assert_int_equal(it.unrefs, 1);
    it.catch_up->on_done(it.catch_up, LEAT_E_TIMEOUT);
    assert_said("changed OK: \n");
    static const uint64_t have[] = {11, 12, 13};
    for (unsigned i = 0; i < 4; i++) {
        alone.stream.logs = have[i % 3];
        change(&changer, i < 3 ? LEAT_CHANGE_STREAMLETS : LEAT_CHANGE_RETENTION_MS, i == 0);
        coordinated(LEAT_E_INVALID);
        assert_said("changed INVALID: not so\n");
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_that_is_made_is_waited_for),
        cmocka_unit_test(streams_are_sought_one_after_the_other),
        cmocka_unit_test(stream_that_is_missing_is_made),
        cmocka_unit_test(stream_that_may_not_be_made_is_told_now_and_then),
        cmocka_unit_test(who_wants_all_waits_for_what_is_committed),
        cmocka_unit_test(stream_that_is_deleted_is_waited_for),
        cmocka_unit_test(stream_that_is_changed_is_waited_for),
    };
    return cmocka_run_group_tests_name("broker made", tests, NULL, NULL);
}
