/* SPDX-License-Identifier: Apache-2.0 */
/* What a mistyped word may have meant. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"create", "list", "describe", "delete", "trim", "rebalance"};

static const char *of(const char *word)
{
    const char *found = leat_nearest_word(word, names, sizeof names / sizeof names[0]);
    return found ? found : "";
}

static void one_letter_changed_missing_or_too_many(void **state)
{
    assert_string_equal(of("creata"), "create");
    assert_string_equal(of("delte"), "delete");
    assert_string_equal(of("trimm"), "trim");
    assert_string_equal(of("tirm"), "trim"); /* two letters change places: two changes of four */
}

/* Up to half the letters. */
static void what_is_far_is_nothing(void **state)
{
    assert_string_equal(of("lxst"), "list");
    assert_string_equal(of("lxxt"), "list");
    assert_string_equal(of("xxxt"), "");
    assert_string_equal(of("produce"), "");
    assert_string_equal(of("abcdetrim"), ""); /* letters too many in front count, too */
    assert_null(leat_nearest_word("list", names, 0));
}

static void beginning_of_a_name_is_near(void **state)
{
    assert_string_equal(of("reb"), "rebalance");
    assert_string_equal(of("r"), "");
    assert_string_equal(of("de"), "describe"); /* the first of two */
}

/* The table of distances has a fixed length. */
static void longest_words(void **state)
{
    char longest[42];
    memset(longest, 'a', sizeof longest);
    longest[41] = 0;
    const char *const long_names[] = {longest};
    assert_null(leat_nearest_word("aa", names, 6));
    assert_ptr_equal(leat_nearest_word("aa", long_names, 1),
                     longest); /* a beginning, however long */
    char word[41];
    memset(word, 'b', sizeof word);
    word[39] = 'c';
    word[40] = 0;
    const char *const forty[] = {word};
    assert_ptr_equal(leat_nearest_word("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", forty, 1), word);
    assert_null(leat_nearest_word("ab", long_names, 1));
    assert_null(leat_nearest_word(longest, forty, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_letter_changed_missing_or_too_many),
        cmocka_unit_test(what_is_far_is_nothing),
        cmocka_unit_test(beginning_of_a_name_is_near),
        cmocka_unit_test(longest_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
