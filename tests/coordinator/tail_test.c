/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends, as one table: each row is what the coordinator holds, what the nodes answered, and the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/tail.h"

/* The log's epoch and generation, and offsets and lengths that most rows have. */
enum { EPOCH = 3, GENERATION = 2, NONE = 0 };
#define NEVER         UINT64_MAX
#define NO_OPEN_FOUND "no open segment of epoch 3, version 2 was found"

enum asking { DECIDE, LEFT };

struct one_case {
    const char *name;
    struct leat_log_record record;
    bool all_heard;
    enum asking asking;
    struct leat_tail_row rows[4]; /* up to the first of state 0 */
    enum leat_tail_reason reason;
    struct leat_tail_record end; /* ends: its CRC is the prefix's */
    unsigned holders;            /* a bit for each row */
    const char *text; /* is part of what operators read, all of it for NO_OPEN; NULL: any */
};

/* CRCs are one more than lengths; epochs, generations and CRCs that a row leaves out are the usual ones. */
static struct leat_tail_row filled(struct leat_tail_row row)
{
    if (row.epoch.v == 0) row.epoch.v = EPOCH;
    if (row.generation == 0) row.generation = GENERATION;
    if ((row.flags & LEAT_TAIL_ONLY_START) != 0) row.base_offset = row.next_offset;
    if (row.prefix.crc == 0) row.prefix.crc = row.prefix.bytes + 1;
    return row;
}

#define ID(length)                                                                                 \
    {                                                                                              \
        (length), (length) + 1                                                                     \
    }
#define ROW(n, kind, id, length, next, ...)                                                        \
    {                                                                                              \
        .node = (n), .state = LEAT_TAIL_##kind, .segment = (id), .prefix.bytes = (length),         \
        .next_offset = (next), ##__VA_ARGS__                                                       \
    }
#define OPENED .opened = true, .stamp_epoch = {EPOCH}, .stamp_version = GENERATION
#define TAIL(id, length, next, ...)                                                                \
    {                                                                                              \
        .segment = (id), .prefix_id = ID(length), .next_offset = (next), ##__VA_ARGS__             \
    }
#define ANY(id, next, ...)                                                                         \
    {                                                                                              \
        .segment = (id), .next_offset = (next), ##__VA_ARGS__                                      \
    }

static const struct one_case cases[] = {
    /* ---- the coordinator's record says it ---- */
    {"a new log is empty",
     {.tail = ANY(NEVER, 0)},
     .reason = LEAT_TAIL_EMPTY,
     .end = ANY(NEVER, 0)},
    {"a first segment that was never committed as opened leaves it empty",
     {.tail = ANY(NEVER, 0)},
     .rows = {ROW(0, OPEN, 0, 500, 9)},
     .reason = LEAT_TAIL_EMPTY,
     .end = ANY(NEVER, 0)},
    {"the recorded bytes are nowhere",
     {.tail = TAIL(5, 800, 120)},
     .reason = LEAT_TAIL_NO_BYTES,
     .text = "segment 5 (800 bytes, CRC 00000321)"},
    {"also when all were heard", {.tail = TAIL(5, 800, 120)}, true, .reason = LEAT_TAIL_NO_BYTES},
    {"closed at the recorded bytes",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, CLOSED, 4, 800, 120), ROW(1, CLOSED, 5, 800, 120)},
     .reason = LEAT_TAIL_RECORDED,
     .end = TAIL(5, 800, 120),
     .holders = 2},
    {"open with the recorded bytes, of whatever epoch",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, OPEN, 5, 800, 120, .epoch = {1}, .generation = 1)},
     .reason = LEAT_TAIL_RECORDED,
     .end = TAIL(5, 800, 120),
     .holders = 1},
    {"other bytes of that length",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, CLOSED, 5, 800, 120, .prefix.crc = 9)},
     .reason = LEAT_TAIL_NO_BYTES},
    {"fewer bytes",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, CLOSED, 5, 700, 110)},
     .reason = LEAT_TAIL_NO_BYTES},
    {"the recorded length of another segment",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, CLOSED, 4, 800, 120)},
     .reason = LEAT_TAIL_NO_BYTES},
    {"a longer one that ends at the same offset may be another writer's",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, CLOSED, 5, 900, 120)},
     .reason = LEAT_TAIL_NO_BYTES},
    {"a longer one whose beginning was compared",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, CLOSED, 5, 900, 120),
              ROW(1, OPEN, 5, 900, 130, .flags = LEAT_TAIL_HAS_DECIDED)},
     .reason = LEAT_TAIL_RECORDED,
     .end = TAIL(5, 800, 120),
     .holders = 2},
    {"one that lost its bytes has none",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, MISSING, 5, 800, 120, .flags = LEAT_TAIL_HAS_DECIDED)},
     .reason = LEAT_TAIL_NO_BYTES},
    {"the record stands against open replicas after it",
     {.tail = TAIL(5, 800, 120)},
     .rows = {ROW(0, OPEN, 6, 4000, 300, .epoch = {9}), ROW(1, CLOSED, 5, 800, 120)},
     .reason = LEAT_TAIL_RECORDED,
     .end = TAIL(5, 800, 120),
     .holders = 2},
    {"a record is no matter of generations",
     {.tail = TAIL(5, 800, 120), .stamp_version = 9},
     .rows = {ROW(0, CLOSED, 5, 800, 120)},
     .reason = LEAT_TAIL_RECORDED,
     .end = TAIL(5, 800, 120),
     .holders = 1},
    /* ---- a loss was accepted ---- */
    {"what was left may be on a node that has not answered",
     {.tail = ANY(5, 5000, .jumped = true)},
     .rows = {ROW(0, CLOSED, 0, 300, 30), ROW(1, CLOSED, 1, 400, 90), ROW(2, CLOSED, 6, 400, 95)},
     .reason = LEAT_TAIL_LEFT_UNHEARD,
     .text = "left"},
    {"all were heard: the last of what was left is held",
     {.tail = ANY(5, 5000, .jumped = true)},
     true,
     .rows = {ROW(0, CLOSED, 0, 300, 30), ROW(1, CLOSED, 1, 400, 90), ROW(2, CLOSED, 6, 400, 95)},
     .reason = LEAT_TAIL_GIVEN_UP,
     .end = ANY(5, 5000, .jumped = true),
     .holders = 2},
    {"all were heard, and nothing was left",
     {.tail = ANY(5, 5000, .jumped = true)},
     true,
     .reason = LEAT_TAIL_GIVEN_UP,
     .end = ANY(5, 5000, .jumped = true)},
    {"what the record names is enough",
     {.tail = TAIL(5, 800, 5000, .jumped = true)},
     .rows = {ROW(0, CLOSED, 4, 700, 90), ROW(1, CLOSED, 5, 800, 120)},
     .reason = LEAT_TAIL_RECORDED,
     .end = TAIL(5, 800, 5000, .jumped = true),
     .holders = 2},
    {"an older one is not what it names",
     {.tail = TAIL(5, 800, 5000, .jumped = true)},
     .rows = {ROW(0, CLOSED, 4, 700, 90)},
     .reason = LEAT_TAIL_LEFT_UNHEARD},
    /* ---- open replicas say it ---- */
    {"opened, and nothing is found", {OPENED}, .reason = LEAT_TAIL_NO_OPEN, .text = NO_OPEN_FOUND},
    {"also when all were heard", {OPENED}, true, .reason = LEAT_TAIL_NO_OPEN},
    {"closed ones look like an idle log, whose head stays open",
     {OPENED},
     true,
     .rows = {ROW(0, CLOSED, 4, 1000, 100)},
     .reason = LEAT_TAIL_NO_OPEN},
    {"one open replica is enough",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 120),
     .holders = 1},
    {"a higher epoch never committed opened",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 64, 120, .epoch = {4})},
     .reason = LEAT_TAIL_NO_OPEN},
    {"a lower epoch is an owner's of the past",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 64, 120, .epoch = {2})},
     .reason = LEAT_TAIL_NO_OPEN},
    {"a lower generation was left behind",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120, .generation = 1)},
     .reason = LEAT_TAIL_NO_OPEN,
     .text = NO_OPEN_FOUND " (1 of older versions, 0 of other epochs)"},
    {"a higher generation is not committed yet",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120, .generation = 3)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 120),
     .holders = 1},
    {"old ones are passed over, and named",
     {OPENED},
     .rows = {ROW(0, OPEN, 4, 900, 130, .generation = 1), ROW(1, OPEN, 4, 900, 130, .epoch = {2}),
              ROW(2, OPEN, 4, 900, 130, .epoch = {9}), ROW(3, MISSING, 6, 0, 0)},
     .reason = LEAT_TAIL_NO_OPEN,
     .text =
         NO_OPEN_FOUND " (1 of older versions, 2 of other epochs; 1 lost the bytes of segment 6)"},
    {"... each kind by itself, and closed ones are none of them",
     {OPENED},
     .rows = {ROW(0, OPEN, 4, 900, 130, .generation = 1),
              ROW(1, CLOSED, 4, 900, 130, .generation = 1),
              ROW(2, CLOSED, 4, 900, 130, .epoch = {2}), ROW(3, MISSING, 6, 0, 0)},
     .reason = LEAT_TAIL_NO_OPEN,
     .text =
         NO_OPEN_FOUND " (1 of older versions, 0 of other epochs; 1 lost the bytes of segment 6)"},
    {"... also where none lost its bytes",
     {OPENED},
     .rows = {ROW(0, OPEN, 4, 900, 130, .generation = 1), ROW(1, OPEN, 4, 900, 130, .epoch = {2})},
     .reason = LEAT_TAIL_NO_OPEN,
     .text = NO_OPEN_FOUND " (1 of older versions, 1 of other epochs)"},
    {"the current one is not hidden by old ones",
     {OPENED},
     .rows = {ROW(0, OPEN, 4, 900, 130, .generation = 1), ROW(1, OPEN, 5, 800, 120)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 120),
     .holders = 2},
    {"of one segment the longest",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120), ROW(1, OPEN, 5, 900, 130), ROW(2, OPEN, 5, 850, 125)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 900, 130),
     .holders = 2},
    {"of segments the lowest: data comes once the one before is closed everywhere",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 100, 120, .base_offset = 120), ROW(1, OPEN, 5, 800, 120)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 120),
     .holders = 2},
    {"a closed one of those bytes is held as well",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120), ROW(1, CLOSED, 5, 800, 120), ROW(2, MISSING, 5, 800, 120)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 120),
     .holders = 3},
    {"equal lengths and other bytes",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 800, 120), ROW(1, OPEN, 5, 800, 120, .prefix.crc = 9)},
     .reason = LEAT_TAIL_DIFFERENT,
     .text = "two replicas of segment 5 differ"},
    {"a replica that lost its bytes decides nothing",
     {OPENED},
     .rows = {ROW(0, MISSING, 5, 0, 0), ROW(1, OPEN, 5, 800, 120)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 120),
     .holders = 2},
    /* ---- it has just begun ---- */
    {"only a start: the segment before is needed",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 64, 130, .flags = LEAT_TAIL_ONLY_START, .previous = ID(900))},
     .reason = LEAT_TAIL_NO_PREVIOUS,
     .text = "segment 6 has just begun"},
    {"... on any node",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 64, 130, .flags = LEAT_TAIL_ONLY_START, .previous = ID(900)),
              ROW(1, CLOSED, 5, 900, 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(6, 64, 130),
     .holders = 1},
    {"... by its prefix id",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 64, 130, .flags = LEAT_TAIL_ONLY_START, .previous = ID(900)),
              ROW(1, CLOSED, 5, 900, 130, .prefix.crc = 9)},
     .reason = LEAT_TAIL_NO_PREVIOUS},
    {"... not one that lost its bytes",
     {OPENED},
     .rows = {ROW(0, OPEN, 6, 64, 130, .flags = LEAT_TAIL_ONLY_START, .previous = ID(900)),
              ROW(1, MISSING, 5, 900, 130)},
     .reason = LEAT_TAIL_NO_PREVIOUS},
    {"a log's first segment names none",
     {OPENED},
     .rows = {ROW(0, OPEN, 0, 64, 0, .flags = LEAT_TAIL_ONLY_START)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(0, 64, 0),
     .holders = 1},
    /* ---- torn writes and damage ---- */
    {"one torn replica says nothing",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120, .flags = LEAT_TAIL_TORN)},
     .reason = LEAT_TAIL_ONLY_TORN,
     .text = "segment 5 ends in a torn write or in damage"},
    {"... unless it is all that there is",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 800, 120, .flags = LEAT_TAIL_TORN)},
     .reason = LEAT_TAIL_BY_ALL,
     .end = TAIL(5, 800, 120),
     .holders = 1},
    {"... or a whole one is there",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120, .flags = LEAT_TAIL_TORN), ROW(1, OPEN, 5, 900, 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 900, 130),
     .holders = 2},
    {"... which may be the shorter one",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 950, 135, .flags = LEAT_TAIL_TORN), ROW(1, OPEN, 5, 900, 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 950, 135),
     .holders = 1},
    {"... or most of the copies are torn",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 120, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 5, 850, 125, .flags = LEAT_TAIL_TORN)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 850, 125),
     .holders = 2},
    {"two on one node are one copy",
     {OPENED},
     .rows = {ROW(1, OPEN, 5, 800, 120, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 5, 850, 125, .flags = LEAT_TAIL_TORN)},
     .reason = LEAT_TAIL_ONLY_TORN},
    {"damage hit a close entry: the log went on",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 300, 140, .base_offset = 130), ROW(1, CLOSED, 5, 900, 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(6, 300, 140),
     .holders = 2},
    {"... though the next is torn as well, when all were heard",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 300, 140, .base_offset = 130, .flags = LEAT_TAIL_TORN),
              ROW(1, CLOSED, 5, 900, 130)},
     .reason = LEAT_TAIL_BY_ALL,
     .end = TAIL(6, 300, 140),
     .holders = 2},
    {"... in a segment that has just begun, after the one that it names",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 64, 130, .flags = LEAT_TAIL_ONLY_START, .previous = ID(900)),
              ROW(1, CLOSED, 5, 900, 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(6, 64, 130),
     .holders = 2},
    {"... but not after another one",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 64, 130, .flags = LEAT_TAIL_ONLY_START, .previous = ID(901)),
              ROW(1, CLOSED, 5, 900, 130)},
     .reason = LEAT_TAIL_ONLY_TORN},
    {"the longest is the end, though a start shows that the log went on",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 900, 130, .flags = LEAT_TAIL_TORN),
              ROW(2, OPEN, 6, 64, 130, .previous = ID(900),
                  .flags = LEAT_TAIL_TORN | LEAT_TAIL_ONLY_START),
              ROW(1, OPEN, 6, 300, 140, .previous = ID(900), .base_offset = 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(6, 300, 140),
     .holders = 4},
    {"two that differ in the next, of which one names another segment before it",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 64, 130, .previous = ID(901), .prefix.crc = 9,
                  .flags = LEAT_TAIL_TORN | LEAT_TAIL_ONLY_START),
              ROW(1, OPEN, 6, 64, 130, .previous = ID(900),
                  .flags = LEAT_TAIL_TORN | LEAT_TAIL_ONLY_START),
              ROW(2, CLOSED, 5, 900, 130)},
     .reason = LEAT_TAIL_DIFFERENT,
     .text = "two replicas of segment 6 differ"},
    /* ---- the log went on: a later segment has records ---- */
    {"a damaged one is passed over though no closed one is heard",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 300, 140, .base_offset = 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(6, 300, 140),
     .holders = 2},
    {"... also where nobody else is left to hear",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 6, 300, 140, .base_offset = 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(6, 300, 140),
     .holders = 2},
    {"... or the later ones are closed, and the head is missing",
     {OPENED},
     true,
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, CLOSED, 6, 300, 140, .base_offset = 130)},
     .reason = LEAT_TAIL_NO_OPEN,
     .text = NO_OPEN_FOUND},
    {"the next one is open and has no records: it may not have been the head",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130), ROW(1, OPEN, 6, 64, 130, .base_offset = 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 130),
     .holders = 1},
    {"it was, as it is closed",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130), ROW(1, CLOSED, 6, 300, 130, .base_offset = 130)},
     .reason = LEAT_TAIL_NO_OPEN,
     .text = NO_OPEN_FOUND},
    {"but not where an attempt closed it",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130),
              ROW(1, CLOSED, 6, 64, 130, .base_offset = 130, .flags = LEAT_TAIL_PROVISIONAL)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 130),
     .holders = 1},
    {"it was, as the one after it is started",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130, .flags = LEAT_TAIL_TORN),
              ROW(1, OPEN, 7, 64, 130, .base_offset = 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(7, 64, 130),
     .holders = 2},
    {"nor does one of another epoch",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130),
              ROW(1, CLOSED, 6, 300, 140, .base_offset = 130, .epoch = {2})},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 130),
     .holders = 1},
    {"nor one that was left behind",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130),
              ROW(1, OPEN, 6, 300, 140, .base_offset = 130, .generation = 1)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 130),
     .holders = 1},
    {"nor one that lost its bytes",
     {OPENED},
     .rows = {ROW(0, OPEN, 5, 800, 130), ROW(1, MISSING, 6, 300, 140, .base_offset = 130)},
     .reason = LEAT_TAIL_BY_OPEN,
     .end = TAIL(5, 800, 130),
     .holders = 1},
    /* ---- what is left where no node holds the end ---- */
    {"nothing is left",
     {OPENED},
     true,
     LEFT,
     .reason = LEAT_TAIL_NOTHING_LEFT,
     .text = "nothing is left"},
    {"the most: the highest segment, the longest",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, OPEN, 9, 100, 90, .epoch = {2}), ROW(1, OPEN, 5, 300, 50),
              ROW(2, OPEN, 6, 200, 70), ROW(3, OPEN, 6, 400, 75)},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 400, 75),
     .holders = 8},
    {"... and not the same bytes of another segment, nor those that are lost",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, OPEN, 6, 200, 70), ROW(1, CLOSED, 5, 200, 60), ROW(2, MISSING, 6, 200, 70)},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 200, 70),
     .holders = 1},
    {"a whole one before a part",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(2, CLOSED, 6, 200, 70), ROW(3, OPEN, 6, 400, 75)},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 200, 70),
     .holders = 1},
    {"of whole ones what all have",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(2, CLOSED, 6, 400, 75), ROW(3, CLOSED, 6, 200, 70)},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 200, 70),
     .holders = 2},
    {"one of another epoch, closed",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 6, 200, 70, .epoch = {2})},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 200, 70),
     .holders = 1},
    {"the later owner's part before an older one's whole segment",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 6, 400, 75, .epoch = {2}), ROW(1, CLOSED, 6, 400, 75, .epoch = {2}),
              ROW(2, OPEN, 6, 200, 70)},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 200, 70),
     .holders = 4},
    {"not one that an attempt cut",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 6, 200, 70, .epoch = {2}, .flags = LEAT_TAIL_PROVISIONAL),
              ROW(0, CLOSED, 5, 100, 50, .epoch = {2})},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(5, 100, 50),
     .holders = 2},
    {"... but of its own epoch",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 6, 200, 70, .flags = LEAT_TAIL_PROVISIONAL),
              ROW(0, CLOSED, 5, 100, 50, .epoch = {2})},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(6, 200, 70),
     .holders = 1},
    {"an older epoch's longer copy is not left",
     {OPENED, .began = TAIL(5, 300, 120)},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 5, 400, 130, .epoch = {2}), ROW(0, CLOSED, 6, 100, 140, .epoch = {2})},
     .reason = LEAT_TAIL_NOTHING_LEFT},
    {"... but for the part that was decided",
     {OPENED, .began = TAIL(5, 300, 120)},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 5, 400, 130, .epoch = {2}, .flags = LEAT_TAIL_HAS_DECIDED),
              ROW(0, CLOSED, 6, 100, 140, .epoch = {2})},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(5, 300, 120),
     .holders = 1},
    {"... and its own offset where the epoch began after a jump",
     {OPENED, .began = TAIL(5, 300, 5000, .jumped = true)},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 5, 400, 130, .epoch = {2}, .flags = LEAT_TAIL_HAS_DECIDED)},
     .reason = LEAT_TAIL_LEFT,
     .end = TAIL(5, 300, 130),
     .holders = 1},
    {"nothing of other epochs where the log had been empty",
     {OPENED, .began = ANY(NEVER, 0)},
     true,
     LEFT,
     .rows = {ROW(0, CLOSED, 0, 400, 130, .epoch = {2})},
     .reason = LEAT_TAIL_NOTHING_LEFT},
    {"what lost its bytes is not left",
     {OPENED},
     true,
     LEFT,
     .rows = {ROW(0, MISSING, 6, 400, 75), ROW(1, CLOSED, 6, 0, 0)},
     .reason = LEAT_TAIL_NOTHING_LEFT},
};

static void check(const struct one_case *it, const struct leat_tail_row *rows, const size_t *order,
                  size_t count)
{
    const struct leat_tail_question question = {&it->record, 2, it->all_heard};
    char text[LEAT_TAIL_TEXT_BYTES] = "";
    struct leat_tail tail;
    memset(&tail, 0x55, sizeof tail);
    if (it->asking == DECIDE)
        leat_tail_decide(&question, rows, count, &tail);
    else
        leat_tail_left(&it->record, rows, count, &tail);
    bool ends = it->reason < LEAT_TAIL_NO_BYTES;
    unsigned holders = 0;
    assert_false(leat_tail_holds(&tail, count));
    for (size_t i = 0; i < count; i++)
        holders |= (unsigned)leat_tail_holds(&tail, i) << order[i];
    leat_tail_text(&tail, &it->record, text);
    if (tail.reason != it->reason || tail.ends != ends || (ends && holders != it->holders))
        fail_msg("%s: reason %d (%s), holders %x", it->name, (int)tail.reason, text, holders);
    if (ends && (tail.end.segment != it->end.segment ||
                 tail.end.prefix_id.bytes != it->end.prefix_id.bytes ||
                 tail.end.prefix_id.crc != it->end.prefix_id.crc ||
                 tail.end.next_offset != it->end.next_offset || tail.end.jumped != it->end.jumped))
        fail_msg("%s: ends with segment %d, %u bytes, offset %u", it->name, (int)tail.end.segment,
                 tail.end.prefix_id.bytes, (unsigned)tail.end.next_offset);
    if (it->text != NULL && (strstr(text, it->text) == NULL ||
                             (it->reason == LEAT_TAIL_NO_OPEN && strcmp(text, it->text) != 0)))
        fail_msg("%s: %s", it->name, text);
    assert_true(text[0] != '\0' && strchr(text, '%') == NULL);
}

/* Behind the last row lies what nobody answered: rows that would change the answer, if they were read. */
static const struct leat_tail_row nobodys[] = {
    ROW(9, OPEN, 5, 9000, 900), ROW(9, CLOSED, 5, 9000, 900), ROW(9, CLOSED, 9, 9000, 900),
    ROW(9, MISSING, 99, 0, 0)};

/* Nodes answer in any order. */
static void each_order(const struct one_case *it, size_t *order, size_t at, size_t count)
{
    struct leat_tail_row rows[5];
    for (size_t i = at; i < count; i++) {
        size_t moved = order[at];
        order[at] = order[i], order[i] = moved;
        each_order(it, order, at + 1, count);
        order[i] = order[at], order[at] = moved;
    }
    if (at < count) return;
    for (size_t i = 0; i < count; i++)
        rows[i] = filled(it->rows[order[i]]);
    for (size_t i = 0; i < sizeof nobodys / sizeof *nobodys; i++) {
        rows[count] = filled(nobodys[i]);
        check(it, rows, order, count);
    }
    for (size_t i = 0; i < count; i++) { /* also one as it answered */
        rows[count] = rows[i];
        check(it, rows, order, count);
    }
}

static void tail_is_the_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t order[4] = {0, 1, 2, 3}, count = 0;
        while (count < 4 && cases[i].rows[count].state != 0)
            count++;
        each_order(&cases[i], order, 0, count);
    }
}

/* Every reason is somewhere in the table. */
static void tail_table_has_every_reason(void **state)
{
    (void)state;
    for (unsigned reason = LEAT_TAIL_EMPTY; reason <= LEAT_TAIL_NOTHING_LEFT; reason++) {
        size_t found = 0;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            found += cases[i].reason == reason;
        assert_true(found > 0);
    }
}

/* As many rows as one question may have; a third of them are longer, and were left behind. */
static void tail_of_many_rows_names_each_holder(void **state)
{
    (void)state;
    static struct leat_tail_row rows[LEAT_TAIL_ROWS_MAX];
    const struct leat_log_record record = {OPENED};
    const struct leat_tail_question question = {&record, 2, false};
    struct leat_tail tail;
    for (uint32_t i = 0; i < LEAT_TAIL_ROWS_MAX; i++) {
        const uint32_t bytes = i % 3 == 0 ? 900 : i % 3 == 1 ? 800 : 1000;
        const uint32_t generation = i % 3 == 2 ? GENERATION - 1 : GENERATION;
        rows[i] =
            filled((struct leat_tail_row)ROW(i, OPEN, 5, bytes, 120, .generation = generation));
    }
    leat_tail_decide(&question, rows, LEAT_TAIL_ROWS_MAX, &tail);
    for (size_t i = 0; i < LEAT_TAIL_ROWS_MAX; i++)
        assert_int_equal(leat_tail_holds(&tail, i), i % 3 == 0);
}

static void tail_row_is_what_a_node_answers(void **state)
{
    (void)state;
    const struct leat_replica_row row = {.segment = 6,
                                         .kind = LEAT_REPLICA_CLOSED,
                                         .epoch = {3},
                                         .version = 4,
                                         .prefix_id = {5, 7},
                                         .previous = {8, 9},
                                         .base_offset = 10,
                                         .next_offset = 11,
                                         .provisional = true};
    struct leat_replica_row other = {.kind = LEAT_REPLICA_MARK, .only_start = true};
    struct leat_tail_row is = leat_tail_row_of(&row, 2);
    assert_true(is.segment == 6 && is.node == 2 && is.state == LEAT_TAIL_CLOSED);
    assert_true(is.epoch.v == 3 && is.generation == 4 && is.prefix.bytes == 5 &&
                is.prefix.crc == 7);
    assert_true(is.previous.bytes == 8 && is.previous.crc == 9);
    assert_true(is.base_offset == 10 && is.next_offset == 11);
    assert_int_equal(is.flags, LEAT_TAIL_PROVISIONAL);
    assert_int_equal(leat_tail_row_of(&other, 0).flags, LEAT_TAIL_ONLY_START);
    other = (struct leat_replica_row){.kind = LEAT_REPLICA_LOST, .torn = true};
    assert_int_equal(leat_tail_row_of(&other, 0).flags, LEAT_TAIL_TORN);
    other = (struct leat_replica_row){.kind = LEAT_REPLICA_LOST, .holds_tail = true};
    assert_int_equal(leat_tail_row_of(&other, 0).flags, LEAT_TAIL_HAS_DECIDED);
    assert_int_equal(leat_tail_row_of(&other, 0).state, LEAT_TAIL_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tail_is_the_tables),
        cmocka_unit_test(tail_table_has_every_reason),
        cmocka_unit_test(tail_of_many_rows_names_each_holder),
        cmocka_unit_test(tail_row_is_what_a_node_answers),
    };
    return cmocka_run_group_tests_name("coordinator tail", tests, NULL, NULL);
}
