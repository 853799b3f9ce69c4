/* SPDX-License-Identifier: Apache-2.0 */
/* Flipped bits. When everything is written, read and audited, the server goes down, one bit of its stored bytes is
 * flipped, and the server comes up again. Then each record is served, or its log is named as damaged. A log to which
 * the bit cannot belong is whole. Once the bit is flipped back everything is there again, because nothing damaged may
 * be thrown away unasked. */
#include "tests/sim/scenario.h"

#include <string.h>

#include "tests/sim/told.h"
#include "wire/entry.h"

enum {
    ROUNDS_MAX = 3,
    TRIES_MAX = 200,
    READ_US_MAX = 60 * 1000 * 1000,
    REFUSED_US_MAX = 5 * 1000 * 1000,
    CARED_FOR_US = 2500 * 1000,
    UNIT_BYTES = 16 * 1024, /* a slot begins at a multiple of it */
    STARTS = 3,
};

struct flip {
    struct sim_disk_place place;
    unsigned bit;
    uint8_t flipped; /* the byte afterwards */
};

static bool is_down(struct scenario *scenario)
{
    return !scenario->servers[0].process->alive;
}

static bool is_up_or_refuses(struct scenario *scenario)
{
    return scenario->servers[0].ready || scenario->servers[0].failed_boots > 0;
}

static bool is_up(struct scenario *scenario)
{
    return scenario->servers[0].ready;
}

static bool go_down(struct scenario *scenario)
{
    struct sim_server *server = &scenario->servers[0];
    server->down_wanted = true;
    if (server->ready && sim_rng_chance(&scenario->world->work, 500))
        sim_server_stop(&scenario->servers[0]);
    else
        sim_process_die(server->process, SIM_DEATH_KILL);
    if (sim_run_until(scenario, is_down, READ_US_MAX)) return true;
    sim_stuck(scenario, "the server does not stop");
    return false;
}

static void come_up(struct scenario *scenario)
{
    scenario->servers[0].down_wanted = false;
    scenario->servers[0].failed_boots = 0;
    sim_server_boot_later(&scenario->servers[0], 1000);
}

/* ---- whose bytes? ---- */

static void suspect(struct scenario *scenario, struct leat_log_ref log)
{
    uint32_t index;
    if (!sim_stream_of(scenario, log.stream, &index)) return;
    if (log.streamlet >= CHECK_STREAMLETS_MAX || log.log >= CHECK_LOGS_MAX) return;
    scenario->suspects[index][log.streamlet][log.log] = true;
}

/* Every segment header before the place whose capacity reaches the place: of the segment that lies there, or of an
 * earlier segment. */
static void suspects_of_slot(struct scenario *scenario, const struct sim_disk_place *place)
{
    uint64_t at = place->offset / UNIT_BYTES * UNIT_BYTES;
    for (unsigned back = 0; back <= LEAT_SEGMENT_BYTES_MAX / UNIT_BYTES; back++) {
        struct leat_segment_header header;
        if (sim_disk_peek(scenario->servers[0].disk, place->path, at + LEAT_ENTRY_HEADER_BYTES,
                          &header, sizeof header) &&
            header.magic == LEAT_SEGMENT_MAGIC && at + header.capacity > place->offset)
            suspect(scenario, (struct leat_log_ref){header.stream, header.streamlet, header.log});
        if (at == 0) return;
        at -= UNIT_BYTES;
    }
}

static void suspects_of_row(struct scenario *scenario, const struct sim_disk_place *place)
{
    struct leat_log_ref log;
    uint64_t row = place->offset / 128 * 128;
    if (sim_disk_peek(scenario->servers[0].disk, place->path, row + 8, &log, sizeof log))
        suspect(scenario, log);
}

/* The catalogue's first block, the coordinator's files, the identity: no log's. The server refuses
 * to start, or can do without. */
static void suspects_find(struct scenario *scenario, const struct sim_disk_place *place)
{
    memset(scenario->suspects, 0, sizeof scenario->suspects);
    if (strncmp(place->path, "store/", 6) == 0)
        suspects_of_slot(scenario, place);
    else if (strcmp(place->path, "catalogue") == 0 && place->offset >= 4096)
        suspects_of_row(scenario, place);
}

static bool flip_one(struct scenario *scenario, struct flip *flip)
{
    static const char *const prefixes[] = {"store/", "store/", "catalogue", "raft/", ""};
    struct sim_rng *rng = &scenario->world->work;
    const char *prefix = prefixes[sim_rng_below(rng, sizeof prefixes / sizeof *prefixes)];
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        if (!sim_disk_pick(scenario->servers[0].disk, rng, prefix, &flip->place)) continue;
        suspects_find(scenario, &flip->place); /* before a header is unreadable */
        flip->bit = (unsigned)sim_rng_below(rng, 8);
        sim_disk_flip(scenario->servers[0].disk, flip->place.path, flip->place.offset, flip->bit);
        sim_disk_peek(scenario->servers[0].disk, flip->place.path, flip->place.offset,
                      &flip->flipped, 1);
        sim_fault_struck(scenario->world, SIM_FAULT_FLIP);
        sim_trace(scenario->world, "bit %u of byte %llu of %s flips", flip->bit,
                  (unsigned long long)flip->place.offset, flip->place.path);
        return true;
    }
    return false;
}

/* Unless somebody has written there since. */
static void flip_back(struct scenario *scenario, const struct flip *flip)
{
    uint8_t now;
    if (!sim_disk_peek(scenario->servers[0].disk, flip->place.path, flip->place.offset, &now, 1))
        return;
    if (now != flip->flipped) return;
    sim_disk_flip(scenario->servers[0].disk, flip->place.path, flip->place.offset, flip->bit);
    sim_trace(scenario->world, "byte %llu of %s is as it was",
              (unsigned long long)flip->place.offset, flip->place.path);
}

/* ---- what is served ---- */

static bool logs_read(struct scenario *scenario)
{
    for (unsigned i = scenario->rot_first; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->given_up || sim_consumer_at_end(client)) continue;
        scenario->waits_for = client->process->name;
        return false;
    }
    return true;
}

/* The power took some of the others before. */
static bool log_is_judged(const struct scenario *scenario, struct leat_log_ref log)
{
    return !check_at_risk(scenario->check, log);
}

static void each_log(struct scenario *scenario,
                     void (*each)(struct scenario *, struct leat_log_ref))
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        for (uint32_t s = 0; s < scenario->streams[i].settings.streamlets; s++)
            for (uint32_t q = 0; q < scenario->streams[i].settings.logs; q++)
                if (log_is_judged(scenario, (struct leat_log_ref){i, s, q}))
                    each(scenario, (struct leat_log_ref){i, s, q});
}

static void log_read(struct scenario *scenario, struct leat_log_ref log)
{
    (void)sim_client_start(scenario, SIM_CLIENT_VERIFIER, log.stream,
                           1 + log.streamlet * CHECK_LOGS_MAX + log.log);
}

static void log_judge(struct scenario *scenario, struct leat_log_ref log)
{
    char missing[CHECK_BEHIND_BYTES];
    scenario->behind[0] = '\0';
    bool named = scenario->named[log.stream][log.streamlet][log.log];
    bool suspected = scenario->suspects[log.stream][log.streamlet][log.log];
    if (named && !suspected)
        sim_fail(scenario->world, "rot: log %u/%u/%u is called damaged, but is not what was hit",
                 log.stream, log.streamlet, log.log);
    if (check_log_whole(scenario->check, log, missing)) return;
    scenario->rot_damaged++;
    if (!named || !suspected)
        sim_fail(scenario->world, "rot: log %u/%u/%u lacks %s, %s", log.stream, log.streamlet,
                 log.log, missing, suspected ? "and nobody names it" : "but is not what was hit");
}

static void log_told(struct scenario *scenario, struct leat_log_ref log)
{
    char missing[CHECK_BEHIND_BYTES];
    scenario->behind[0] = '\0';
    if (!check_log_whole(scenario->check, log, missing) &&
        !scenario->status_names[log.stream][log.streamlet][log.log])
        sim_fail(scenario->world, "A13 told: log %u/%u/%u lacks %s, and status does not name it",
                 log.stream, log.streamlet, log.log, missing);
}

/* A reader for each log, so that the end of one reader leaves the other logs alone. */
static void logs_read_and_judge(struct scenario *scenario)
{
    check_audit_begin(scenario->check);
    scenario->rot_first = scenario->client_count;
    each_log(scenario, log_read);
    if (!sim_run_until(scenario, logs_read, READ_US_MAX))
        sim_stuck(scenario, "logs are not read to their end after a bit was flipped");
    each_log(scenario, log_judge);
    /* Readers have been refused: that is what an operator is to be told now. */
    sim_told_look(scenario, "when readers have met damage", NULL, SIM_TOLD_ALL);
    each_log(scenario, log_told);
    while (scenario->client_count > scenario->rot_first)
        sim_client_kill(scenario->clients[--scenario->client_count]);
}

static bool rot_round(struct scenario *scenario)
{
    struct flip flip;
    /* Within a second of a start retention opens a segment where it finds something to drop, and a log that
     * was trimmed to its end begins anew. The coordinator's log is told of both: what that got in the last
     * 200 ms reads as torn when it is damaged, and those logs then end where they did before. */
    sim_world_run(scenario->world, scenario->world->now_us + CARED_FOR_US, NULL);
    if (!go_down(scenario)) return false;
    memset(scenario->named, 0, sizeof scenario->named);
    bool flipped = flip_one(scenario, &flip);
    scenario->corrupt = flipped;
    come_up(scenario);
    if (!sim_run_until(scenario, is_up_or_refuses, READ_US_MAX)) {
        sim_stuck(scenario, "neither starts nor refuses to after a bit was flipped");
        return false;
    }
    if (scenario->servers[0].ready)
        logs_read_and_judge(scenario);
    else
        sim_trace(scenario->world, "refused: %s", scenario->servers[0].last_failure);
    if (scenario->world->failure[0] || !go_down(scenario)) return false;
    if (flipped) flip_back(scenario, &flip);
    scenario->corrupt = false;
    come_up(scenario);
    if (sim_run_until(scenario, is_up, READ_US_MAX)) return true;
    sim_stuck(scenario, "the server does not start although the bit is as it was");
    return false;
}

/* Everybody else is gone. */
void sim_rot_run(struct scenario *scenario)
{
    uint64_t rounds = sim_rng_between(&scenario->world->work, 1, ROUNDS_MAX);
    while (rounds-- > 0)
        if (!rot_round(scenario)) return;
}

/* ---- a store file that is gone, or has lost its end ----
 *
 * What the rows claim of it is made again by the start that finds that, and has the right size from then on: so
 * each later start has to know it from what the first one wrote down. A reader that meets the damage has it written
 * down, too: so in half of the seeds nobody reads after the first start. */

static void suspects_of_file(struct scenario *scenario, const char *path, uint64_t end)
{
    uint64_t bytes = sim_disk_file_bytes(scenario->servers[0].disk, path);
    memset(scenario->suspects, 0, sizeof scenario->suspects);
    for (uint64_t at = 0; at < bytes; at += UNIT_BYTES) {
        struct leat_segment_header header;
        if (sim_disk_peek(scenario->servers[0].disk, path, at + LEAT_ENTRY_HEADER_BYTES, &header,
                          sizeof header) &&
            header.magic == LEAT_SEGMENT_MAGIC && at + header.capacity > end)
            suspect(scenario, (struct leat_log_ref){header.stream, header.streamlet, header.log});
    }
}

static bool file_lose(struct scenario *scenario, struct sim_rng *rng)
{
    struct sim_disk *disk = scenario->servers[0].disk;
    struct sim_disk_place place;
    unsigned tries = 0;
    while (!sim_disk_pick(disk, rng, "store/", &place))
        if (++tries == TRIES_MAX) return false;
    bool all = sim_rng_chance(rng, 600);
    suspects_of_file(scenario, place.path, all ? 0 : place.offset);
    if (all ? !sim_disk_lose(disk, place.path) : !sim_disk_truncate(disk, place.path, place.offset))
        return false;
    sim_fault_struck(scenario->world, SIM_FAULT_LOST_FILE);
    sim_trace(scenario->world, all ? "%s is gone" : "%s ends at %llu", place.path,
              (unsigned long long)place.offset);
    return true;
}

/* By the server, before anybody has read. */
static void told_at_start(struct scenario *scenario, struct leat_log_ref log)
{
    char missing[CHECK_BEHIND_BYTES];
    scenario->behind[0] = '\0';
    if (scenario->told_in_sum) return; /* "and 17 complaints more, see the node log" */
    if (!check_log_whole(scenario->check, log, missing) &&
        !scenario->told[log.stream][log.streamlet][log.log])
        sim_fail(scenario->world, "lost file: log %u/%u/%u lacks %s, and this start does not tell",
                 log.stream, log.streamlet, log.log, missing);
}

void sim_lost_run(struct scenario *scenario)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "lost files");
    sim_world_run(scenario->world, scenario->world->now_us + CARED_FOR_US, NULL);
    if (!go_down(scenario) || !file_lose(scenario, &rng)) return;
    scenario->corrupt = true;
    bool unread = sim_rng_chance(&rng, 500);
    for (unsigned start = 0; start < STARTS; start++) {
        memset(scenario->named, 0, sizeof scenario->named);
        scenario->told_in_sum = false;
        come_up(scenario);
        if (!sim_run_until(scenario, is_up, READ_US_MAX)) {
            sim_stuck(scenario, "does not start after a store file was lost");
            return;
        }
        memcpy(scenario->told, scenario->named, sizeof scenario->told);
        if (start > 0 || !unread) {
            logs_read_and_judge(scenario);
            each_log(scenario, told_at_start);
        }
        if (scenario->world->failure[0] || !go_down(scenario)) return;
    }
}
