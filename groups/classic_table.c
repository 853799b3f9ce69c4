/* SPDX-License-Identifier: Apache-2.0 */
/* Members of classic groups and their bytes: see classic_table.h. */
#include "groups/stored.h"

#include "base/assert.h"
#include "base/mem.h"

/* Of one member beside its texts: headers of msgpack, numbers. */
enum { MEMBER_HEAD_BYTES = 73, PROTOCOL_HEAD_BYTES = 12, GROUP_HEAD_BYTES = 32 };

struct leat_classic *leat_classic_create(void)
{
    struct leat_classic *classic = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *classic);
    if (classic) classic->stored_bytes = GROUP_HEAD_BYTES;
    return classic;
}

static void member_free(struct leat_classic_member *member)
{
    leat_mem_free(member->facts);
    leat_mem_free(member->assignment);
    leat_mem_free(member);
}

void leat_classic_destroy(struct leat_classic **classic)
{
    struct leat_classic *it = *classic;
    if (!it) return;
    for (uint32_t i = 0; i < it->member_count; i++)
        member_free(it->members[i]);
    leat_mem_free(it->members);
    leat_mem_free(it);
    *classic = NULL;
}

/* ---- members ---- */

static void bytes_count(struct leat_classic *classic)
{
    size_t stored = GROUP_HEAD_BYTES + strlen(classic->protocol_type) + strlen(classic->protocol) +
                    strlen(classic->leader);
    size_t memory = 0;
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *member = classic->members[i];
        memory += leat_classic_member_bytes(member) + member->assignment_bytes;
        if (member->pending) continue;
        stored += MEMBER_HEAD_BYTES + strlen(member->id) + member->facts_bytes +
                  member->protocol_count * PROTOCOL_HEAD_BYTES + member->assignment_bytes;
    }
    classic->stored_bytes = stored;
    classic->memory_bytes = memory;
}

struct leat_classic_member *leat_classic_member_find(const struct leat_classic *classic,
                                                     struct leat_msg_string id)
{
    for (uint32_t i = 0; i < classic->member_count; i++)
        if (leat_classic_text_same(leat_classic_text(classic->members[i]->id), id))
            return classic->members[i];
    return NULL;
}

struct leat_classic_member *leat_classic_instance_find(const struct leat_classic *classic,
                                                       struct leat_msg_string instance)
{
    for (uint32_t i = 0; i < classic->member_count && instance.bytes > 0; i++)
        if (leat_classic_text_same(classic->members[i]->instance, instance))
            return classic->members[i];
    return NULL;
}

struct leat_classic_member *leat_classic_member_add(struct leat_classic *classic)
{
    void *members = leat_mem_realloc(LEAT_MEM_BROKER, classic->members, classic->member_count + 1,
                                     sizeof(struct leat_classic_member *));
    if (!members) return NULL;
    classic->members = members;
    struct leat_classic_member *member = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *member);
    if (!member) return NULL;
    classic->members[classic->member_count++] = member;
    bytes_count(classic);
    return member;
}

void leat_classic_member_remove(struct leat_classic *classic, struct leat_classic_member *member)
{
    LEAT_ASSERT(!member->join);
    LEAT_ASSERT(!member->sync);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < classic->member_count; i++)
        if (classic->members[i] != member) classic->members[kept++] = classic->members[i];
    classic->member_count = kept;
    member_free(member);
    bytes_count(classic);
}

uint32_t leat_classic_members_joined(const struct leat_classic *classic)
{
    uint32_t joined = 0;
    for (uint32_t i = 0; i < classic->member_count; i++)
        joined += !classic->members[i]->pending;
    return joined;
}

/* ---- facts ---- */

static struct leat_msg_string text_put(char **at, struct leat_msg_string text)
{
    struct leat_msg_string put = {*at, text.bytes};
    if (text.bytes) memcpy(*at, text.text, text.bytes);
    *at += text.bytes;
    return put;
}

static size_t facts_bytes(const struct leat_classic_call *call)
{
    size_t bytes = call->protocol_count * sizeof *call->protocols;
    bytes += (size_t)call->instance.bytes + call->client.bytes + call->host.bytes;
    for (uint32_t i = 0; i < call->protocol_count; i++)
        bytes += (size_t)call->protocols[i].name.bytes + call->protocols[i].metadata.bytes;
    return bytes;
}

size_t leat_classic_member_bytes(const struct leat_classic_member *member)
{
    return sizeof *member + member->facts_bytes;
}

size_t leat_classic_join_bytes(const struct leat_classic_call *call)
{
    return sizeof(struct leat_classic_member) + facts_bytes(call);
}

leat_err leat_classic_facts_set(struct leat_classic *classic, struct leat_classic_member *member,
                                const struct leat_classic_call *call)
{
    size_t bytes = facts_bytes(call);
    void *facts = leat_mem_calloc(LEAT_MEM_BROKER, 1, bytes + 1);
    if (!facts) return LEAT_E_NO_MEMORY;
    struct leat_classic_protocol *protocols = facts;
    char *at = (char *)(protocols + call->protocol_count);
    member->instance = text_put(&at, call->instance);
    member->client = text_put(&at, call->client);
    member->host = text_put(&at, call->host);
    for (uint32_t i = 0; i < call->protocol_count; i++) {
        protocols[i].name = text_put(&at, call->protocols[i].name);
        protocols[i].metadata = text_put(&at, call->protocols[i].metadata);
    }
    leat_mem_free(member->facts); /* the call may hold no views of it */
    member->facts = facts;
    member->facts_bytes = bytes;
    member->protocols = protocols;
    member->protocol_count = call->protocol_count;
    bytes_count(classic);
    return LEAT_OK;
}

bool leat_classic_facts_same(const struct leat_classic_member *member,
                             const struct leat_classic_call *call)
{
    if (member->protocol_count != call->protocol_count) return false;
    for (uint32_t i = 0; i < call->protocol_count; i++)
        if (!leat_classic_text_same(member->protocols[i].name, call->protocols[i].name) ||
            !leat_classic_text_same(member->protocols[i].metadata, call->protocols[i].metadata))
            return false;
    return true;
}

leat_err leat_classic_assignment_set(struct leat_classic *classic,
                                     struct leat_classic_member *member,
                                     struct leat_msg_string assignment)
{
    char *bytes = NULL;
    if (assignment.bytes) {
        bytes = leat_mem_calloc(LEAT_MEM_BROKER, 1, assignment.bytes);
        if (!bytes) return LEAT_E_NO_MEMORY;
        memcpy(bytes, assignment.text, assignment.bytes);
    }
    leat_mem_free(member->assignment);
    member->assignment = bytes;
    member->assignment_bytes = assignment.bytes;
    bytes_count(classic);
    return LEAT_OK;
}

size_t leat_classic_assigned_bytes(const struct leat_classic *classic)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < classic->member_count; i++)
        bytes += classic->members[i]->assignment_bytes;
    return bytes;
}

void leat_classic_assignments_drop(struct leat_classic *classic)
{
    for (uint32_t i = 0; i < classic->member_count; i++) {
        leat_mem_free(classic->members[i]->assignment);
        classic->members[i]->assignment = NULL;
        classic->members[i]->assignment_bytes = 0;
    }
    bytes_count(classic);
}

/* ---- protocols ---- */

static bool protocol_known(const struct leat_classic_member *member, struct leat_msg_string name)
{
    for (uint32_t i = 0; i < member->protocol_count; i++)
        if (leat_classic_text_same(member->protocols[i].name, name)) return true;
    return false;
}

static bool protocol_known_by_all(const struct leat_classic *classic,
                                  const struct leat_classic_member *except,
                                  struct leat_msg_string name)
{
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *member = classic->members[i];
        if (member->pending || member == except) continue;
        if (!protocol_known(member, name)) return false;
    }
    return true;
}

bool leat_classic_protocols_fit(const struct leat_classic *classic,
                                const struct leat_classic_member *except,
                                const struct leat_classic_call *call)
{
    for (uint32_t i = 0; i < call->protocol_count; i++)
        if (protocol_known_by_all(classic, except, call->protocols[i].name)) return true;
    return false;
}

/* Each member votes for the first of its own that all know; the first of the most voted wins. */
static struct leat_msg_string vote_of(const struct leat_classic *classic,
                                      const struct leat_classic_member *member)
{
    for (uint32_t i = 0; i < member->protocol_count && !member->pending; i++)
        if (protocol_known_by_all(classic, NULL, member->protocols[i].name))
            return member->protocols[i].name;
    return (struct leat_msg_string){"", 0};
}

void leat_classic_type_set(struct leat_classic *classic, struct leat_msg_string type)
{
    memset(classic->protocol_type, 0, sizeof classic->protocol_type);
    memcpy(classic->protocol_type, type.text, type.bytes);
    bytes_count(classic);
}

void leat_classic_protocol_pick(struct leat_classic *classic)
{
    struct leat_msg_string candidates[LEAT_CLASSIC_PROTOCOLS_MAX];
    uint32_t votes[LEAT_CLASSIC_PROTOCOLS_MAX] = {0}, candidate_count = 0, best = 0;
    for (uint32_t i = 0; i < classic->member_count; i++) {
        struct leat_msg_string vote = vote_of(classic, classic->members[i]);
        uint32_t c = 0;
        if (vote.bytes == 0) continue;
        while (c < candidate_count && !leat_classic_text_same(candidates[c], vote))
            c++;
        if (c == LEAT_CLASSIC_PROTOCOLS_MAX) continue; /* no member knows as many */
        if (c == candidate_count) candidates[candidate_count++] = vote;
        votes[c]++;
    }
    for (uint32_t c = 1; c < candidate_count; c++)
        if (votes[c] > votes[best]) best = c;
    memset(classic->protocol, 0, sizeof classic->protocol);
    if (candidate_count == 0) return;
    LEAT_ASSERT_CMP(candidates[best].bytes, <, sizeof classic->protocol);
    memcpy(classic->protocol, candidates[best].text, candidates[best].bytes);
    bytes_count(classic);
}

struct leat_msg_string leat_classic_metadata(const struct leat_classic *classic,
                                             const struct leat_classic_member *member)
{
    struct leat_msg_string name = leat_classic_text(classic->protocol);
    for (uint32_t i = 0; i < member->protocol_count; i++)
        if (leat_classic_text_same(member->protocols[i].name, name))
            return member->protocols[i].metadata;
    return (struct leat_msg_string){"", 0};
}

/* ---- bytes ---- */

static struct leat_msg_bin bin_of(struct leat_msg_string text)
{
    return (struct leat_msg_bin){text.text, text.bytes};
}

static struct leat_msg_string text_of(struct leat_msg_bin bin)
{
    return (struct leat_msg_string){bin.data, bin.bytes};
}

static void member_encode(struct leat_msg_writer *writer, const struct leat_classic_member *member)
{
    enum { FIELDS = 8 };
    const struct leat_stored_classic_member stored = {
        .id = bin_of(leat_classic_text(member->id)),
        .session_ms = member->session_ms,
        .rebalance_ms = member->rebalance_ms,
        .instance = bin_of(member->instance),
        .client = bin_of(member->client),
        .host = bin_of(member->host),
        .text_count = 2 * member->protocol_count,
        .assignment = {member->assignment, member->assignment_bytes},
        .address = member->address,
        .fields = FIELDS + (member->address != 0),
    };
    leat_stored_classic_member_write(writer, &stored);
    for (uint32_t p = 0; p < member->protocol_count; p++) {
        const struct leat_classic_protocol *protocol = &member->protocols[p];
        leat_msg_write_bin(writer, protocol->name.text, protocol->name.bytes);
        leat_msg_write_bin(writer, protocol->metadata.text, protocol->metadata.bytes);
    }
    LEAT_MSG_WRITE_BEHIND(writer, leat_stored_classic_member, &stored, text_count);
}

void leat_classic_encode(struct leat_msg_writer *writer, const struct leat_classic *classic,
                         bool with_members)
{
    const struct leat_stored_classic stored = {
        .protocol_type = bin_of(leat_classic_text(classic->protocol_type)),
        .protocol = bin_of(leat_classic_text(classic->protocol)),
        .leader = bin_of(leat_classic_text(classic->leader)),
        .phase = classic->phase,
        .member_count = with_members ? leat_classic_members_joined(classic) : 0,
    };
    leat_stored_classic_write(writer, &stored);
    for (uint32_t i = 0; i < classic->member_count && with_members; i++)
        if (!classic->members[i]->pending) member_encode(writer, classic->members[i]);
}

static bool text_take(struct leat_msg_bin text, char *out, size_t capacity)
{
    if (text.bytes >= capacity) return false;
    memset(out, 0, capacity);
    if (text.bytes) memcpy(out, text.data, text.bytes);
    return true;
}

static bool member_decode(struct leat_msg_reader *reader, struct leat_classic *classic)
{
    struct leat_classic_protocol protocols[LEAT_CLASSIC_PROTOCOLS_MAX];
    struct leat_stored_classic_member stored;
    uint32_t left = leat_stored_classic_member_read(reader, &stored);
    if (reader->failed || classic->member_count == LEAT_GROUPS_MEMBERS_MAX ||
        stored.text_count % 2 || stored.text_count / 2 > LEAT_CLASSIC_PROTOCOLS_MAX)
        return false;
    struct leat_classic_member *member = leat_classic_member_add(classic);
    if (!member || !text_take(stored.id, member->id, sizeof member->id)) return false;
    for (uint32_t p = 0; p < stored.text_count / 2; p++) {
        protocols[p].name = leat_msg_read_string(reader);
        protocols[p].metadata = leat_msg_read_string(reader);
        if (protocols[p].name.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX) return false;
    }
    (void)LEAT_MSG_READ_BEHIND(reader, leat_stored_classic_member, &stored, text_count, left);
    const struct leat_classic_call call = {.instance = text_of(stored.instance),
                                           .client = text_of(stored.client),
                                           .host = text_of(stored.host),
                                           .protocols = protocols,
                                           .protocol_count = stored.text_count / 2};
    member->session_ms = stored.session_ms;
    member->rebalance_ms = stored.rebalance_ms;
    member->address = stored.address;
    return !reader->failed && leat_classic_facts_set(classic, member, &call) == LEAT_OK &&
           leat_classic_assignment_set(classic, member, text_of(stored.assignment)) == LEAT_OK;
}

struct leat_classic *leat_classic_decode(struct leat_msg_reader *reader)
{
    struct leat_stored_classic stored;
    (void)leat_stored_classic_read(reader, &stored);
    struct leat_classic *classic = reader->failed ? NULL : leat_classic_create();
    bool ok =
        classic &&
        text_take(stored.protocol_type, classic->protocol_type, sizeof classic->protocol_type) &&
        text_take(stored.protocol, classic->protocol, sizeof classic->protocol) &&
        text_take(stored.leader, classic->leader, sizeof classic->leader);
    for (uint32_t i = 0; ok && i < stored.member_count; i++)
        ok = member_decode(reader, classic);
    if (!ok || reader->failed) {
        reader->failed = true;
        leat_classic_destroy(&classic);
        return NULL;
    }
    /* Stored without its members it is empty: they join anew. */
    classic->phase =
        classic->member_count > 0 ? (enum leat_classic_phase)stored.phase : LEAT_CLASSIC_EMPTY;
    classic->assigned_bytes = leat_classic_assigned_bytes(classic);
    bytes_count(classic);
    return classic;
}
