/* SPDX-License-Identifier: Apache-2.0 */
/* The pump: see raft/drive.h. */
#include "coordinator/raft/private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"

void leat_raft_drive_fail(struct leat_raft_drive *drive, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (drive->failed != LEAT_OK) return;
    /* Raft is a step ahead of its log, or half of a committed entry is in the tables. A node that
     * went on would take no appends for ever; what is on the disk is whole, and the next start
     * goes on from there. */
    const bool committed_is_applied = rc != LEAT_E_NO_MEMORY;
    LEAT_ASSERT(committed_is_applied);
    drive->failed = rc;
    leat_node_log_error("coordinator: stopped: %s (%s)", why, leat_err_text(rc));
    leat_timer_stop(drive->timers, &drive->raft_timer);
    leat_timer_stop(drive->timers, &drive->mark_timer);
    drive->hooks.on_failed(drive->hooks.owner, rc, why);
}

static raft_time now_ms(const struct leat_raft_drive *drive)
{
    return drive->env->clock->now_us(drive->env->clock->ctx) / 1000;
}

bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    return drive->failed == LEAT_OK && drive->led;
}

bool leat_raft_drive_busy(const struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    return drive->log.writing || drive->log.written_index < leat_raft_log_last_index(&drive->log);
}

void leat_raft_drive_timer_arm(struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    uint64_t now = drive->env->clock->now_us(drive->env->clock->ctx);
    uint64_t at = raft_timeout(&drive->raft) * 1000;
    leat_timer_start(drive->timers, &drive->raft_timer, at > now ? at - now : 0);
}

/* ---- what updates ask for ---- */

/* SUBTLE: libraft 0.22.1 notes a configuration among several entries under the index of the first entry. Then libraft
 * never learns that the configuration is committed, allows no other change, and when the log is cut between the two
 * indices goes back to an older configuration. The entries give the right index. */
static void entries_take(struct leat_raft_drive *drive, const struct raft_update *update)
{
    leat_err rc = LEAT_OK;
    uint64_t change_index = 0;
    for (unsigned i = 0; i < update->entries.n && rc == LEAT_OK; i++) {
        const struct raft_entry *entry = &update->entries.batch[i];
        if (entry->type == RAFT_CHANGE) change_index = update->entries.index + i;
        rc = leat_raft_log_append(&drive->log, update->entries.index + i, entry->term,
                                  (uint32_t)entry->type, entry->buf.base, entry->buf.len);
    }
    if (change_index != 0 && drive->raft.configuration_uncommitted_index != 0)
        drive->raft.configuration_uncommitted_index = change_index;
    /* The memory of the entries came with the update; the array stays with its maker. */
    if (update->entries.n > 0) raft_free(update->entries.batch[0].batch);
    if (rc != LEAT_OK) leat_raft_drive_fail(drive, rc, "an entry can't be kept");
}

static bool message_fill_entries(struct leat_raft_drive *drive, struct raft_append_entries *append)
{
    append->entries = NULL;
    if (append->n_entries == 0) return true;
    size_t bytes = 0;
    if (append->n_entries > drive->fill_capacity) {
        void *fill = leat_mem_realloc(LEAT_MEM_COORDINATOR, drive->fill, append->n_entries,
                                      sizeof *drive->fill);
        if (!fill) return false;
        drive->fill = fill;
        drive->fill_capacity = append->n_entries;
    }
    for (unsigned i = 0; i < append->n_entries; i++) {
        const struct leat_raft_entry *entry =
            leat_raft_log_get(&drive->log, append->prev_log_index + 1 + i);
        if (!entry) return false; /* compacted since; a snapshot follows when raft asks again */
        bytes += entry->bytes + LEAT_RAFT_FRAME_HEADER_BYTES;
        if (i > 0 && bytes > LEAT_RAFT_MESSAGE_BYTES_MAX) {
            /* The receiver of the next message notices the missing entries, and asks for them. */
            append->n_entries = i;
            break;
        }
        drive->fill[i] = (struct raft_entry){.term = entry->term,
                                             .type = (enum raft_entry_type)entry->type,
                                             .buf = {.base = entry->data, .len = entry->bytes}};
    }
    append->entries = drive->fill;
    return true;
}

static bool message_fill_snapshot(struct leat_raft_drive *drive,
                                  struct raft_install_snapshot *install)
{
    const struct leat_raft_snapshot *snapshot = &drive->log.snapshot;
    struct raft_snapshot_metadata meta;
    if (snapshot->index == 0 || !leat_raft_drive_snapshot_meta(drive, &meta)) return false;
    install->conf = meta.configuration;
    install->last_index = meta.index;
    install->last_term = meta.term;
    install->conf_index = meta.configuration_index;
    install->data.base = snapshot->data;
    install->data.len = snapshot->data_bytes;
    return true;
}

static void message_send(struct leat_raft_drive *drive, struct raft_message message)
{
    switch (message.type) {
    case RAFT_APPEND_ENTRIES:
        if (message_fill_entries(drive, &message.append_entries))
            drive->hooks.send(drive->hooks.owner, &message);
        break;
    case RAFT_INSTALL_SNAPSHOT:
        if (!message_fill_snapshot(drive, &message.install_snapshot)) break;
        drive->hooks.send(drive->hooks.owner, &message);
        raft_configuration_close(&message.install_snapshot.conf);
        break;
    case RAFT_REQUEST_VOTE_RESULT: {
        /* SUBTLE: libraft 0.22.1 answers a pre-vote with the term that was asked for. (1) One voter has
         * the longer log, the other the higher term, the third is gone. (2) The first asks for a term
         * that the second has passed, and is refused; the second asks, and is refused for its log.
         * (3) Neither learns why, for ever. A refusal says our term, as Raft has it. */
        struct raft_request_vote_result *result = &message.request_vote_result;
        if (result->pre_vote && !result->vote_granted &&
            result->term < raft_current_term(&drive->raft))
            result->term = raft_current_term(&drive->raft);
        drive->hooks.send(drive->hooks.owner, &message);
        break;
    }
    case RAFT_APPEND_ENTRIES_RESULT: {
        /* SUBTLE: libraft 0.22.1 leaves the last index unset in its answer to a leader of an earlier term.
         * (1) A leader that was cut off asks. (2) The answer has what lay on the stack, an address as a
         * rule. (3) That is further ahead than an index may be: the leader ends the connection, and has
         * not learnt of the newer term. No answer is ahead of the log. */
        struct raft_append_entries_result *result = &message.append_entries_result;
        uint64_t last = leat_raft_log_last_index(&drive->log);
        if (result->last_log_index > last) result->last_log_index = last;
        drive->hooks.send(drive->hooks.owner, &message);
        break;
    }
    default:
        drive->hooks.send(drive->hooks.owner, &message);
        break;
    }
}

/* SUBTLE: raft skips a committed configuration when a later configuration is in its log already, for example because
 * both came in a single message. (1) Both are in the log, the first is committed, raft still takes the configuration
 * before as committed. (2) The second is cut off: raft goes back to an outdated configuration, and counts other votes
 * than the other voters do. Or a snapshot is taken in between, with the outdated configuration. */
static void configuration_keep(struct leat_raft_drive *drive, uint64_t index,
                               const struct raft_buffer *conf)
{
    struct raft *raft = &drive->raft;
    struct raft_configuration configuration;
    if (raft->configuration_committed_index >= index) return;
    if (raft_configuration_decode(conf, &configuration) != 0) {
        leat_raft_drive_fail(drive, LEAT_E_NO_MEMORY, "a committed configuration can't be kept");
        return;
    }
    raft_configuration_close(&raft->configuration_committed);
    raft->configuration_committed = configuration;
    raft->configuration_committed_index = index;
}

static void configuration_applied(struct leat_raft_drive *drive, uint64_t index,
                                  const struct leat_raft_entry *entry)
{
    struct raft_event event = {.type = RAFT_CONFIGURATION};
    struct raft_buffer conf = {.base = entry->data, .len = entry->bytes};
    event.configuration.index = index;
    if (raft_configuration_decode(&conf, &event.configuration.conf) != 0) {
        leat_raft_drive_fail(drive, LEAT_E_CORRUPT, "a committed configuration does not decode");
        return;
    }
    if (leat_raft_drive_step(drive, &event) != LEAT_OK) return;
    configuration_keep(drive, index, &conf);
    if (!drive->hooks.on_configuration || drive->failed != LEAT_OK) return;
    struct raft_configuration configuration; /* raft has taken the first copy, and may drop it */
    if (raft_configuration_decode(&conf, &configuration) != 0) {
        leat_raft_drive_fail(drive, LEAT_E_NO_MEMORY, "a committed configuration can't be told");
        return;
    }
    drive->hooks.on_configuration(drive->hooks.owner, index, &configuration);
    raft_configuration_close(&configuration);
}

/* ---- commit ---- */

static void apply_committed(struct leat_raft_drive *drive)
{
    if (drive->applying) return;
    drive->applying = true;
    while (drive->failed == LEAT_OK && drive->applied < raft_commit_index(&drive->raft)) {
        uint64_t index = drive->applied + 1;
        const struct leat_raft_entry *entry = leat_raft_log_get(&drive->log, index);
        if (!entry) break; /* a snapshot that is being installed brings it */
        drive->applied = index;
        drive->bytes_since_snapshot += entry->bytes + LEAT_RAFT_FRAME_HEADER_BYTES;
        if (entry->type == RAFT_CHANGE) {
            configuration_applied(drive, index, entry);
            continue;
        }
        if (entry->type != RAFT_COMMAND) continue;
        leat_err rc = drive->hooks.apply(drive->hooks.owner, index, entry->data, entry->bytes);
        if (rc != LEAT_OK) leat_raft_drive_fail(drive, rc, "a committed entry can't be applied");
    }
    drive->applying = false;
    leat_raft_drive_snapshot_maybe(drive);
}

static void state_told(struct leat_raft_drive *drive)
{
    bool leads = raft_state(&drive->raft) == RAFT_LEADER;
    if (leads == drive->led) return;
    drive->led = leads;
    drive->hooks.on_state(drive->hooks.owner);
}

static leat_err update_do(struct leat_raft_drive *drive, const struct raft_update *update)
{
    if (update->flags & ((RAFT_UPDATE_CURRENT_TERM) | (RAFT_UPDATE_VOTED_FOR))) {
        leat_err rc = leat_raft_log_vote(&drive->log, raft_current_term(&drive->raft),
                                         raft_voted_for(&drive->raft));
        if (rc != LEAT_OK) leat_raft_drive_fail(drive, rc, "term and vote can't be stored");
    }
    if (update->flags & (RAFT_UPDATE_ENTRIES)) entries_take(drive, update);
    if (drive->failed != LEAT_OK) return drive->failed; /* says and promises nothing more */
    if (update->flags & (RAFT_UPDATE_SNAPSHOT)) leat_raft_drive_install_take(drive, update);
    if (update->flags & (RAFT_UPDATE_MESSAGES))
        for (unsigned i = 0; i < update->messages.n; i++)
            message_send(drive, update->messages.batch[i]);
    if (update->flags & (RAFT_UPDATE_STATE)) state_told(drive);
    if (update->flags & ((RAFT_UPDATE_TIMEOUT) | (RAFT_UPDATE_STATE)))
        leat_raft_drive_timer_arm(drive);
    if (update->flags & (RAFT_UPDATE_COMMIT_INDEX)) apply_committed(drive);
    return drive->failed;
}

leat_err leat_raft_drive_step(struct leat_raft_drive *drive, struct raft_event *event)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (drive->failed != LEAT_OK) return drive->failed;
    struct raft_update update;
    memset(&update, 0, sizeof update);
    event->time = now_ms(drive);
    event->capacity = USHRT_MAX;
    int rv = raft_step(&drive->raft, event, &update);
    if (rv == 0) return update_do(drive, &update);
    if (rv == RAFT_NOTLEADER) return LEAT_E_NOT_LEADER;
    if (rv == RAFT_CANTCHANGE) return LEAT_E_AGAIN;
    if (rv == RAFT_NOMEM && event->type == RAFT_SUBMIT) return LEAT_E_NO_MEMORY;
    leat_raft_drive_fail(drive, rv == RAFT_NOMEM ? LEAT_E_NO_MEMORY : LEAT_E_INTERNAL,
                         raft_strerror(rv));
    return drive->failed;
}

/* ---- events ---- */

static void raft_timed_out(struct leat_timer *timer)
{
    struct leat_raft_drive *drive = timer->owner;
    if (now_ms(drive) >= raft_timeout(&drive->raft)) {
        struct raft_event event = {.type = RAFT_TIMEOUT};
        (void)leat_raft_drive_step(drive, &event); /* a failure has stopped the drive already */
    }
    if (drive->failed == LEAT_OK) leat_raft_drive_timer_arm(drive);
}

static void round_durable(void *owner, uint64_t index, leat_err rc)
{
    struct leat_raft_drive *drive = owner;
    if (rc != LEAT_OK) {
        leat_raft_drive_fail(drive, rc, "raft's log can't be written");
        return;
    }
    if (leat_raft_drive_installs(drive)) {
        leat_raft_drive_install_finish(
            drive); /* the round's entries are replaced by the snapshot */
        return;
    }
    if (index <= drive->raft.last_stored) return; /* cut while it was on its way */
    struct raft_event event = {.type = RAFT_PERSISTED_ENTRIES};
    event.persisted_entries.index = index;
    (void)leat_raft_drive_step(drive, &event); /* a failure has stopped the drive already */
}

static void quiet(struct leat_timer *timer)
{
    struct leat_raft_drive *drive = timer->owner;
    if (drive->log.full) leat_raft_log_flush(&drive->log);
    if (drive->log.full) {
        leat_timer_start(drive->timers, timer, LEAT_RAFT_FULL_RETRY_US);
        return;
    }
    if (drive->log.writing || !leat_raft_log_mark_wanted(&drive->log)) return;
    leat_err rc = leat_raft_log_mark(&drive->log);
    if (rc != LEAT_OK) leat_raft_drive_fail(drive, rc, "raft's durable mark can't be stored");
}

void leat_raft_drive_events_set(struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    drive->raft_timer = (struct leat_timer){.on_expired = raft_timed_out, .owner = drive};
    drive->mark_timer = (struct leat_timer){.on_expired = quiet, .owner = drive};
    drive->log.on_durable = round_durable;
    drive->log.on_snapshot = leat_raft_drive_snapshot_saved;
    drive->log.owner = drive;
}

/* SUBTLE: raft tells followers what is committed with its next entries or its next heartbeat. Then a follower applies
 * its own requests up to a heartbeat late, and all nodes apply a crash as late. An empty append after an entry that a
 * follower is known to have tells the follower at once; a follower with a disk slower than the majority's is told
 * when it has acknowledged the entry. */
static void commit_tell_to(struct leat_raft_drive *drive, const struct raft_server *server,
                           const struct leat_raft_entry *entry, uint64_t commit)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES, .server_id = server->id, .server_address = server->address};
    message.append_entries.version = 0;
    message.append_entries.term = raft_current_term(&drive->raft);
    message.append_entries.prev_log_index = commit;
    message.append_entries.prev_log_term = entry->term;
    message.append_entries.leader_commit = commit;
    drive->hooks.send(drive->hooks.owner, &message);
}

static void commit_tell(struct leat_raft_drive *drive)
{
    struct raft *raft = &drive->raft;
    raft_index commit = raft_commit_index(raft);
    const struct leat_raft_entry *entry;
    if (!leat_raft_drive_leads(drive) || commit == drive->told_all ||
        !(entry = leat_raft_log_get(&drive->log, commit)))
        return;
    bool all = true;
    for (unsigned i = 0; i < raft->configuration.n && i < LEAT_RAFT_TOLD_MAX; i++) {
        const struct raft_server *server = &raft->configuration.servers[i];
        struct leat_raft_told *told = &drive->told[i];
        raft_index match = 0;
        if (server->id == raft->id || server->role == RAFT_SPARE) continue;
        if (told->id == server->id && told->index == commit) continue;
        if (raft_match_index(raft, server->id, &match) != 0 || match < commit) {
            all = false;
            continue;
        }
        *told = (struct leat_raft_told){server->id, commit};
        commit_tell_to(drive, server, entry, commit);
    }
    if (all) drive->told_all = commit;
}

void leat_raft_drive_turn_end(struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (drive->failed != LEAT_OK || !drive->raft_open) return;
    commit_tell(drive);
    if (!leat_raft_drive_installs(drive)) leat_raft_log_flush(&drive->log);
    if (drive->log.writing || drive->log.full)
        leat_timer_start(drive->timers, &drive->mark_timer, LEAT_RAFT_MARK_AFTER_US);
}

leat_err leat_raft_drive_submit(struct leat_raft_drive *drive, const struct raft_buffer *commands,
                                unsigned count, uint64_t *out_first_index)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (!leat_raft_drive_leads(drive))
        return drive->failed != LEAT_OK ? drive->failed : LEAT_E_NOT_LEADER;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        bytes += commands[i].len;
    struct raft_entry *entries = leat_mem_calloc(LEAT_MEM_COORDINATOR, count, sizeof *entries);
    uint8_t *batch = raft_malloc(bytes ? bytes : 1);
    if (!entries || !batch) {
        leat_mem_free(entries);
        raft_free(batch);
        return LEAT_E_NO_MEMORY;
    }
    uint8_t *at = batch;
    for (unsigned i = 0; i < count; i++) {
        memcpy(at, commands[i].base, commands[i].len);
        entries[i] = (struct raft_entry){.term = raft_current_term(&drive->raft),
                                         .type = RAFT_COMMAND,
                                         .buf = {.base = at, .len = commands[i].len},
                                         .batch = batch};
        at += commands[i].len;
    }
    uint64_t first = leat_raft_log_last_index(&drive->log) + 1;
    struct raft_event event = {.type = RAFT_SUBMIT};
    event.submit.entries = entries;
    event.submit.n = count;
    leat_err rc = leat_raft_drive_step(drive, &event);
    leat_mem_free(entries);
    if (rc == LEAT_E_NOT_LEADER || rc == LEAT_E_NO_MEMORY) raft_free(batch);
    if (rc == LEAT_OK) *out_first_index = first;
    return rc;
}

leat_err leat_raft_drive_change(struct leat_raft_drive *drive,
                                const struct raft_configuration *configuration)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (!leat_raft_drive_leads(drive))
        return drive->failed != LEAT_OK ? drive->failed : LEAT_E_NOT_LEADER;
    struct raft_buffer conf;
    if (raft_configuration_encode(configuration, &conf) != 0) return LEAT_E_NO_MEMORY;
    struct raft_entry entry = {.term = raft_current_term(&drive->raft),
                               .type = RAFT_CHANGE,
                               .buf = conf,
                               .batch = conf.base};
    struct raft_event event = {.type = RAFT_SUBMIT};
    event.submit.entries = &entry;
    event.submit.n = 1;
    leat_err rc = leat_raft_drive_step(drive, &event);
    if (rc == LEAT_E_NOT_LEADER || rc == LEAT_E_NO_MEMORY || rc == LEAT_E_AGAIN)
        raft_free(conf.base);
    return rc;
}

bool leat_raft_drive_changing(const struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    return drive->raft.configuration_uncommitted_index != 0;
}

void leat_raft_drive_catch_up(struct leat_raft_drive *drive, uint64_t id)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (!leat_raft_drive_leads(drive)) return;
    struct raft_event event = {.type = RAFT_CATCH_UP};
    event.catch_up.server_id = id;
    (void)leat_raft_drive_step(drive, &event); /* a failure has stopped the drive already */
}

int leat_raft_drive_catch_up_status(const struct leat_raft_drive *drive, uint64_t id)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    int status = RAFT_CATCH_UP_NONE;
    if (raft_catch_up(&drive->raft, id, &status) != 0) return RAFT_CATCH_UP_NONE;
    return status;
}

void leat_raft_message_drop(struct raft_message *message)
{
    if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
        raft_free(message->append_entries.entries[0].batch);
        raft_free(message->append_entries.entries);
    }
    if (message->type == RAFT_INSTALL_SNAPSHOT) {
        raft_configuration_close(&message->install_snapshot.conf);
        raft_free(message->install_snapshot.data.base);
    }
}

/* SUBTLE: entries in a snapshot are committed, so they are the same everywhere; but libraft 0.22.1 refuses entries
 * that begin inside its own snapshot. (1) A voter installs a snapshot to 65; the answer is lost with the voter, and
 * the leader knows of 59. (2) The voter is back and has nothing before 65: it refuses 315, 59, 58 and so on down to
 * 1. (3) The leader has all entries from 1, so it sends no snapshot, and no entries either, since 1 is below the
 * known match index: for ever. So here such a message begins at the snapshot's end. */
static void append_past_snapshot(const struct raft *raft, struct raft_append_entries *append)
{
    const struct raft_trail *trail = &raft->trail;
    if (raft->snapshot.installing || trail->snapshot.index <= append->prev_log_index ||
        (append->prev_log_index > trail->offset))
        return;
    uint64_t inside = trail->snapshot.index - append->prev_log_index;
    append->prev_log_index = trail->snapshot.index;
    append->prev_log_term = trail->snapshot.term;
    if (append->n_entries == 0) return;
    if (inside < append->n_entries) {
        append->n_entries -= (unsigned)inside;
        memmove(append->entries, append->entries + inside,
                append->n_entries * sizeof *append->entries);
        return;
    }
    raft_free(append->entries[0].batch);
    raft_free(append->entries);
    append->entries = NULL;
    append->n_entries = 0;
}

/* SUBTLE: libraft 0.22.1 checks the pre-vote flag before it checks for the state of a candidate; in a follower this
 * byte is a part of the pointer to the leader's address, in a leader a part of an id. (1) A voter's pre-vote is
 * granted, by an answer with the next term, which no node has. (2) Before the answer arrives the voter hears its
 * leader, and follows it. (3) Where the voter knows no leader, or the second byte of the pointer is zero (one case in
 * 256), it takes the term and refuses its leader, which steps down: a needless election. So only a candidate takes
 * such answers. Any other voter hears of a real higher term by the next request or refused append. */
static bool vote_is_late(struct leat_raft_drive *drive, const struct raft_message *message)
{
    return message->type == RAFT_REQUEST_VOTE_RESULT && raft_state(&drive->raft) != RAFT_CANDIDATE;
}

/* SUBTLE: libraft 0.22.1 sends nothing more to a voter whose next index is below its match index: it computes the
 * number of entries in flight from the two, and gets a number below zero.
 *  1. A voter has acknowledged 102. The voter is started on an older state of its disk, which ends at 12, and says
 *     so: its next entry is 13. The voter is refused (forgotten_watch()), and its newest state is restored.
 *  2. The newest state has 12 as well, so the voter accepts the empty append after 12, and answers 12. This goes on
 *     for ever: the voter never gets the entries after 102, and is refused as an older state, which it is not.
 * A voter still has what it acknowledged, unless it has lost data: so its next entry is the entry after its match
 * index. A voter that has lost data refuses this entry, and the next index goes back to 13. */
static void answer_past_match(struct raft *raft, const struct raft_message *message,
                              struct raft_append_entries_result *result)
{
    raft_index match = 0;
    if (raft_state(raft) != RAFT_LEADER || result->rejected != 0 ||
        raft_match_index(raft, message->server_id, &match) != 0)
        return;
    if (result->last_log_index < match) result->last_log_index = match;
}

void leat_raft_drive_receive(struct leat_raft_drive *drive, struct raft_message *message)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    /* raft would forget to free a second snapshot while one is being installed. */
    if (drive->failed != LEAT_OK || vote_is_late(drive, message) ||
        (message->type == RAFT_INSTALL_SNAPSHOT && drive->raft.snapshot.installing)) {
        leat_raft_message_drop(message);
        return;
    }
    if (message->type == RAFT_APPEND_ENTRIES && !LEAT_BUG(INSIDE_REFUSED))
        append_past_snapshot(&drive->raft, &message->append_entries);
    if (message->type == RAFT_APPEND_ENTRIES_RESULT)
        answer_past_match(&drive->raft, message, &message->append_entries_result);
    struct raft_event event = {.type = RAFT_RECEIVE};
    event.receive.message = message;
    (void)leat_raft_drive_step(drive, &event); /* a failure has stopped the drive already */
    if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0)
        raft_free(message->append_entries.entries);
}

void leat_raft_drive_last(struct leat_raft_drive *drive, uint64_t *out_index, uint64_t *out_term)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    const struct leat_raft_entry *entry;
    *out_index = leat_raft_log_last_index(&drive->log);
    *out_term = drive->log.snapshot.term;
    if ((entry = leat_raft_log_get(&drive->log, *out_index))) *out_term = entry->term;
}

void leat_raft_drive_take_over(struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    raft_id leader = 0;
    const char *address = NULL;
    raft_leader(&drive->raft, &leader, &address);
    if (drive->failed != LEAT_OK || raft_state(&drive->raft) != RAFT_FOLLOWER || leader == 0)
        return;
    struct raft_message message = {.type = RAFT_TIMEOUT_NOW, .server_id = leader};
    message.server_address = address;
    uint64_t index, term;
    leat_raft_drive_last(drive, &index, &term);
    message.timeout_now.term = raft_current_term(&drive->raft);
    message.timeout_now.last_log_index = index;
    message.timeout_now.last_log_term = term;
    leat_raft_drive_receive(drive, &message);
}
