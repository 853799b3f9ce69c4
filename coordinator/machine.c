/* The state machine's entries: each is checked against the tables when it is applied, not when it
 * was proposed. */
#include "coordinator/machine.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static void stream_told(struct leat_machine *machine, struct leat_stream_desc *desc)
{
    if (machine->on_stream) machine->on_stream(machine->owner, desc);
}

static leat_err refuse_malformed(struct leat_machine_result *result)
{
    return result->rc = leat_error_set(&result->error, LEAT_E_CORRUPT,
                                       "a committed coordinator entry does not decode");
}

/* The next of the cluster-wide epochs, or 0 when they are used up. */
static uint32_t epoch_draw(struct leat_machine *machine)
{
    if (machine->next_epoch > LEAT_EPOCH_MAX) return 0;
    return machine->next_epoch++;
}

static leat_err refuse_epochs(struct leat_machine_result *result)
{
    return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                       "all %d ownership epochs of this cluster are used up",
                                       LEAT_EPOCH_MAX);
}

/* ---- form, barrier, producer ids ---- */

static leat_err apply_form(struct leat_machine *machine, struct leat_msg_reader *reader,
                           struct leat_machine_result *result)
{
    struct leat_msg_string id = leat_msg_read_string(reader);
    if (!leat_msg_read_done(reader) || id.bytes != sizeof machine->cluster_id)
        return refuse_malformed(result);
    if (machine->formed)
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_EXISTS, "the cluster is formed already");
    memcpy(machine->cluster_id, id.text, sizeof machine->cluster_id);
    machine->formed = true;
    return LEAT_OK;
}

static leat_err apply_producer_ids(struct leat_machine *machine, struct leat_msg_reader *reader,
                                   struct leat_machine_result *result)
{
    uint32_t count = leat_msg_read_u32(reader);
    if (!leat_msg_read_done(reader) || count == 0) return refuse_malformed(result);
    if (machine->next_producer_id > INT64_MAX - (int64_t)count)
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_TOO_MANY, "all producer ids are used up");
    result->first_id = machine->next_producer_id;
    result->id_count = count;
    machine->next_producer_id += count;
    return LEAT_OK;
}

/* ---- streams ---- */

/* Who shall own a new stream: of the nodes that are up, the one with the fewest streamlets. */
static struct leat_machine_node *owner_choose(struct leat_machine *machine)
{
    struct leat_machine_node *best = NULL;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        struct leat_machine_node *node = &machine->nodes[i];
        if (!best || node->streamlets < best->streamlets) best = node;
    }
    return best;
}

static leat_err create_check(struct leat_machine *machine, struct leat_msg_string name,
                             struct leat_stream_settings *settings,
                             struct leat_machine_result *result)
{
    result->rc = leat_stream_name_check(name.text, name.bytes, &result->error);
    if (result->rc != LEAT_OK) return result->rc;
    if (leat_machine_name_find(machine, name.text, name.bytes))
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_STREAM_EXISTS,
                                  "a stream named '%.*s' exists", (int)name.bytes, name.text);
    result->rc = leat_stream_settings_complete(settings, machine->cores, &result->error);
    if (result->rc != LEAT_OK) return result->rc;
    if (machine->stream_count >= LEAT_STREAMS_MAX)
        return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                           "the cluster has %d streams, as many as it may",
                                           LEAT_STREAMS_MAX);
    uint64_t logs = (uint64_t)settings->streamlets * settings->logs;
    if (machine->log_count + logs > LEAT_CLUSTER_LOGS_MAX)
        return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                           "%" PRIu64 " logs more than the cluster's %" PRIu64
                                           " would exceed the %d it may have",
                                           logs, machine->log_count, LEAT_CLUSTER_LOGS_MAX);
    if (machine->next_stream_id == UINT32_MAX)
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_TOO_MANY, "all stream ids are used up");
    return LEAT_OK;
}

static leat_err apply_stream_create(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_msg_string name = leat_msg_read_string(reader);
    struct leat_stream_settings settings = {0};
    leat_msg_settings_read(reader, &settings);
    if (!leat_msg_read_done(reader)) return refuse_malformed(result);
    if (create_check(machine, name, &settings, result) != LEAT_OK) return LEAT_OK;
    if (machine->next_epoch > LEAT_EPOCH_MAX) {
        (void)refuse_epochs(result);
        return LEAT_OK;
    }

    struct leat_stream_desc *desc =
        leat_machine_desc_create(machine->next_stream_id, name.text, name.bytes, &settings);
    if (!desc) return LEAT_E_NO_MEMORY;
    struct leat_machine_log *logs;
    if (leat_machine_stream_add(machine, desc, &logs) != LEAT_OK) {
        leat_stream_desc_unref(desc);
        return LEAT_E_NO_MEMORY;
    }
    machine->next_stream_id++;
    struct leat_epoch epoch = {epoch_draw(machine)};
    struct leat_machine_node *owner = owner_choose(machine);
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        desc->streamlets[i].owner = owner ? owner->incarnation : 0;
        desc->streamlets[i].epoch = epoch;
    }
    if (owner) owner->streamlets += desc->streamlet_count;
    /* Empty, and known to be: only "opened" makes marks say where the log ends. */
    for (uint32_t i = 0; i < settings.streamlets * settings.logs; i++)
        logs[i] = (struct leat_machine_log){.record.tail.segment = UINT64_MAX, .epoch = epoch};
    machine->changes++;
    result->desc = desc;
    result->stream_id = desc->id;
    result->epoch = epoch;
    stream_told(machine, desc);
    return LEAT_OK;
}

static void owners_uncount(struct leat_machine *machine, const struct leat_stream_desc *desc)
{
    for (uint32_t i = 0; i < desc->streamlet_count; i++)
        for (uint32_t n = 0; n < machine->node_count; n++)
            if (machine->nodes[n].incarnation == desc->streamlets[i].owner)
                machine->nodes[n].streamlets--;
}

static leat_err apply_stream_delete(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_msg_string name = leat_msg_read_string(reader);
    if (!leat_msg_read_done(reader)) return refuse_malformed(result);
    struct leat_machine_stream *stream = leat_machine_name_find(machine, name.text, name.bytes);
    if (!stream) {
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_STREAM, "no stream '%.*s'",
                                    (int)name.bytes, name.text);
        return LEAT_OK;
    }
    if (stream->desc->internal) {
        result->rc = leat_error_set(&result->error, LEAT_E_BAD_NAME,
                                    "'%.*s' is an internal stream and can't be deleted",
                                    (int)name.bytes, name.text);
        return LEAT_OK;
    }
    uint32_t id = stream->id;
    owners_uncount(machine, stream->desc);
    leat_machine_stream_drop(machine, stream);
    machine->changes++;
    result->stream_id = id;
    if (machine->on_stream_deleted) machine->on_stream_deleted(machine->owner, id);
    return LEAT_OK;
}

/* ---- logs ---- */

static struct leat_machine_log *log_find(struct leat_machine *machine, struct leat_log_ref ref,
                                         struct leat_machine_stream **out_stream)
{
    struct leat_machine_stream *stream = leat_machine_stream_find(machine, ref.stream);
    *out_stream = stream;
    if (!stream || ref.streamlet >= stream->desc->settings.streamlets ||
        ref.log >= stream->desc->settings.logs)
        return NULL;
    return &stream->logs[ref.streamlet * stream->desc->settings.logs + ref.log];
}

static struct leat_log_ref log_ref_read(struct leat_msg_reader *reader)
{
    struct leat_log_ref ref;
    ref.stream = leat_msg_read_u32(reader);
    ref.streamlet = leat_msg_read_u32(reader);
    ref.log = leat_msg_read_u32(reader);
    return ref;
}

static void refuse_log(struct leat_machine_result *result, bool stream_known,
                       struct leat_log_ref ref)
{
    if (!stream_known)
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_STREAM,
                                    "there is no stream %" PRIu32 " (any more)", ref.stream);
    else
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_LOG,
                                    "stream %" PRIu32 " has no log %" PRIu32 " of streamlet "
                                    "%" PRIu32,
                                    ref.stream, ref.log, ref.streamlet);
}

static bool opened_allowed(struct leat_machine *machine, struct leat_log_ref ref, uint32_t epoch,
                           struct leat_machine_result *result)
{
    struct leat_machine_stream *stream;
    struct leat_machine_log *log = log_find(machine, ref, &stream);
    if (!log) {
        refuse_log(result, stream != NULL, ref);
        return false;
    }
    if (log->epoch.v != epoch) {
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "stream %" PRIu32 " streamlet %" PRIu32 " log %" PRIu32
                                    " is owned under epoch %" PRIu32 ", not %" PRIu32,
                                    ref.stream, ref.streamlet, ref.log, log->epoch.v, epoch);
        return false;
    }
    return true;
}

/* All logs of the entry, or none: first a pass that checks, then one that changes. */
static leat_err apply_opened(struct leat_machine *machine, struct leat_msg_reader *reader,
                             struct leat_machine_result *result)
{
    uint32_t epoch = leat_msg_read_u32(reader);
    uint32_t count = leat_msg_read_array(reader);
    struct leat_msg_reader again = *reader;
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        if (leat_msg_read_array(reader) != 3) return refuse_malformed(result);
        struct leat_log_ref ref = log_ref_read(reader);
        if (reader->failed) return refuse_malformed(result);
        if (!opened_allowed(machine, ref, epoch, result)) return LEAT_OK;
    }
    if (!leat_msg_read_done(reader)) return refuse_malformed(result);
    for (uint32_t i = 0; i < count; i++) {
        (void)leat_msg_read_array(&again);
        struct leat_machine_stream *stream;
        struct leat_machine_log *log = log_find(machine, log_ref_read(&again), &stream);
        log->record = (struct leat_log_record){.opened = true, .stamp_epoch = {epoch}};
    }
    machine->changes++;
    result->epoch.v = epoch;
    return LEAT_OK;
}

static leat_err apply_accept_loss(struct leat_machine *machine, struct leat_msg_reader *reader,
                                  struct leat_machine_result *result)
{
    struct leat_log_ref ref = log_ref_read(reader);
    uint64_t segment = leat_msg_read_u64(reader);
    uint64_t next_offset = leat_msg_read_u64(reader);
    if (!leat_msg_read_done(reader)) return refuse_malformed(result);
    struct leat_machine_stream *stream;
    struct leat_machine_log *log = log_find(machine, ref, &stream);
    if (!log) {
        refuse_log(result, stream != NULL, ref);
        return LEAT_OK;
    }
    if (!log->record.opened && next_offset < log->record.tail.next_offset) {
        result->rc = leat_error_set(&result->error, LEAT_E_INVALID,
                                    "offset %" PRIu64 " would go back: the log is known to reach "
                                    "%" PRIu64,
                                    next_offset, log->record.tail.next_offset);
        return LEAT_OK;
    }
    uint32_t epoch = epoch_draw(machine);
    if (epoch == 0) {
        (void)refuse_epochs(result);
        return LEAT_OK;
    }
    log->record = (struct leat_log_record){
        .tail = {.segment = segment, .next_offset = next_offset, .jumped = true}};
    log->epoch.v = epoch;
    machine->changes++;
    result->epoch.v = epoch;
    return LEAT_OK;
}

/* ---- nodes ---- */

static leat_err apply_node_up(struct leat_machine *machine, struct leat_msg_reader *reader,
                              struct leat_machine_result *result)
{
    struct leat_msg_string name = leat_msg_read_string(reader);
    struct leat_msg_string address = leat_msg_read_string(reader);
    uint32_t cores = leat_msg_read_u32(reader);
    if (!leat_msg_read_done(reader)) return refuse_malformed(result);
    if (name.bytes == 0 || name.bytes > LEAT_NODE_NAME_BYTES_MAX ||
        address.bytes > LEAT_ADDRESS_BYTES_MAX || memchr(name.text, 0, name.bytes)) {
        result->rc = leat_error_set(&result->error, LEAT_E_BAD_NAME,
                                    "a node needs a name of 1 to %d bytes and an address of at "
                                    "most %d",
                                    LEAT_NODE_NAME_BYTES_MAX, LEAT_ADDRESS_BYTES_MAX);
        return LEAT_OK;
    }
    struct leat_machine_node *node = leat_machine_node_find(machine, name.text, name.bytes);
    if (!node) {
        if (machine->node_count == LEAT_NODES_MAX) {
            result->rc =
                leat_error_set(&result->error, LEAT_E_TOO_MANY,
                               "the cluster has %d nodes, as many as it may", LEAT_NODES_MAX);
            return LEAT_OK;
        }
        node = &machine->nodes[machine->node_count++];
        memcpy(node->name, name.text, name.bytes);
    }
    memset(node->address, 0, sizeof node->address);
    if (address.bytes) memcpy(node->address, address.text, address.bytes);
    node->cores = cores;
    node->incarnation = machine->next_incarnation++;
    /* What the old incarnation owned is nobody's until it is adopted. */
    node->streamlets = 0;
    machine->changes++;
    result->incarnation = node->incarnation;
    return LEAT_OK;
}

static struct leat_machine_node *node_up(struct leat_machine *machine, uint64_t incarnation)
{
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].incarnation == incarnation) return &machine->nodes[i];
    return NULL;
}

/* ---- adopt ---- */

struct adopt_row {
    struct leat_log_ref log;
    uint32_t decision;
    struct leat_tail_record tail;
};

static struct adopt_row adopt_row_read(struct leat_msg_reader *reader)
{
    struct adopt_row row = {0};
    uint32_t fields = leat_msg_read_array(reader);
    row.log = log_ref_read(reader);
    row.decision = leat_msg_read_u32(reader);
    row.tail.segment = leat_msg_read_u64(reader);
    row.tail.extent.bytes = leat_msg_read_u32(reader);
    row.tail.extent.crc = leat_msg_read_u32(reader);
    row.tail.next_offset = leat_msg_read_u64(reader);
    if (fields != 8) reader->failed = true;
    return row;
}

static void staged_drop(struct leat_machine *machine)
{
    machine->staged_attempt = 0;
    machine->staged_next = 0;
    machine->staged_bytes = 0;
}

static leat_err staged_add(struct leat_machine *machine, const uint8_t *bytes, size_t count)
{
    if (machine->staged_bytes + count > machine->staged_capacity) {
        size_t capacity = machine->staged_capacity == 0 ? 65536 : machine->staged_capacity;
        while (capacity < machine->staged_bytes + count)
            capacity *= 2;
        void *staged = leat_mem_realloc(LEAT_MEM_COORDINATOR, machine->staged, capacity, 1);
        if (!staged) return LEAT_E_NO_MEMORY;
        machine->staged = staged;
        machine->staged_capacity = capacity;
    }
    if (count) memcpy(machine->staged + machine->staged_bytes, bytes, count);
    machine->staged_bytes += count;
    return LEAT_OK;
}

/* A streamlet whose owner is up is not up for adoption by somebody else. */
static bool streamlet_adoptable(struct leat_machine *machine, uint64_t owner, uint64_t incarnation)
{
    return owner == incarnation || !node_up(machine, owner);
}

/* Rows that name something unknown make the whole attempt refused, before anything changes. */
static bool adopt_rows_check(struct leat_machine *machine, uint64_t incarnation,
                             struct leat_machine_result *result)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, machine->staged, machine->staged_bytes);
    while (!reader.failed && reader.at < reader.end) {
        struct adopt_row row = adopt_row_read(&reader);
        if (reader.failed) break;
        struct leat_machine_stream *stream;
        if (!log_find(machine, row.log, &stream)) {
            refuse_log(result, stream != NULL, row.log);
            return false;
        }
        uint64_t owner = stream->desc->streamlets[row.log.streamlet].owner;
        if (!streamlet_adoptable(machine, owner, incarnation)) {
            result->rc = leat_error_set(&result->error, LEAT_E_NOT_OWNER,
                                        "stream %" PRIu32 " streamlet %" PRIu32
                                        " is owned by incarnation %" PRIu64 ", which is up",
                                        row.log.stream, row.log.streamlet, owner);
            return false;
        }
    }
    if (!reader.failed) return true;
    result->rc = leat_error_set(&result->error, LEAT_E_INVALID, "an adoption's rows do not decode");
    return false;
}

/* A description is immutable once told, so an ownership change tells a new one. */
static leat_err stream_own(struct leat_machine *machine, struct leat_machine_stream *stream,
                           struct leat_machine_node *node, struct leat_epoch epoch)
{
    const struct leat_stream_desc *old = stream->desc;
    struct leat_stream_desc *desc =
        leat_machine_desc_create(old->id, old->name, strlen(old->name), &old->settings);
    if (!desc) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        desc->streamlets[i].owner = old->streamlets[i].owner;
        desc->streamlets[i].epoch = old->streamlets[i].epoch;
        if (!streamlet_adoptable(machine, old->streamlets[i].owner, node->incarnation)) continue;
        struct leat_machine_node *from = node_up(machine, old->streamlets[i].owner);
        if (!from) node->streamlets++;
        desc->streamlets[i].owner = node->incarnation;
        desc->streamlets[i].epoch = epoch;
        for (uint32_t q = 0; q < desc->settings.logs; q++)
            stream->logs[i * desc->settings.logs + q].epoch = epoch;
    }
    leat_stream_desc_unref(stream->desc);
    stream->desc = desc;
    stream_told(machine, desc);
    return LEAT_OK;
}

static leat_err adopt_commit(struct leat_machine *machine, struct leat_machine_node *node,
                             struct leat_machine_result *result)
{
    struct leat_epoch epoch = {epoch_draw(machine)};
    if (epoch.v == 0) {
        (void)refuse_epochs(result);
        return LEAT_OK;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, machine->staged, machine->staged_bytes);
    while (reader.at < reader.end) {
        struct adopt_row row = adopt_row_read(&reader);
        /* A waiting log keeps what says where it ends, and is tried again. */
        if (row.decision != LEAT_DECIDED_TAIL) continue;
        struct leat_machine_stream *stream;
        struct leat_machine_log *log = log_find(machine, row.log, &stream);
        log->record = (struct leat_log_record){.tail = row.tail};
    }
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        leat_err rc = stream_own(machine, &machine->streams[i], node, epoch);
        if (rc != LEAT_OK) return rc;
    }
    machine->changes++;
    result->epoch = epoch;
    result->incarnation = node->incarnation;
    return LEAT_OK;
}

static leat_err apply_adopt(struct leat_machine *machine, struct leat_msg_reader *reader,
                            struct leat_machine_result *result)
{
    uint64_t attempt = leat_msg_read_u64(reader);
    uint32_t number = leat_msg_read_u32(reader);
    bool last = leat_msg_read_bool(reader);
    uint64_t incarnation = leat_msg_read_u64(reader);
    uint64_t seen = leat_msg_read_u64(reader);
    struct leat_msg_string rows = leat_msg_read_string(reader);
    if (!leat_msg_read_done(reader) || attempt == 0) return refuse_malformed(result);

    /* A new attempt replaces one that never came to its end. */
    if (number == 0) {
        staged_drop(machine);
        machine->staged_attempt = attempt;
    }
    if (machine->staged_attempt != attempt || machine->staged_next != number ||
        machine->staged_bytes + rows.bytes > LEAT_ADOPT_STAGED_BYTES_MAX) {
        result->rc =
            leat_error_set(&result->error, LEAT_E_AGAIN, "another adoption came in between");
        return LEAT_OK;
    }
    machine->staged_next++;
    leat_err rc = staged_add(machine, (const uint8_t *)rows.text, rows.bytes);
    if (rc != LEAT_OK || !last) return rc;

    struct leat_machine_node *node = node_up(machine, incarnation);
    if (!node)
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "incarnation %" PRIu64 " is not up (any more)", incarnation);
    else if (seen != machine->changes)
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "streams or logs changed while the adoption was decided");
    else if (adopt_rows_check(machine, incarnation, result))
        rc = adopt_commit(machine, node, result);
    staged_drop(machine);
    return rc;
}

leat_err leat_machine_apply(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                            struct leat_machine_result *out_result)
{
    *out_result = (struct leat_machine_result){.rc = LEAT_OK};
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t fields = leat_msg_read_array(&reader);
    uint32_t version = leat_msg_read_u32(&reader);
    uint32_t kind = leat_msg_read_u32(&reader);
    if (reader.failed || fields < 2) return refuse_malformed(out_result);
    if (version != LEAT_COMMAND_VERSION)
        return out_result->rc = leat_error_set(&out_result->error, LEAT_E_CORRUPT,
                                               "a committed coordinator entry has version %" PRIu32
                                               "; this program knows %d: it is older than its data",
                                               version, LEAT_COMMAND_VERSION);
    switch (kind) {
    case LEAT_COMMAND_FORM:
        return apply_form(machine, &reader, out_result);
    case LEAT_COMMAND_STREAM_CREATE:
        return apply_stream_create(machine, &reader, out_result);
    case LEAT_COMMAND_STREAM_DELETE:
        return apply_stream_delete(machine, &reader, out_result);
    case LEAT_COMMAND_PRODUCER_IDS:
        return apply_producer_ids(machine, &reader, out_result);
    case LEAT_COMMAND_OPENED:
        return apply_opened(machine, &reader, out_result);
    case LEAT_COMMAND_NODE_UP:
        return apply_node_up(machine, &reader, out_result);
    case LEAT_COMMAND_ADOPT:
        return apply_adopt(machine, &reader, out_result);
    case LEAT_COMMAND_ACCEPT_LOSS:
        return apply_accept_loss(machine, &reader, out_result);
    case LEAT_COMMAND_BARRIER:
        return leat_msg_read_done(&reader) ? LEAT_OK : refuse_malformed(out_result);
    default:
        return refuse_malformed(out_result);
    }
}
