/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intake.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

/* ---- addresses ---- */

static struct leat_intake_address **address_at(struct leat_intake *intake, const uint8_t *key)
{
    uint32_t hash = leat_key_hash(&intake->hash, key);
    struct leat_intake_address **at = &intake->buckets[hash % LEAT_INTAKE_BUCKETS];
    while (*at && memcmp((*at)->key, key, LEAT_NET_KEY_BYTES) != 0)
        at = &(*at)->next;
    return at;
}

static void queue_init(struct leat_intake_queue *queue)
{
    leat_list_init(&queue->grows);
    leat_list_init(&queue->ring);
}

static struct leat_intake_address *address_join(struct leat_intake *intake, const uint8_t *key)
{
    struct leat_intake_address **at = address_at(intake, key), *address = *at;
    if (!address) {
        address = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *address);
        if (!address) return NULL;
        memcpy(address->key, key, sizeof address->key);
        queue_init(&address->clients);
        leat_list_init(&address->blame);
        *at = address;
    }
    address->members++;
    return address;
}

static bool is_blamed(const struct leat_intake_address *address)
{
    return address && !leat_list_empty(&address->blame);
}

/* A blamed address is kept without members, too. */
static void address_leave(struct leat_intake *intake, struct leat_intake_address *address)
{
    if (address && address->members) address->members--;
    if (!address || address->members || is_blamed(address)) return;
    LEAT_ASSERT(leat_list_empty(&address->clients.ring));
    *address_at(intake, address->key) = address->next;
    leat_mem_free(address);
}

/* ---- rules ---- */

static struct leat_intake_account *account_of(struct leat_intake *intake,
                                              const struct leat_intake_member *member)
{
    return &intake->accounts[member->account];
}

static struct leat_intake_queue *queue_of(struct leat_intake *intake,
                                          const struct leat_intake_member *member)
{
    if (member->account == LEAT_NET_CLIENTS && member->address) return &member->address->clients;
    return &account_of(intake, member)->rest;
}

static uint64_t share(const struct leat_intake_account *account,
                      const struct leat_intake_queue *queue)
{
    return queue == &account->rest ? account->bytes_max : account->bytes_max / 2;
}

/* Bytes that count for the limit: the bytes of the connection that may exceed the limit do not count. */
static uint64_t held(const struct leat_intake_account *account)
{
    return account->bytes - (account->over ? account->over->bytes : 0);
}

static uint64_t queue_held(struct leat_intake *intake, const struct leat_intake_account *account,
                           const struct leat_intake_queue *queue)
{
    bool over = account->over && queue_of(intake, account->over) == queue;
    return queue->bytes - (over ? account->over->bytes : 0);
}

/* SUBTLE: blamed addresses do not get the whole account. Otherwise they take all places whenever no connection waits,
 * and the next connection waits for as long as blamed addresses may hold their places, again and again. */
static uint64_t most_of(const struct leat_intake_account *account,
                        const struct leat_intake_member *member)
{
    bool late = member->account == LEAT_NET_CLIENTS && is_blamed(member->address);
    return account->bytes_max - (late ? account->bytes_max / LEAT_INTAKE_BLAMED_LEAVE : 0);
}

bool leat_intake_fits(struct leat_intake *intake, const struct leat_intake_member *member,
                      size_t bytes)
{
    const struct leat_intake_account *account = account_of(intake, member);
    const struct leat_intake_queue *queue = queue_of(intake, member);
    size_t more = bytes - member->bytes;
    return held(account) + more <= most_of(account, member) &&
           queue_held(intake, account, queue) + more <= share(account, queue);
}

static bool may_grow(struct leat_intake *intake, const struct leat_intake_member *member,
                     size_t bytes)
{
    struct leat_intake_account *account = account_of(intake, member);
    if (account->over == member || leat_intake_fits(intake, member, bytes)) return true;
    if (account->over) return false;
    account->over = member;
    return true;
}

/* Does an address without blame wait for bytes that other addresses hold? An address that has its half waits only for
 * itself. */
static bool is_wanted(struct leat_intake *intake, const struct leat_intake_account *account)
{
    LEAT_LIST_EACH(&account->ring, link)
    {
        const struct leat_intake_queue *queue =
            LEAT_CONTAINER(link, struct leat_intake_queue, ring);
        if (queue_held(intake, account, queue) < share(account, queue)) return true;
    }
    return false;
}

static bool is_late(struct leat_intake *intake, const struct leat_intake_member *member)
{
    const struct leat_intake_account *account = account_of(intake, member);
    return member->account == LEAT_NET_CLIENTS && is_blamed(member->address) &&
           account->over != member && is_wanted(intake, account);
}

bool leat_intake_full(struct leat_intake *intake, const struct leat_intake_member *member)
{
    const struct leat_intake_account *account = account_of(intake, member);
    const struct leat_intake_queue *queue = queue_of(intake, member);
    return held(account) >= most_of(account, member) ||
           queue_held(intake, account, queue) >= share(account, queue) || is_late(intake, member);
}

/* ---- waiting ---- */

static void wait_end(struct leat_intake *intake, struct leat_intake_member *member)
{
    if (!leat_intake_waits(member)) return;
    struct leat_intake_queue *queue = queue_of(intake, member);
    leat_list_remove(&member->wait);
    if (leat_list_empty(&queue->grows)) leat_list_remove(&queue->ring);
}

static struct leat_list *ring_of(struct leat_intake *intake,
                                 const struct leat_intake_member *member)
{
    struct leat_intake_account *account = account_of(intake, member);
    bool late = member->account == LEAT_NET_CLIENTS && is_blamed(member->address);
    return late ? &account->late : &account->ring;
}

static void wait_begin(struct leat_intake *intake, struct leat_intake_member *member)
{
    if (leat_intake_waits(member)) return;
    struct leat_intake_queue *queue = queue_of(intake, member);
    leat_list_push_back(&queue->grows, &member->wait);
    if (leat_list_empty(&queue->ring)) leat_list_push_back(ring_of(intake, member), &queue->ring);
}

bool leat_intake_grow(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes)
{
    LEAT_ASSERT_CMP(member->bytes, >, 0);
    LEAT_ASSERT_CMP(bytes, >=, member->bytes);
    if (member->account == LEAT_NET_STRANGERS ||
        (!is_late(intake, member) && may_grow(intake, member, bytes))) {
        wait_end(intake, member);
        return true;
    }
    member->wanted = bytes;
    wait_begin(intake, member);
    return false;
}

/* One address after the other. */
static struct leat_intake_member *ring_next(struct leat_intake *intake, struct leat_list *ring)
{
    LEAT_LIST_EACH(ring, link)
    {
        struct leat_intake_queue *queue = LEAT_CONTAINER(link, struct leat_intake_queue, ring);
        struct leat_intake_member *member =
            LEAT_CONTAINER(queue->grows.next, struct leat_intake_member, wait);
        if (!may_grow(intake, member, member->wanted)) continue;
        leat_list_remove(&queue->ring);
        leat_list_push_back(ring, &queue->ring);
        return member;
    }
    return NULL;
}

static struct leat_intake_member *account_next(struct leat_intake *intake,
                                               struct leat_intake_account *account)
{
    struct leat_intake_member *member = ring_next(intake, &account->ring);
    if (member || is_wanted(intake, account)) return member;
    return ring_next(intake, &account->late);
}

struct leat_intake_member *leat_intake_next(struct leat_intake *intake)
{
    for (unsigned i = 0; i < LEAT_NET_ACCOUNTS; i++) {
        struct leat_intake_member *member = account_next(intake, &intake->accounts[i]);
        if (!member) continue;
        wait_end(intake, member);
        return member;
    }
    return NULL;
}

bool leat_intake_crowded(const struct leat_intake *intake, enum leat_net_account account)
{
    return !leat_list_empty(&intake->accounts[account].ring) ||
           !leat_list_empty(&intake->accounts[account].late);
}

struct leat_intake_member *leat_intake_surplus(const struct leat_intake *intake,
                                               enum leat_net_account which)
{
    const struct leat_intake_account *account = &intake->accounts[which];
    uint64_t most = account->bytes_max;
    if (which == LEAT_NET_NODES || leat_list_empty(&account->smalls)) return NULL;
    if (which == LEAT_NET_CLIENTS) {
        /* The small beginnings need not make room for the bytes of large frames past the limit. */
        if (account->small_bytes <= LEAT_INTAKE_SMALLS_BYTES) return NULL;
        most += LEAT_INTAKE_SMALLS_BYTES;
    }
    if (account->over) most += account->over->bytes;
    if (account->bytes <= most) return NULL;
    return LEAT_CONTAINER(account->smalls.next, struct leat_intake_member, hold);
}

/* ---- connections that keep others waiting ---- */

static void ring_change(struct leat_intake_account *account, struct leat_intake_address *address)
{
    struct leat_list *link = &address->clients.ring;
    if (leat_list_empty(link)) return;
    leat_list_remove(link);
    leat_list_push_back(is_blamed(address) ? &account->late : &account->ring, link);
}

static void blame_end(struct leat_intake *intake, struct leat_intake_address *address)
{
    leat_list_remove(&address->blame);
    intake->blamed_count--;
    ring_change(&intake->accounts[LEAT_NET_CLIENTS], address);
    address_leave(intake, address->members ? NULL : address);
}

static struct leat_intake_address *blamed_first(const struct leat_intake *intake)
{
    return LEAT_CONTAINER(intake->blamed.next, struct leat_intake_address, blame);
}

static void blame(struct leat_intake *intake, struct leat_intake_address *address, uint64_t now_ms)
{
    if (!address) return;
    if (!is_blamed(address)) intake->blamed_count++;
    leat_list_remove(&address->blame);
    leat_list_push_back(&intake->blamed, &address->blame);
    address->blamed_ms = now_ms;
    ring_change(&intake->accounts[LEAT_NET_CLIENTS], address);
    if (intake->blamed_count > LEAT_INTAKE_BLAMED_MAX) blame_end(intake, blamed_first(intake));
}

/* A connection that sends a byte now and then counts as silent. */
void leat_intake_heard(struct leat_intake_member *member, size_t bytes, uint64_t now_ms)
{
    member->window_bytes += bytes;
    member->heard_bytes += bytes;
    if (bytes > 0 && member->heard_bytes < LEAT_INTAKE_HEARD_BYTES) return;
    member->heard_bytes = 0;
    member->heard_ms = now_ms;
}

/* SUBTLE: a connection that closes in the middle of a request while others wait for its place is blamed, too.
 * Otherwise (1) a client holds its place for less than a second; (2) closes, and comes back; (3) is never blamed, and
 * with many addresses has as many turns as waiting clients. A connection that gives up while waiting itself held up
 * no other. */
void leat_intake_ended(struct leat_intake *intake, const struct leat_intake_member *member,
                       uint64_t now_ms)
{
    if (member->account != LEAT_NET_CLIENTS || member->bytes <= LEAT_INTAKE_SMALL_BYTES) return;
    if (leat_intake_waits(member) || !is_wanted(intake, account_of(intake, member))) return;
    blame(intake, member->address, now_ms);
}

static void window_begin(struct leat_list *members)
{
    LEAT_LIST_EACH(members, hold)
    {
        struct leat_intake_member *member = LEAT_CONTAINER(hold, struct leat_intake_member, hold);
        member->watched = true;
        member->window_bytes = 0;
    }
}

void leat_intake_watch_begin(struct leat_intake *intake, uint64_t now_ms)
{
    intake->window_ms = now_ms;
    for (unsigned i = 0; i < LEAT_NET_ACCOUNTS; i++) {
        window_begin(&intake->accounts[i].smalls);
        window_begin(&intake->accounts[i].larges);
    }
}

static void silent_look(struct leat_intake *intake, uint64_t now_ms,
                        bool (*idle)(const struct leat_intake_member *member),
                        void (*lost)(struct leat_intake_member *member))
{
    const struct leat_intake_account *account = &intake->accounts[LEAT_NET_CLIENTS];
    LEAT_LIST_EACH(&account->larges, hold)
    {
        struct leat_intake_member *member = LEAT_CONTAINER(hold, struct leat_intake_member, hold);
        uint64_t most_ms =
            member == account->over ? LEAT_INTAKE_OVER_SILENT_MS : LEAT_INTAKE_SILENT_MS;
        if (leat_intake_waits(member) || now_ms < member->heard_ms + most_ms || !idle(member))
            continue;
        blame(intake, member->address, now_ms);
        lost(member);
    }
}

/* SUBTLE: a connection that sends too little is blamed like a silent connection. Otherwise (1) a client sends a byte
 * now and then; (2) after five seconds its connection is closed, and it comes back; (3) the client has as many turns
 * as waiting clients, and each turn takes five seconds. */
static void window_look(struct leat_intake *intake, struct leat_list *members, uint64_t now_ms,
                        bool (*idle)(const struct leat_intake_member *member),
                        void (*lost)(struct leat_intake_member *member))
{
    LEAT_LIST_EACH(members, hold)
    {
        struct leat_intake_member *member = LEAT_CONTAINER(hold, struct leat_intake_member, hold);
        uint64_t least = (uint64_t)LEAT_INTAKE_RATE_MIN * LEAT_INTAKE_STALL_MS / 1000;
        if (member->account == LEAT_NET_CLIENTS && member->bytes / LEAT_INTAKE_STALL_PART > least)
            least = member->bytes / LEAT_INTAKE_STALL_PART;
        if (!member->watched || leat_intake_waits(member) || member->window_bytes >= least ||
            !idle(member))
            continue;
        leat_intake_ended(intake, member, now_ms);
        lost(member);
    }
}

bool leat_intake_admits(struct leat_intake *intake, const struct leat_intake_member *member,
                        size_t bytes, uint64_t now_ms,
                        bool (*idle)(const struct leat_intake_member *member),
                        void (*lost)(struct leat_intake_member *member))
{
    LEAT_ASSERT_CMP(member->bytes, ==, 0);
    if (bytes <= LEAT_INTAKE_SMALL_BYTES || may_grow(intake, member, bytes)) return true;
    if (member->account != LEAT_NET_CLIENTS) return false;
    silent_look(intake, now_ms, idle, lost);
    return may_grow(intake, member, bytes);
}

bool leat_intake_watch(struct leat_intake *intake, uint64_t now_ms,
                       bool (*idle)(const struct leat_intake_member *member),
                       void (*lost)(struct leat_intake_member *member))
{
    bool any = false;
    while (!leat_list_empty(&intake->blamed) &&
           now_ms >= blamed_first(intake)->blamed_ms + LEAT_INTAKE_BLAME_MS)
        blame_end(intake, blamed_first(intake));
    if (is_wanted(intake, &intake->accounts[LEAT_NET_CLIENTS]))
        silent_look(intake, now_ms, idle, lost);
    if (now_ms < intake->window_ms + LEAT_INTAKE_STALL_MS) return true;
    for (unsigned i = 0; i < LEAT_NET_ACCOUNTS; i++) {
        if (!leat_intake_crowded(intake, (enum leat_net_account)i)) continue;
        any = true;
        window_look(intake, &intake->accounts[i].smalls, now_ms, idle, lost);
        window_look(intake, &intake->accounts[i].larges, now_ms, idle, lost);
    }
    if (any) leat_intake_watch_begin(intake, now_ms);
    return any;
}

/* ---- members ---- */

static bool is_small(const struct leat_intake_member *member, size_t bytes)
{
    return bytes <= LEAT_INTAKE_SMALL_BYTES || member->account == LEAT_NET_STRANGERS;
}

void leat_intake_hold(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes)
{
    struct leat_intake_account *account = account_of(intake, member);
    LEAT_ASSERT_CMP(account->bytes, >=, member->bytes);
    account->bytes += bytes - member->bytes;
    queue_of(intake, member)->bytes += bytes - member->bytes;
    bool was_small = is_small(member, member->bytes), small = is_small(member, bytes);
    if (was_small) account->small_bytes -= member->bytes;
    if (small) account->small_bytes += bytes;
    if (bytes == 0 || small != was_small) leat_list_remove(&member->hold);
    if (member->bytes == 0) member->watched = false;
    if (bytes > 0 && leat_list_empty(&member->hold))
        leat_list_push_back(small ? &account->smalls : &account->larges, &member->hold);
    if (bytes == 0) {
        wait_end(intake, member);
        if (account->over == member) account->over = NULL;
    }
    member->bytes = bytes;
}

void leat_intake_copied(struct leat_intake_member *member, size_t more, size_t less)
{
    if (!member->address) return;
    member->copied += more - less;
    member->address->copied += more - less;
}

size_t leat_intake_copied_near(const struct leat_intake_member *member)
{
    return member->address ? member->address->copied : 0;
}

void leat_intake_account_set(struct leat_intake *intake, struct leat_intake_member *member,
                             enum leat_net_account account)
{
    size_t bytes = member->bytes;
    wait_end(intake, member);
    leat_intake_hold(intake, member, 0);
    member->account = account;
    leat_intake_hold(intake, member, bytes);
}

void leat_intake_join(struct leat_intake *intake, struct leat_intake_member *member,
                      const uint8_t key[LEAT_NET_KEY_BYTES], enum leat_net_account account)
{
    leat_list_init(&member->wait);
    leat_list_init(&member->hold);
    member->account = account;
    member->bytes = member->wanted = member->copied = 0;
    member->heard_ms = member->heard_bytes = member->window_bytes = 0;
    member->watched = false;
    member->address = address_join(intake, key);
}

void leat_intake_leave(struct leat_intake *intake, struct leat_intake_member *member)
{
    wait_end(intake, member);
    leat_intake_hold(intake, member, 0);
    leat_intake_copied(member, 0, member->copied);
    address_leave(intake, member->address);
    member->address = NULL;
}

void leat_intake_init(struct leat_intake *intake, const struct leat_random *random)
{
    memset(intake, 0, sizeof *intake);
    leat_key_hash_init(&intake->hash, random);
    leat_list_init(&intake->blamed);
    for (unsigned i = 0; i < LEAT_NET_ACCOUNTS; i++) {
        struct leat_intake_account *account = &intake->accounts[i];
        queue_init(&account->rest);
        leat_list_init(&account->ring);
        leat_list_init(&account->late);
        leat_list_init(&account->smalls);
        leat_list_init(&account->larges);
        account->bytes_max =
            i == LEAT_NET_STRANGERS ? LEAT_INTAKE_STRANGERS_BYTES : LEAT_INTAKE_BYTES;
    }
}

void leat_intake_fini(struct leat_intake *intake)
{
    while (!leat_list_empty(&intake->blamed))
        blame_end(intake, blamed_first(intake));
    for (unsigned i = 0; i < LEAT_INTAKE_BUCKETS; i++)
        LEAT_ASSERT(!intake->buckets[i]);
}
