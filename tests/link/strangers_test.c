/* SPDX-License-Identifier: Apache-2.0 */
/* link/strangers.c alone: how many may wait that have proved nothing, and which of them makes room. Cutting, and the
 * node log, are played here (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/internal.h"
#include "tests/trace.h"

static struct leat_links links;
static struct leat_link all[LEAT_LINK_STRANGERS_MAX + 8];
static bool keeps; /* who is cut is not gone by that */

void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why);
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    bool usual =
        rc == LEAT_E_TOO_MANY && strcmp(why, "too many have not proved the cluster's key") == 0;
    trace("cut %td%s\n", link - all, usual ? "" : " otherwise");
    if (!keeps) leat_link_stranger_end(link);
}
void __wrap_leat_link_complain(struct leat_link *link, const char *text);
void __wrap_leat_link_complain(struct leat_link *link, const char *text)
{
    bool usual = strcmp(text, "too many connections come from there that do not prove the "
                              "cluster's key, and the oldest is closed") == 0;
    trace("node log %td%s\n", link - all, usual ? "" : " otherwise");
}

static int begin(void **state)
{
    (void)state;
    memset(&links, 0, sizeof links);
    memset(all, 0, sizeof all);
    leat_list_init(&links.strangers);
    links.strangers_max = 8;
    keeps = false;
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i].links = &links;
        leat_list_init(&all[i].strange);
    }
    trace_begin();
    return 0;
}

#define STRANGERS_TEST(name) cmocka_unit_test_setup(name, begin)

/* Link i comes from an address. */
static void comes(unsigned i, unsigned address)
{
    memset(all[i].key, 0x20, sizeof all[i].key);
    all[i].key[LEAT_NET_KEY_BYTES - 1] = (uint8_t)address;
    leat_link_stranger_begin(&all[i]);
}

static unsigned count_of(unsigned address)
{
    for (unsigned i = 0; i < links.origin_count; i++)
        if (links.origins[i].key[LEAT_NET_KEY_BYTES - 1] == address) return links.origins[i].count;
    return 0;
}

/* Goal: an address may have half of all places; a further connection of the same address evicts the address's own
 * oldest connection. */
static void stranger_of_an_address_with_half_takes_its_own_oldest(void **state)
{
    (void)state;
    comes(0, 1);
    for (unsigned i = 1; i < 5; i++)
        comes(i, 2);
    TRACE_IS("");
    assert_int_equal(links.stranger_count, 5);
    assert_int_equal(links.origin_count, 2);
    assert_int_equal(count_of(1), 1);
    assert_int_equal(count_of(2), 4);
    comes(5, 2);
    TRACE_IS("node log 1\ncut 1\n");
    comes(6, 2);
    TRACE_IS("node log 2\ncut 2\n");
    assert_int_equal(links.stranger_count, 5);
    assert_int_equal(count_of(2), 4);
    comes(7, 1);
    comes(8, 3); /* others are not short of places */
    TRACE_IS("");
    assert_int_equal(count_of(1), 2);
    keeps = true; /* who is cut stays for a moment: one is cut for each that comes */
    comes(9, 2);
    TRACE_IS("node log 3\ncut 3\n");
    assert_int_equal(count_of(2), 5);
    assert_int_equal(links.stranger_count, 8);
    comes(10, 2); /* in a full table, too: nobody else gives way for it */
    TRACE_IS("node log 3\ncut 3\n");
}

/* Goal: in a full table the address that has most gives way, by its oldest; of those with as many the first. */
static void stranger_that_finds_no_place_takes_one_of_who_has_most(void **state)
{
    (void)state;
    static const unsigned addresses[] = {1, 2, 3, 2, 3, 3, 2};
    for (unsigned i = 0; i < 7; i++)
        comes(i, addresses[i]);
    comes(7, 4);
    TRACE_IS(""); /* the last place */
    assert_int_equal(links.stranger_count, 8);
    comes(8, 5);
    TRACE_IS("node log 1\ncut 1\n"); /* of 2, which is before 3 */
    comes(9, 5);
    TRACE_IS("node log 2\ncut 2\n"); /* of 3, which has most now */
    assert_int_equal(links.stranger_count, 8);
    assert_int_equal(count_of(3), 2);
    comes(10, 6);
    TRACE_IS("node log 3\ncut 3\n");
    assert_int_equal(count_of(2), 1);
}

/* Goal: the address with the most connections is found at the end of the list as well as at its beginning. */
static void stranger_that_has_most_is_found_wherever_it_stands(void **state)
{
    (void)state;
    for (unsigned most = 0; most < 4; most++) {
        char expected[40];
        (void)begin(NULL);
        unsigned i = 0;
        for (unsigned address = 0; address < 4; address++)
            comes(i++, 10 + address);
        for (unsigned k = 0; k < 2; k++)
            comes(i++, 10 + most);
        comes(i++, 20);
        comes(i++, 21);
        TRACE_IS("");
        comes(i, 22);
        snprintf(expected, sizeof expected, "node log %u\ncut %u\n", most, most);
        TRACE_IS(expected);
    }
}

/* Goal: a row that has moved to the place of another is looked at there alone: what it had before it moved counts no
 * more. */
static void stranger_that_has_most_is_not_one_that_had(void **state)
{
    (void)state;
    static const unsigned addresses[] = {1, 2, 3, 4, 4, 4, 4};
    for (unsigned i = 0; i < 7; i++)
        comes(i, addresses[i]);
    leat_link_stranger_end(&all[0]); /* 4, with four connections, takes the place of 1 */
    leat_link_stranger_end(&all[3]);
    leat_link_stranger_end(&all[4]);
    comes(7, 2), comes(8, 2);
    comes(9, 3), comes(10, 3);
    TRACE_IS("");
    assert_int_equal(links.stranger_count, 8);
    comes(11, 5);
    TRACE_IS("node log 1\ncut 1\n"); /* of 2, which has three by now, as 3 has */
}

/* Goal: a connection that has proved its key, or ends, gives its place back, once; the last connection of an address
 * removes the address's row. */
static void stranger_that_ends_gives_its_place(void **state)
{
    (void)state;
    comes(0, 1);
    comes(1, 2);
    comes(2, 3);
    comes(3, 1);
    leat_link_stranger_end(&all[0]);
    assert_int_equal(links.stranger_count, 3);
    assert_int_equal(links.origin_count, 3);
    assert_int_equal(count_of(1), 1);
    leat_link_stranger_end(&all[0]); /* it is none any more */
    assert_int_equal(links.stranger_count, 3);
    assert_int_equal(count_of(1), 1);
    leat_link_stranger_end(&all[3]); /* the last row takes the first's place */
    assert_int_equal(links.origin_count, 2);
    assert_int_equal(links.origins[0].key[LEAT_NET_KEY_BYTES - 1], 3);
    assert_int_equal(count_of(2), 1);
    leat_link_stranger_end(&all[1]);
    leat_link_stranger_end(&all[2]);
    assert_int_equal(links.origin_count + links.stranger_count, 0);
    assert_true(leat_list_empty(&links.strangers));
    comes(0, 1);
    assert_int_equal(count_of(1), 1); /* from nothing again */
    TRACE_IS("");
}

/* Goal: addresses differ by each byte of their key. */
static void stranger_is_of_one_address_by_all_of_its_key(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < LEAT_NET_KEY_BYTES && byte < 7; byte++) {
        memset(all[byte].key, 0, sizeof all[byte].key);
        all[byte].key[byte == 6 ? LEAT_NET_KEY_BYTES - 1 : byte] = 1;
        leat_link_stranger_begin(&all[byte]);
        assert_int_equal(links.origin_count, byte + 1);
        assert_memory_equal(links.origins[byte].key, all[byte].key, LEAT_NET_KEY_BYTES);
    }
}

/* Goal: there is a row for each of as many addresses as there may be strangers. */
static void strangers_of_as_many_addresses_have_room(void **state)
{
    (void)state;
    links.strangers_max = LEAT_LINK_STRANGERS_MAX;
    for (unsigned i = 0; i < LEAT_LINK_STRANGERS_MAX; i++) {
        all[i].key[0] = (uint8_t)i;
        all[i].key[1] = (uint8_t)(i >> 8);
        leat_link_stranger_begin(&all[i]);
    }
    TRACE_IS("");
    assert_int_equal(links.origin_count, LEAT_LINK_STRANGERS_MAX);
    comes(LEAT_LINK_STRANGERS_MAX, 1);
    TRACE_IS("node log 0\ncut 0\n");
    assert_int_equal(links.origin_count, LEAT_LINK_STRANGERS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STRANGERS_TEST(stranger_of_an_address_with_half_takes_its_own_oldest),
        STRANGERS_TEST(stranger_that_finds_no_place_takes_one_of_who_has_most),
        STRANGERS_TEST(stranger_that_has_most_is_found_wherever_it_stands),
        STRANGERS_TEST(stranger_that_has_most_is_not_one_that_had),
        STRANGERS_TEST(stranger_that_ends_gives_its_place),
        STRANGERS_TEST(stranger_is_of_one_address_by_all_of_its_key),
        STRANGERS_TEST(strangers_of_as_many_addresses_have_room),
    };
    return cmocka_run_group_tests_name("link-strangers", tests, NULL, NULL);
}
