/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/coordinator/applied.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "wire/message.h"

enum { MOVED_MAX = 3 };

typedef struct leat_msg_writer *writer_of;

uint64_t applied_below(struct applied_dice *dice, uint64_t bound)
{
    return leat_xoshiro_below(&dice->random, bound);
}

/* Once in so many times. */
static bool rarely(struct applied_dice *dice, uint64_t times)
{
    return applied_below(dice, times) == 0;
}

void applied_dice_init(struct applied_dice *dice, uint64_t seed)
{
    *dice =
        (struct applied_dice){.streams = 7, .nodes = 5, .wrapped = 40, .sessions = 3, .boots = 1};
    leat_xoshiro_seed(&dice->random, seed);
}

static void begin(writer_of w, unsigned kind, uint32_t fields)
{
    leat_msg_write_array(w, 2 + fields);
    leat_msg_write_u64(w, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(w, kind);
}

static void text_write(writer_of w, const char *text)
{
    leat_msg_write_string(w, text, strlen(text));
}

static const struct leat_machine_node *node_any(struct applied_dice *dice,
                                                const struct leat_machine *m)
{
    return m->node_count && !rarely(dice, 30) ? &m->nodes[applied_below(dice, m->node_count)]
                                              : NULL;
}

static struct leat_machine_stream *stream_any(struct applied_dice *dice, struct leat_machine *m)
{
    return m->stream_count ? &m->streams[applied_below(dice, m->stream_count)] : NULL;
}

static uint64_t incarnation_any(struct applied_dice *dice, const struct leat_machine *m)
{
    const struct leat_machine_node *node = node_any(dice, m);
    return node && !rarely(dice, 20) ? node->info.incarnation
                                     : applied_below(dice, m->next_incarnation + 1);
}

/* ---- nodes ---- */

static void node_name_write(struct applied_dice *dice, writer_of w)
{
    char name[LEAT_NODE_NAME_BYTES_MAX + 2] = "";
    snprintf(name, sizeof name, "n%u", (unsigned)applied_below(dice, dice->nodes));
    switch (applied_below(dice, 120)) {
    case 0:
        name[0] = '\0';
        break;
    case 1:
        name[1] = '\n';
        break;
    case 2:
        memset(name, 'n', LEAT_NODE_NAME_BYTES_MAX + rarely(dice, 2));
        name[LEAT_NODE_NAME_BYTES_MAX + 1] = '\0';
        break;
    default:
        break;
    }
    text_write(w, name);
}

static void address_write(struct applied_dice *dice, writer_of w, unsigned of)
{
    char address[LEAT_ADDRESS_BYTES_MAX + 2] = "";
    const unsigned host = (unsigned)applied_below(dice, of),
                   port = (unsigned)applied_below(dice, 3);
    snprintf(address, sizeof address, "host%u:%u", host, port);
    switch (applied_below(dice, 80)) {
    case 0:
        address[0] = '\0';
        break;
    case 1:
        address[2] = ' ';
        break;
    case 2:
        address[2] = '\x01';
        break;
    case 3:
        memset(address, 'h', LEAT_ADDRESS_BYTES_MAX + rarely(dice, 2));
        address[LEAT_ADDRESS_BYTES_MAX + 1] = '\0';
        break;
    default:
        break;
    }
    text_write(w, address);
}

static void place_write(struct applied_dice *dice, writer_of w)
{
    char text[LEAT_RACK_BYTES_MAX + 2] = "";
    snprintf(text, sizeof text, "%.*s", (int)applied_below(dice, 4), "rak");
    if (rarely(dice, 50)) memset(text, 'r', LEAT_RACK_BYTES_MAX + rarely(dice, 2));
    text_write(w, text);
}

static void id_write(struct applied_dice *dice, writer_of w)
{
    uint8_t id[17] = {0};
    id[15] = (uint8_t)applied_below(dice, 3);
    leat_msg_write_bin(w, id,
                       rarely(dice, 50)  ? 15 + 2 * applied_below(dice, 2)
                       : rarely(dice, 8) ? 0
                                         : 16);
}

static void node_up_draw(struct applied_dice *dice, const struct leat_machine *m, writer_of w)
{
    static const uint8_t wrong[] = {6, 9, 13};
    uint32_t fields = rarely(dice, 60) ? wrong[applied_below(dice, sizeof wrong)] : 12;
    const struct leat_machine_node *node = node_any(dice, m);
    begin(w, LEAT_COMMAND_NODE_UP, fields);
    if (node && !rarely(dice, 3))
        text_write(w, node->info.name);
    else
        node_name_write(dice, w);
    address_write(dice, w, 3);
    leat_msg_write_u64(w, 1 + applied_below(dice, 8));
    address_write(dice, w, 6);
    place_write(dice, w);
    id_write(dice, w);
    if (fields >= 7) leat_msg_write_u64(w, applied_below(dice, 1000));
    if (fields >= 8) address_write(dice, w, 3);
    uint64_t before = node && !rarely(dice, 3) ? node->boot : applied_below(dice, dice->boots);
    if (fields >= 9)
        leat_msg_write_u64(w, rarely(dice, 8) ? applied_below(dice, dice->boots) : dice->boots++);
    if (fields >= 10) leat_msg_write_u64(w, rarely(dice, 4) ? 0 : before);
    if (fields >= 11) place_write(dice, w);
    if (fields >= 12)
        leat_msg_write_u64(
            w, rarely(dice, 2) ? 0 : 1 + applied_below(dice, rarely(dice, 3) ? 2000000 : 60));
    if (fields >= 13) leat_msg_write_u64(w, 1);
}

static void known_name_write(struct applied_dice *dice, const struct leat_machine_node *node,
                             writer_of w)
{
    if (node)
        text_write(w, node->info.name);
    else
        node_name_write(dice, w);
}

static void node_entry_draw(struct applied_dice *dice, const struct leat_machine *m, unsigned kind,
                            writer_of w)
{
    const struct leat_machine_node *node = node_any(dice, m);
    begin(w, kind, kind == LEAT_COMMAND_NODE_STATE ? 3 : 2);
    known_name_write(dice, node, w);
    if (kind == LEAT_COMMAND_NODE_DRAIN) {
        leat_msg_write_bool(w, !rarely(dice, 2));
        return;
    }
    leat_msg_write_u64(w, node && !rarely(dice, 8) ? node->info.incarnation
                                                   : applied_below(dice, m->next_incarnation));
    if (kind == LEAT_COMMAND_NODE_STATE)
        leat_msg_write_u64(w, rarely(dice, 10) ? applied_below(dice, 5)
                                               : LEAT_NODE_UP + applied_below(dice, 2));
}

/* ---- streams ---- */

static void stream_name_write(struct applied_dice *dice, writer_of w)
{
    static const char *const others[] = {"leat.sets", "leat.other", "leat", ".", "..",
                                         "...",       "a/b",        "a b",  "",  "A-z_0.9"};
    char name[LEAT_STREAM_NAME_BYTES_MAX + 2] = "";
    snprintf(name, sizeof name, "s%u", (unsigned)applied_below(dice, dice->streams));
    if (rarely(dice, 8)) {
        text_write(w, others[applied_below(dice, sizeof others / sizeof *others)]);
        return;
    }
    if (rarely(dice, 60)) {
        memset(name, 's', LEAT_STREAM_NAME_BYTES_MAX + rarely(dice, 2));
        name[LEAT_STREAM_NAME_BYTES_MAX + 1] = '\0';
    }
    text_write(w, name);
}

/* A draw a statement, here as elsewhere: compilers differ in which of one expression comes first. */
static void settings_write(struct applied_dice *dice, writer_of w)
{
    struct leat_stream_settings it = {0};
    it.streamlets = (uint32_t)applied_below(dice, 5);
    it.logs = (uint32_t)applied_below(dice, 4);
    it.copies = (uint32_t)applied_below(dice, 3);
    it.min_copies = (uint32_t)applied_below(dice, 3);
    it.durability = (enum leat_durability)applied_below(dice, 3);
    it.segment_bytes_max = rarely(dice, 2) ? 0 : LEAT_SEGMENT_BYTES_MIN << applied_below(dice, 3);
    it.retention_ms = (int64_t)applied_below(dice, 1000) - 100;
    it.retention_bytes = (int64_t)applied_below(dice, 1000) - 100;
    it.batch_bytes_max =
        rarely(dice, 2) ? 0 : LEAT_BATCH_BYTES_MAX - (uint32_t)applied_below(dice, 9);
    it.append_time = rarely(dice, 2);
    it.segment_bytes_asked = (uint32_t)applied_below(dice, 1000);
    it.compression_asked = (uint32_t)applied_below(dice, 5);
    it.validate = (enum leat_validate)applied_below(dice, 2);
    switch (applied_below(dice, 100)) {
    case 0:
        it.streamlets = LEAT_STREAMLETS_MAX + 1;
        break;
    case 1:
        it.logs = LEAT_LOGS_MAX + 1;
        break;
    case 2:
        it.streamlets = LEAT_STREAMLETS_MAX, it.logs = LEAT_LOGS_MAX;
        break;
    case 3:
        it.copies = LEAT_COPIES_MAX + (uint32_t)applied_below(dice, 2);
        break;
    case 4:
        it.segment_bytes_max = LEAT_SEGMENT_BYTES_MIN + 512;
        break;
    case 5:
        it.segment_bytes_max = LEAT_SEGMENT_BYTES_MIN / 2;
        break;
    case 6:
        it.segment_bytes_max = LEAT_SEGMENT_BYTES_MAX;
        break;
    case 7:
        it.batch_bytes_max = LEAT_BATCH_BYTES_LIMIT_MIN;
        break;
    case 8:
        it.batch_bytes_max = LEAT_BATCH_BYTES_LIMIT_MIN - 1;
        break;
    case 9:
        it.batch_bytes_max = LEAT_BATCH_BYTES_MAX + 1;
        break;
    case 10:
        it.copies = 3;
        break;
    default:
        break;
    }
    leat_msg_settings_write(w, &it);
}

static void stream_entry_draw(struct applied_dice *dice, struct leat_machine *m, unsigned kind,
                              writer_of w)
{
    const struct leat_machine_stream *stream = stream_any(dice, m);
    begin(w, kind,
          kind == LEAT_COMMAND_STREAM_CHANGE   ? 3
          : kind == LEAT_COMMAND_STREAM_CREATE ? 2
                                               : 1);
    if (stream && kind != LEAT_COMMAND_STREAM_CREATE && !rarely(dice, 5))
        text_write(w, stream->desc->name);
    else
        stream_name_write(dice, w);
    if (kind == LEAT_COMMAND_STREAM_CHANGE)
        leat_msg_write_u64(w, rarely(dice, 2) ? applied_below(dice, 1024)
                                              : 1u << applied_below(dice, 9));
    if (kind != LEAT_COMMAND_STREAM_DELETE) settings_write(dice, w);
}

/* ---- logs ---- */

static void ref_write(writer_of w, uint32_t stream, uint32_t streamlet, uint32_t log)
{
    leat_msg_write_u64(w, stream);
    leat_msg_write_u64(w, streamlet);
    leat_msg_write_u64(w, log);
}

static void tail_write(struct applied_dice *dice, writer_of w)
{
    for (unsigned k = 0; k < 4; k++)
        leat_msg_write_u64(
            w, applied_below(dice, k == 3 && rarely(dice, 9) ? (uint64_t)1 << 42 : 500));
}

/* A streamlet, and the incarnation in whose name an entry speaks of it: mostly its owner's. */
struct said {
    struct leat_machine_stream *stream; /* NULL: there is none */
    uint32_t streamlet, logs, epoch;
    uint64_t owner;
};

static struct said said_once(struct applied_dice *dice, struct leat_machine *m)
{
    struct said it = {.stream = stream_any(dice, m), .logs = 1};
    it.epoch = (uint32_t)applied_below(dice, m->next_epoch + 1);
    it.owner = incarnation_any(dice, m);
    if (!it.stream) return it;
    const struct leat_stream_desc *desc = it.stream->desc;
    it.streamlet = (uint32_t)applied_below(dice, desc->streamlet_count);
    it.logs = desc->settings.logs;
    if (!rarely(dice, 25)) it.epoch = desc->streamlets[it.streamlet].epoch.v;
    if (!rarely(dice, 25)) it.owner = desc->streamlets[it.streamlet].owner;
    if (rarely(dice, 60)) it.streamlet = desc->streamlet_count;
    return it;
}

/* Draws up to four times, until the owner lives, or does not, as `lives` says. */
static struct said said_any(struct applied_dice *dice, struct leat_machine *m, bool lives)
{
    struct said it = said_once(dice, m);
    for (unsigned i = 0; i < 3 && leat_machine_incarnation_lives(m, it.owner) != lives; i++)
        it = said_once(dice, m);
    return it;
}

static void opened_draw(struct applied_dice *dice, struct leat_machine *m, unsigned kind,
                        writer_of w)
{
    struct said it = said_any(dice, m, true);
    const bool raise = kind == LEAT_COMMAND_VERSION_RAISE;
    uint32_t fields = raise ? 4 : 5;
    uint32_t first = (uint32_t)applied_below(dice, it.logs), count = it.logs - first;
    uint32_t version = (uint32_t)applied_below(dice, 6);
    if (rarely(dice, 60)) count++;
    begin(w, kind, fields);
    if (raise) leat_msg_write_u64(w, rarely(dice, 60) ? 0 : it.owner);
    leat_msg_write_u64(w, it.epoch);
    if (raise) leat_msg_write_u64(w, version);
    leat_msg_write_array(w, count);
    for (uint32_t q = first; q < first + count; q++) {
        bool odd = rarely(dice, 90);
        leat_msg_write_array(w, odd ? 4 : 3);
        ref_write(w, it.stream ? it.stream->id : 77, it.streamlet, q);
        if (odd) leat_msg_write_u64(w, 1);
    }
    if (raise) return;
    leat_msg_write_u64(w, rarely(dice, 9) ? 0 : it.owner);
    leat_msg_write_u64(w, version);
    leat_msg_write_bool(w, true);
}

static void loss_draw(struct applied_dice *dice, struct leat_machine *m, writer_of w)
{
    struct said it = said_any(dice, m, true);
    uint32_t q = (uint32_t)applied_below(dice, it.logs + rarely(dice, 40));
    const struct leat_machine_log *log =
        it.stream && it.streamlet < it.stream->desc->streamlet_count && q < it.logs
            ? &it.stream->logs[it.streamlet * it.logs + q]
            : NULL;
    uint64_t next =
        log && rarely(dice, 3) ? log->record.tail.next_offset : applied_below(dice, 900);
    if (rarely(dice, 3)) next += applied_below(dice, 2) ? 1u : UINT64_MAX;
    if (rarely(dice, 20)) next = ((uint64_t)INT64_MAX >> 1) - applied_below(dice, 2);
    begin(w, LEAT_COMMAND_ACCEPT_LOSS, 10);
    ref_write(w, it.stream ? it.stream->id : 77, it.streamlet, q);
    leat_msg_write_u64(w, applied_below(dice, 20));
    leat_msg_write_u64(w, next);
    leat_msg_write_u64(w, it.owner);
    leat_msg_write_u64(w, log && !rarely(dice, 12) ? log->epoch.v : it.epoch);
    leat_msg_write_u64(w, applied_below(dice, 900));
    leat_msg_write_u64(w, applied_below(dice, 900));
    leat_msg_write_bool(w, rarely(dice, 2));
}

/* Streamlets of all streams that one owner has under one epoch, in order. */
static void move_draw(struct applied_dice *dice, struct leat_machine *m, writer_of w)
{
    struct said first = said_any(dice, m, true);
    struct leat_log_ref refs[MOVED_MAX * LEAT_LOGS_MAX];
    uint32_t count = 0, most = 1 + (uint32_t)applied_below(dice, MOVED_MAX);
    for (uint32_t s = 0; s < m->stream_count && most; s++) {
        const struct leat_stream_desc *desc = m->streams[s].desc;
        for (uint32_t i = 0; i < desc->streamlet_count && most; i++) {
            if (desc->streamlets[i].owner != first.owner ||
                desc->streamlets[i].epoch.v != first.epoch)
                continue;
            most--;
            for (uint32_t q = 0; q < desc->settings.logs && q < LEAT_LOGS_MAX; q++)
                refs[count++] = (struct leat_log_ref){desc->id, i, q};
        }
    }
    if (count && rarely(dice, 20)) count--;
    if (count > 1 && rarely(dice, 20)) refs[0] = refs[1 + applied_below(dice, count - 1)];
    const struct leat_machine_node *to = node_any(dice, m);
    begin(w, LEAT_COMMAND_MOVE, 4);
    leat_msg_write_u64(w, first.owner);
    leat_msg_write_u64(w, first.epoch);
    known_name_write(dice, to, w);
    leat_msg_write_array(w, count);
    for (uint32_t i = 0; i < count; i++) {
        leat_msg_write_array(w, 7);
        ref_write(w, refs[i].stream, refs[i].streamlet, refs[i].log);
        tail_write(dice, w);
    }
}

/* ---- adoption, recovery ---- */

static void rows_draw(struct applied_dice *dice, struct leat_machine *m, uint64_t incarnation,
                      writer_of rows)
{
    const struct leat_machine_node *node = leat_machine_incarnation_find(m, incarnation);
    const bool whole = rarely(dice, 2);
    for (uint32_t s = 0; s < m->stream_count && node; s++) {
        const struct leat_machine_stream *stream = &m->streams[s];
        uint32_t logs = stream->desc->settings.logs;
        for (uint32_t i = 0; i < stream->log_count; i++) {
            bool mine = leat_machine_adoptable(m, stream, i / logs, node);
            if (mine ? !whole && rarely(dice, 3) : !rarely(dice, 300)) continue;
            if (rows->used > 1500) return;
            leat_msg_write_array(rows, rarely(dice, 300) ? 7 : 8);
            ref_write(rows, stream->id, i / logs, i % logs + rarely(dice, 300));
            leat_msg_write_u64(rows, rarely(dice, 4) ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL);
            tail_write(dice, rows);
        }
    }
}

static void adopt_draw(struct applied_dice *dice, struct leat_machine *m, writer_of w)
{
    uint8_t bytes[2048];
    struct leat_msg_writer rows;
    leat_msg_writer_init(&rows, bytes, sizeof bytes);
    const bool goes_on = dice->adopting && m->staged_next && !rarely(dice, 8);
    if (!goes_on) dice->adopting = incarnation_any(dice, m);
    const struct leat_machine_node *node = leat_machine_incarnation_find(m, dice->adopting);
    const bool last = !rarely(dice, 3);
    uint64_t seen = node ? leat_machine_seen(m, node) : 1;
    if (!rarely(dice, 6)) rows_draw(dice, m, dice->adopting, &rows);
    begin(w, LEAT_COMMAND_ADOPT, 8);
    leat_msg_write_u64(w, rarely(dice, 90) ? 0 : dice->adopting);
    leat_msg_write_u64(w, goes_on ? m->staged_next + rarely(dice, 20) : 0);
    leat_msg_write_bool(w, last);
    leat_msg_write_u64(w, dice->adopting);
    leat_msg_write_u64(w, m->changes + rarely(dice, 20));
    leat_msg_write_bin(w, bytes, rows.used);
    leat_msg_write_u64(w, seen + rarely(dice, 20));
    leat_msg_write_bool(w, rarely(dice, 2));
    if (last) dice->adopting = 0;
}

static void recover_log_draw(struct applied_dice *dice, struct leat_machine *m,
                             const struct leat_machine_log *log, writer_of w)
{
    bool opened = log ? log->record.opened : rarely(dice, 2);
    uint64_t decision = rarely(dice, 3)    ? LEAT_RECOVER_WAITS
                        : rarely(dice, 30) ? applied_below(dice, 4)
                        : opened           ? LEAT_RECOVER_TAIL
                                           : LEAT_RECOVER_STANDS;
    bool heard = decision == LEAT_RECOVER_WAITS && !rarely(dice, 3);
    uint32_t fields = decision == LEAT_RECOVER_TAIL ? 8 : heard ? 9 : 4;
    leat_msg_write_array(w, fields + rarely(dice, 300));
    leat_msg_write_u64(w, (log ? log->epoch.v : 1) + rarely(dice, 40));
    leat_msg_write_u64(w, opened && log ? log->record.stamp_epoch.v + rarely(dice, 40)
                                        : rarely(dice, 40));
    leat_msg_write_u64(w, opened && log ? log->record.stamp_version + rarely(dice, 40) : 0);
    leat_msg_write_u64(w, decision);
    if (fields == 4) return;
    tail_write(dice, w);
    if (heard) leat_msg_write_u64(w, rarely(dice, 8) ? 0 : m->next_incarnation - rarely(dice, 4));
}

static void recover_draw(struct applied_dice *dice, struct leat_machine *m, writer_of w)
{
    uint32_t count = (uint32_t)applied_below(dice, 4);
    if (!rarely(dice, 9)) count++;
    uint64_t to = incarnation_any(dice, m);
    const bool stays = rarely(dice, 4);
    begin(w, LEAT_COMMAND_RECOVER, 2);
    leat_msg_write_u64(w, 5);
    leat_msg_write_array(w, count);
    for (uint32_t i = 0; i < count; i++) {
        struct said it = said_any(dice, m, stays);
        const bool there = it.stream && it.streamlet < it.stream->desc->streamlet_count;
        if (rarely(dice, 60)) it.logs++;
        leat_msg_write_array(w, 6 + rarely(dice, 300));
        leat_msg_write_u64(w, it.stream ? it.stream->id : 77);
        leat_msg_write_u64(w, it.streamlet);
        leat_msg_write_u64(w, it.owner);
        leat_msg_write_u64(w, it.epoch);
        leat_msg_write_u64(w, stays ? it.owner : to);
        leat_msg_write_array(w, it.logs);
        for (uint32_t q = 0; q < it.logs; q++)
            recover_log_draw(
                dice, m,
                there && q < it.stream->desc->settings.logs
                    ? &it.stream->logs[it.streamlet * it.stream->desc->settings.logs + q]
                    : NULL,
                w);
    }
}

/* ---- any ---- */

/* ASSIGN is of later than the digests. */
static unsigned unknown_any(struct applied_dice *dice)
{
    unsigned kind = (unsigned)applied_below(dice, 30);
    return kind == LEAT_COMMAND_ASSIGN ? kind + 1 : kind;
}

static void others_draw(struct applied_dice *dice, writer_of w)
{
    switch (applied_below(dice, 12)) {
    case 0:
    case 1:
        begin(w, LEAT_COMMAND_FORM, 1);
        leat_msg_write_bin(w, "sixteen bytes!!!!", 16 + rarely(dice, 2));
        break;
    case 2:
    case 3:
        begin(w, LEAT_COMMAND_BARRIER, 0);
        break;
    case 4:
        begin(w, unknown_any(dice), 0);
        break; /* of no such kind, or too short */
    case 5:
        leat_msg_write_array(w, 1 + (uint32_t)applied_below(dice, 3));
        leat_msg_write_u64(w, applied_below(dice, 3));
        leat_msg_write_u64(w, LEAT_COMMAND_BARRIER);
        break;
    default:
        begin(w, LEAT_COMMAND_PRODUCER_IDS, 1);
        leat_msg_write_u64(w, rarely(dice, 20) ? 0 : applied_below(dice, 1000));
        break;
    }
}

static void plain_draw(struct applied_dice *dice, struct leat_machine *m, writer_of w)
{
    static const uint8_t kinds[] = {
        LEAT_COMMAND_FORM,          LEAT_COMMAND_STREAM_CREATE, LEAT_COMMAND_STREAM_CREATE,
        LEAT_COMMAND_STREAM_CREATE, LEAT_COMMAND_STREAM_DELETE, LEAT_COMMAND_STREAM_CHANGE,
        LEAT_COMMAND_STREAM_CHANGE, LEAT_COMMAND_OPENED,        LEAT_COMMAND_OPENED,
        LEAT_COMMAND_OPENED,        LEAT_COMMAND_NODE_UP,       LEAT_COMMAND_NODE_UP,
        LEAT_COMMAND_NODE_UP,       LEAT_COMMAND_NODE_UP,       LEAT_COMMAND_ADOPT,
        LEAT_COMMAND_ADOPT,         LEAT_COMMAND_ADOPT,         LEAT_COMMAND_ADOPT,
        LEAT_COMMAND_ACCEPT_LOSS,   LEAT_COMMAND_ACCEPT_LOSS,   LEAT_COMMAND_VERSION_RAISE,
        LEAT_COMMAND_VERSION_RAISE, LEAT_COMMAND_MOVE,          LEAT_COMMAND_MOVE,
        LEAT_COMMAND_MOVE,          LEAT_COMMAND_NODE_DRAIN,    LEAT_COMMAND_NODE_STATE,
        LEAT_COMMAND_CRASH,         LEAT_COMMAND_RECOVER,       LEAT_COMMAND_RECOVER,
        LEAT_COMMAND_RECOVER,       LEAT_COMMAND_RECOVER};
    unsigned kind = kinds[applied_below(dice, sizeof kinds)];
    switch (kind) {
    case LEAT_COMMAND_STREAM_DELETE:
    case LEAT_COMMAND_STREAM_CREATE:
    case LEAT_COMMAND_STREAM_CHANGE:
        stream_entry_draw(dice, m, kind, w);
        break;
    case LEAT_COMMAND_OPENED:
    case LEAT_COMMAND_VERSION_RAISE:
        opened_draw(dice, m, kind, w);
        break;
    case LEAT_COMMAND_NODE_UP:
        node_up_draw(dice, m, w);
        break;
    case LEAT_COMMAND_NODE_DRAIN:
    case LEAT_COMMAND_NODE_STATE:
    case LEAT_COMMAND_CRASH:
        node_entry_draw(dice, m, kind, w);
        break;
    case LEAT_COMMAND_ADOPT:
        adopt_draw(dice, m, w);
        break;
    case LEAT_COMMAND_ACCEPT_LOSS:
        loss_draw(dice, m, w);
        break;
    case LEAT_COMMAND_MOVE:
        move_draw(dice, m, w);
        break;
    case LEAT_COMMAND_RECOVER:
        recover_draw(dice, m, w);
        break;
    default:
        others_draw(dice, w);
        break;
    }
}

/* One byte more, one byte less, or another byte. */
static void spoil(struct applied_dice *dice, struct applied_entry *entry)
{
    const uint64_t how = applied_below(dice, 3), at = applied_below(dice, entry->count);
    if (how == 0)
        entry->bytes[entry->count++] = 1;
    else if (how == 1)
        entry->count--;
    else
        entry->bytes[at] ^= (uint8_t)(1 + applied_below(dice, 255));
}

void applied_draw(struct applied_dice *dice, struct leat_machine *machine,
                  struct applied_entry *out)
{
    uint8_t bytes[sizeof out->bytes / 2];
    struct leat_msg_writer plain, w;
    leat_msg_writer_init(&plain, bytes, sizeof bytes);
    plain_draw(dice, machine, &plain);
    LEAT_ASSERT(!plain.overflow);
    leat_msg_writer_init(&w, out->bytes, sizeof out->bytes - 1);
    if (applied_below(dice, 100) < dice->wrapped) {
        uint64_t session = 1 + applied_below(dice, dice->sessions), highest = 0;
        for (uint32_t i = 0; i < machine->session_count; i++)
            if (machine->sessions[i].session == session) highest = machine->sessions[i].sequence;
        uint64_t back = rarely(dice, 6) ? applied_below(dice, 6) : 0;
        begin(&w, LEAT_COMMAND_REQUEST, 3);
        leat_msg_write_u64(&w, rarely(dice, 90) ? 0 : session);
        leat_msg_write_u64(&w, highest + 1 > back ? highest + 1 - back + rarely(dice, 4) : 0);
        leat_msg_write_bin(&w, bytes, plain.used);
        out->count = w.used;
    } else {
        memcpy(out->bytes, bytes, plain.used);
        out->count = plain.used;
    }
    LEAT_ASSERT(!w.overflow);
    if (rarely(dice, 50)) spoil(dice, out);
}
