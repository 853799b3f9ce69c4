/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of bodies (rows.h) and the page of docs that shows them are compared. After cmocka.h. */
#ifndef LEAT_TESTS_ROWS_PAGE_H
#define LEAT_TESTS_ROWS_PAGE_H

#include <ctype.h>
#include <stdlib.h>

#include "tests/rows.h"

enum { ROWS_PAGE_BYTES_MAX = 256 * 1024, ROWS_SHOWN_BYTES_MAX = 4096 };

/* The page, with its line breaks as spaces inside backticks, "..." for an ellipsis. */
static inline const char *rows_page_read(const char *path)
{
    static char text[ROWS_PAGE_BYTES_MAX];
    FILE *page = fopen(path, "r");
    assert_non_null(page);
    size_t used = 0;
    bool code = false;
    for (int c = fgetc(page); c != EOF; c = fgetc(page)) {
        assert_true(used + 4 < sizeof text);
        if (c == '`') code = !code;
        if (c == 0xe2 && code) { /* U+2026 */
            (void)fgetc(page);
            (void)fgetc(page);
            memcpy(text + used, "...", 3);
            used += 3;
            continue;
        }
        bool space = code && isspace(c);
        while (space && isspace(c))
            c = fgetc(page);
        if (space) {
            text[used++] = ' ';
            (void)ungetc(c, page);
            continue;
        }
        text[used++] = (char)c;
    }
    (void)fclose(page);
    text[used] = '\0';
    return text;
}

/* "9 FETCH answer": the cell of that column in the row that begins with "| 9 FETCH |" or "| 9 | FETCH |". */
static inline const char *rows_cell(const char *page, const char *place)
{
    char number[8], name[40], column[16] = "", opening[80];
    assert_in_range(sscanf(place, "%7s %39s %15s", number, name, column), 2, 3);
    (void)snprintf(opening, sizeof opening, "\n| %s %s |", number, name);
    const char *at = strstr(page, opening);
    if (at == NULL) {
        (void)snprintf(opening, sizeof opening, "\n| %s | %s |", number, name);
        at = strstr(page, opening);
    }
    if (at == NULL) fail_msg("the page has no \"%s\"", opening + 1);
    at += strlen(opening) - 1;
    const char *last = at, *second = NULL;
    for (const char *bar = at; *bar != '\0' && *bar != '\n'; bar++) {
        if (*bar != '|' || bar[1] == '\n') continue;
        if (bar != at && second == NULL) second = bar;
        last = bar;
    }
    const char *cell = strcmp(column, "answer") == 0    ? last
                       : strcmp(column, "payload") == 0 ? second
                                                        : at;
    return cell + 2;
}

/* Where the page shows that row; NULL: anywhere. */
static inline const char *rows_place(const char *page, const char *place)
{
    if (isdigit((unsigned char)place[0])) return rows_cell(page, place);
    char opening[80];
    (void)snprintf(opening, sizeof opening, "\n- %s", place);
    const char *at = strstr(page, opening);
    if (at == NULL) fail_msg("the page has no \"%s\"", opening + 1);
    return strchr(at, '`');
}

/** Every row that has a place of its own stands there. */
static inline void rows_page_expect(const char *path, const leat_msg_row_fn *rows, size_t count)
{
    const char *page = rows_page_read(path);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct leat_msg_row *row = rows[i]();
        char shown[ROWS_SHOWN_BYTES_MAX] = "`";
        rows_show(row, shown, sizeof shown);
        rows_put(shown, sizeof shown, "`");
        if (row->place[0] == '\0') continue;
        bool there = row->place[0] == '~'
                         ? strstr(page, shown) != NULL
                         : strncmp(rows_place(page, row->place), shown, strlen(shown)) == 0;
        if (there) continue;
        wrong++;
        print_error("the page should show %s (%s) as %s\n", row->place, row->name, shown);
    }
    assert_int_equal(wrong, 0);
}

static inline bool rows_have(const leat_msg_row_fn *rows, size_t count, const char *place)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i]()->place, place) == 0) return true;
    return false;
}

/** In a section's table on the page, each row's request and answer are bodies of the tables, or `[]`. */
static inline void rows_cells_expect(const char *path, const char *section,
                                     const leat_msg_row_fn *rows, size_t count)
{
    const char *page = rows_page_read(path), *at = strstr(page, section);
    assert_non_null(at);
    const char *end = strstr(at + 2, "\n## ");
    size_t seen = 0, wrong = 0;
    while ((at = strstr(at, "\n| ")) != NULL && at < end) {
        unsigned number;
        char name[40], place[80];
        at += 3;
        if (sscanf(at, "%u %39s", &number, name) != 2) continue;
        if (name[0] == '|' && sscanf(at, "%u | %39s", &number, name) != 2) continue;
        for (int answer = 0; answer < 2; answer++) {
            (void)snprintf(place, sizeof place, "%u %s%s", number, name, answer ? " answer" : "");
            bool known =
                rows_have(rows, count, place) || strncmp(rows_cell(page, place), "`[]`", 4) == 0;
            seen++;
            if (known) continue;
            wrong++;
            print_error("%s is in no table: %.60s\n", place, rows_cell(page, place));
        }
    }
    assert_true(seen > 0);
    assert_int_equal(wrong, 0);
}

#endif
