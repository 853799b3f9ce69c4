/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of messages: what they notice, and that they are the standard's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/aegis.h"
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

/* What docs/cluster-protocol.md promises to whoever writes another implementation: computed by Python, HKDF by its
 * hmac and hashlib (salt b"hello", info b"there"), AEGISMAC-128X2 step by step as the text has it. */
static void tags_are_the_standards(void **state)
{
    struct pair *pair = *state;
    static const uint8_t first[LEAT_TAG_BYTES] = {0x7a, 0x62, 0x31, 0xe4, 0x2b, 0x66, 0x08, 0xd3,
                                                  0xde, 0x45, 0xa7, 0x54, 0x38, 0x82, 0xaa, 0x56},
                         second[LEAT_TAG_BYTES] = {0xd5, 0x0b, 0xf3, 0x43, 0xbc, 0xa6, 0x18, 0x23,
                                                   0x45, 0xd5, 0x5a, 0x5c, 0x7c, 0x7b, 0x7d, 0x9c};
    uint8_t tag[LEAT_TAG_BYTES];
    tag_of(pair->sender, "one", tag);
    assert_memory_equal(tag, first, sizeof first);
    tag_of(pair->sender, "two", tag);
    assert_memory_equal(tag, second, sizeof second);
}

/* ---- one algorithm by several kinds of instructions ---- */

/* The specification's test vector of AEGISMAC-128X2. */
static void every_path_gives_the_published_tag(void **state)
{
    (void)state;
    static const uint8_t aegis_key[16] = {0x10, 0x01}, nonce[16] = {0x10, 0x00, 0x02},
                         right[16] = {0x68, 0x73, 0xee, 0x34, 0xe6, 0xb5, 0xc5, 0x91,
                                      0x43, 0xb6, 0xd3, 0x5c, 0x5e, 0x4f, 0x2c, 0x6e};
    uint8_t data[35], tag[16];
    struct leat_aegis_path paths[LEAT_AEGIS_PATHS_MAX];
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    leat_aegis_paths(paths);
    for (unsigned i = 0; i < LEAT_AEGIS_PATHS_MAX && paths[i].tag; i++) {
        if (!paths[i].usable) {
            print_message("no %s here\n", paths[i].name);
            continue;
        }
        paths[i].tag(aegis_key, nonce, &(struct leat_iov){data, sizeof data}, 1, tag);
        assert_memory_equal(tag, right, sizeof right);
    }
}

/* Of every length up to some blocks, cut anywhere, at any address: the path without instructions of its own says what
 * is right. */
static void every_path_gives_the_same_tag(void **state)
{
    (void)state;
    enum { ROUNDS = 3000, BYTES_MAX = 700, PIECES = 4 };
    static uint8_t bytes[BYTES_MAX + 64];
    struct leat_aegis_path paths[LEAT_AEGIS_PATHS_MAX];
    unsigned count = 0;
    uint64_t chance = 1;
    leat_aegis_paths(paths);
    while (count < LEAT_AEGIS_PATHS_MAX && paths[count].tag)
        count++;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct leat_iov pieces[PIECES];
        uint8_t right[16], tag[16];
        for (size_t i = 0; i < sizeof bytes; i++) {
            chance = chance * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(chance >> 56);
        }
        size_t left = round % BYTES_MAX;
        const uint8_t *at = bytes + 32 + (chance >> 40) % 32;
        struct leat_iov whole = {at, left};
        for (unsigned i = 0; i < PIECES; i++) {
            size_t piece = i == PIECES - 1 ? left : (chance >> 8 * i & 0xffff) % (left + 1);
            pieces[i] = (struct leat_iov){piece > 0 ? at : NULL, piece};
            at += piece;
            left -= piece;
        }
        paths[count - 1].tag(bytes, bytes + 16, &whole, 1, right);
        for (unsigned i = 0; i < count; i++) {
            if (!paths[i].usable) continue;
            paths[i].tag(bytes, bytes + 16, pieces, PIECES, tag);
            assert_memory_equal(tag, right, sizeof right);
        }
    }
}

/* Bytes behind a message are zeros to the algorithm, and its length tells them apart. */
static void zeros_behind_a_message_are_noticed(void **state)
{
    struct pair *pair = *state;
    static const uint8_t zeros[130];
    uint8_t tag[LEAT_TAG_BYTES];
    for (size_t bytes = 0; bytes < sizeof zeros; bytes++) {
        leat_mac_tag(pair->sender, &(struct leat_iov){zeros, bytes}, 1, tag);
        assert_false(leat_mac_check(pair->receiver, zeros, bytes + 1, tag));
        leat_mac_again(pair->receiver);
        assert_true(leat_mac_check(pair->receiver, zeros, bytes, tag));
    }
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
        TEST(zeros_behind_a_message_are_noticed),
        cmocka_unit_test(every_path_gives_the_published_tag),
        cmocka_unit_test(every_path_gives_the_same_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
