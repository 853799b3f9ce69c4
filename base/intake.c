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
        *at = address;
    }
    address->members++;
    return address;
}

static void address_leave(struct leat_intake *intake, struct leat_intake_address *address)
{
    if (!address || --address->members) return;
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

/* What is held of the limit: who may exceed it holds nothing of what is there for all others. */
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

bool leat_intake_fits(struct leat_intake *intake, const struct leat_intake_member *member,
                      size_t bytes)
{
    const struct leat_intake_account *account = account_of(intake, member);
    const struct leat_intake_queue *queue = queue_of(intake, member);
    size_t more = bytes - member->bytes;
    return held(account) + more <= account->bytes_max &&
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

bool leat_intake_admits(struct leat_intake *intake, const struct leat_intake_member *member,
                        size_t bytes)
{
    LEAT_ASSERT_CMP(member->bytes, ==, 0);
    return bytes <= LEAT_INTAKE_SMALL_BYTES || may_grow(intake, member, bytes);
}

bool leat_intake_full(struct leat_intake *intake, const struct leat_intake_member *member)
{
    const struct leat_intake_account *account = account_of(intake, member);
    const struct leat_intake_queue *queue = queue_of(intake, member);
    return held(account) >= account->bytes_max ||
           queue_held(intake, account, queue) >= share(account, queue);
}

/* ---- waiting ---- */

static void wait_end(struct leat_intake *intake, struct leat_intake_member *member)
{
    if (!leat_intake_waits(member)) return;
    struct leat_intake_queue *queue = queue_of(intake, member);
    leat_list_remove(&member->wait);
    if (leat_list_empty(&queue->grows)) leat_list_remove(&queue->ring);
}

static void wait_begin(struct leat_intake *intake, struct leat_intake_member *member)
{
    if (leat_intake_waits(member)) return;
    struct leat_intake_queue *queue = queue_of(intake, member);
    leat_list_push_back(&queue->grows, &member->wait);
    if (leat_list_empty(&queue->ring))
        leat_list_push_back(&account_of(intake, member)->ring, &queue->ring);
}

bool leat_intake_grow(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes)
{
    LEAT_ASSERT_CMP(member->bytes, >, 0);
    LEAT_ASSERT_CMP(bytes, >=, member->bytes);
    if (member->account == LEAT_NET_STRANGERS || may_grow(intake, member, bytes)) {
        wait_end(intake, member);
        return true;
    }
    member->wanted = bytes;
    wait_begin(intake, member);
    return false;
}

/* One address after the other. */
static struct leat_intake_member *account_next(struct leat_intake *intake,
                                               struct leat_intake_account *account)
{
    LEAT_LIST_EACH(&account->ring, link)
    {
        struct leat_intake_queue *queue = LEAT_CONTAINER(link, struct leat_intake_queue, ring);
        struct leat_intake_member *member =
            LEAT_CONTAINER(queue->grows.next, struct leat_intake_member, wait);
        if (!may_grow(intake, member, member->wanted)) continue;
        leat_list_remove(&queue->ring);
        leat_list_push_back(&account->ring, &queue->ring);
        return member;
    }
    return NULL;
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
    return !leat_list_empty(&intake->accounts[account].ring);
}

struct leat_intake_member *leat_intake_surplus(const struct leat_intake *intake,
                                               enum leat_net_account which)
{
    const struct leat_intake_account *account = &intake->accounts[which];
    uint64_t most = account->bytes_max;
    if (which == LEAT_NET_NODES || leat_list_empty(&account->smalls)) return NULL;
    if (which == LEAT_NET_CLIENTS) {
        /* What others hold beyond the limit is not what these have to make room for. */
        if (account->small_bytes <= LEAT_INTAKE_SMALLS_BYTES) return NULL;
        most += LEAT_INTAKE_SMALLS_BYTES;
    }
    if (account->over) most += account->over->bytes;
    if (account->bytes <= most) return NULL;
    return LEAT_CONTAINER(account->smalls.next, struct leat_intake_member, hold);
}

/* ---- members ---- */

void leat_intake_hold(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes)
{
    struct leat_intake_account *account = account_of(intake, member);
    LEAT_ASSERT_CMP(account->bytes, >=, member->bytes);
    account->bytes += bytes - member->bytes;
    queue_of(intake, member)->bytes += bytes - member->bytes;
    bool small = bytes <= LEAT_INTAKE_SMALL_BYTES || member->account == LEAT_NET_STRANGERS;
    if (!leat_list_empty(&member->hold)) account->small_bytes -= member->bytes;
    if (small) account->small_bytes += bytes;
    if (bytes == 0 || !small)
        leat_list_remove(&member->hold);
    else if (leat_list_empty(&member->hold))
        leat_list_push_back(&account->smalls, &member->hold);
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
    for (unsigned i = 0; i < LEAT_NET_ACCOUNTS; i++) {
        struct leat_intake_account *account = &intake->accounts[i];
        queue_init(&account->rest);
        leat_list_init(&account->ring);
        leat_list_init(&account->smalls);
        account->bytes_max =
            i == LEAT_NET_STRANGERS ? LEAT_INTAKE_STRANGERS_BYTES : LEAT_INTAKE_BYTES;
    }
}

void leat_intake_fini(struct leat_intake *intake)
{
    for (unsigned i = 0; i < LEAT_INTAKE_BUCKETS; i++)
        LEAT_ASSERT(!intake->buckets[i]);
}
