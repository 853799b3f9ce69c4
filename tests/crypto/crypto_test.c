/* Tags of messages: what they notice, and that they are the standard's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/mac.h"

static const struct leat_key key = {{1, 2, 3}};

static struct leat_mac *make(const struct leat_key *of, const char *transcript, const char *label)
{
    struct leat_mac *mac = NULL;
    assert_int_equal(leat_mac_create(of, transcript, strlen(transcript), label, &mac), LEAT_OK);
    return mac;
}

struct pair {
    struct leat_mac *sender, *receiver;
};

static int pair_make(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    pair->sender = make(&key, "hello", "there");
    pair->receiver = make(&key, "hello", "there");
    *state = pair;
    return 0;
}

static int pair_drop(void **state)
{
    struct pair *pair = *state;
    leat_mac_destroy(&pair->sender);
    leat_mac_destroy(&pair->receiver);
    free(pair);
    return 0;
}

static void tag_of(struct leat_mac *mac, const char *text, uint8_t out[LEAT_TAG_BYTES])
{
    leat_mac_tag(mac, &(struct leat_iov){text, strlen(text)}, 1, out);
}

static void messages_in_order_pass(void **state)
{
    struct pair *pair = *state;
    uint8_t tag[LEAT_TAG_BYTES];
    for (unsigned i = 0; i < 1000; i++) {
        tag_of(pair->sender, "the same each time", tag);
        assert_true(leat_mac_check(pair->receiver, "the same each time", 18, tag));
    }
}

static void any_changed_bit_is_noticed(void **state)
{
    struct pair *pair = *state;
    uint8_t tag[LEAT_TAG_BYTES], text[65];
    for (size_t bit = 0; bit < 8 * (sizeof text + sizeof tag); bit++) {
        memset(text, 0x5a, sizeof text);
        leat_mac_tag(pair->sender, &(struct leat_iov){text, sizeof text}, 1, tag);
        uint8_t *at = bit < 8 * sizeof text ? text + bit / 8 : tag + (bit / 8 - sizeof text);
        *at ^= (uint8_t)(1u << bit % 8);
        assert_false(leat_mac_check(pair->receiver, text, sizeof text, tag));
    }
}

static void a_message_left_out_repeated_or_cut_is_noticed(void **state)
{
    struct pair *pair = *state;
    uint8_t one[LEAT_TAG_BYTES], two[LEAT_TAG_BYTES];
    tag_of(pair->sender, "one", one);
    tag_of(pair->sender, "two", two);
    assert_false(leat_mac_check(pair->receiver, "two", 3, two)); /* before its turn */
    leat_mac_again(pair->receiver);
    assert_false(leat_mac_check(pair->receiver, "on", 2, one));
    leat_mac_again(pair->receiver);
    assert_true(leat_mac_check(pair->receiver, "one", 3, one));
    assert_false(leat_mac_check(pair->receiver, "one", 3, one)); /* a second time */
    leat_mac_again(pair->receiver);
    assert_true(leat_mac_check(pair->receiver, "two", 3, two));
}

static void another_key_transcript_or_label_gives_another_tag(void **state)
{
    (void)state;
    struct leat_key other = key;
    other.bytes[LEAT_KEY_BYTES - 1] ^= 1;
    const struct {
        const struct leat_key *key;
        const char *transcript, *label;
    } cases[] = {{&key, "a", "x"}, {&other, "a", "x"}, {&key, "b", "x"}, {&key, "a", "y"}};
    uint8_t tags[4][LEAT_TAG_BYTES];
    for (unsigned i = 0; i < 4; i++) {
        struct leat_mac *mac = make(cases[i].key, cases[i].transcript, cases[i].label);
        tag_of(mac, "text", tags[i]);
        leat_mac_destroy(&mac);
        for (unsigned j = 0; j < i; j++)
            assert_memory_not_equal(tags[i], tags[j], LEAT_TAG_BYTES);
    }
}

/* A sender gathers pieces, a receiver has them in one. */
static void pieces_give_the_tag_of_the_whole(void **state)
{
    struct pair *pair = *state;
    static uint8_t bytes[100000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    const size_t cuts[][3] = {{24, 7, 99969}, {0, 1, 99999}, {16, 16, 99968}, {99999, 1, 0}};
    for (unsigned i = 0; i < 4; i++) {
        uint8_t tag[LEAT_TAG_BYTES];
        struct leat_iov iovs[3];
        size_t at = 0;
        for (unsigned j = 0; j < 3; at += cuts[i][j++])
            iovs[j] = (struct leat_iov){bytes + at, cuts[i][j]};
        leat_mac_tag(pair->sender, iovs, 3, tag);
        assert_true(leat_mac_check(pair->receiver, bytes, sizeof bytes, tag));
    }
}

/* What docs/cluster-protocol.md promises to whoever writes another implementation: computed by
 * Python's `cryptography`, HKDF(SHA256, salt=b"hello", info=b"there") and AESGCM with empty data. */
static void tags_are_the_standards(void **state)
{
    struct pair *pair = *state;
    static const uint8_t first[LEAT_TAG_BYTES] = {0x0c, 0x51, 0xe4, 0x85, 0xe2, 0x35, 0xba, 0x86,
                                                  0x6d, 0x16, 0x47, 0x3f, 0x8a, 0x19, 0x25, 0x5c},
                         second[LEAT_TAG_BYTES] = {0xad, 0x79, 0xd7, 0xdc, 0xb2, 0xc0, 0x5d, 0x0f,
                                                   0xe7, 0xe6, 0xad, 0x7f, 0x61, 0x2f, 0xa7, 0xd6};
    uint8_t tag[LEAT_TAG_BYTES];
    tag_of(pair->sender, "one", tag);
    assert_memory_equal(tag, first, sizeof first);
    tag_of(pair->sender, "two", tag);
    assert_memory_equal(tag, second, sizeof second);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, pair_make, pair_drop)
    const struct CMUnitTest tests[] = {
        TEST(messages_in_order_pass),
        TEST(any_changed_bit_is_noticed),
        TEST(a_message_left_out_repeated_or_cut_is_noticed),
        TEST(another_key_transcript_or_label_gives_another_tag),
        TEST(pieces_give_the_tag_of_the_whole),
        TEST(tags_are_the_standards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
