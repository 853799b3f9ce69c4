/* SPDX-License-Identifier: Apache-2.0 */
/* Replication as the broker has it, by replicate.c alone: what comes up with what, who is fenced when, what a start's
 * segments become, and versions on their way to the coordinators. */
#include "broker/data/core_data.h"
#include "broker/node/bringup.h"
#include "tests/broker/replicate_rig.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- life ---- */

static void core_comes_up_and_goes(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 2; index++) {
        begin();
        struct leat_members *members = &alone.cores[index].members;
        if (index == 1) { /* in whichever order they are known */
            members->rows[0] = &it.member;
            members->rows[1] = &it.self;
        }
        assert_int_equal(comes_up(index), LEAT_OK);
        char expected[1024];
        snprintf(
            expected, sizeof expected,
            "create the sink\ncreate the link\ncreate the transport\ncreate the primary\n%s%s%s",
            index == 0 ? "create the backup\nstart the link, with a backup\n" : "start the link\n",
            "transport to 12 \"n2\" 200 at 10.0.0.2:7000\n",
            "link to 12 \"n2\" 200 at 10.0.0.2:7000, host 10.0.0.2, rack r2\n");
        assert_said(expected);
        leat_replicate_fini(&alone.cores[index]);
        leat_replicate_sink_fini(&alone.cores[index]);
        leat_replicate_fini(&alone.cores[index]);
        leat_replicate_sink_fini(&alone.cores[index]);
        snprintf(expected, sizeof expected, "destroy the link\ndestroy the primary\n%s%s",
                 index == 0 ? "destroy the backup\n" : "",
                 "destroy the transport\ndestroy the sink\n");
        assert_said(expected);
        end();
    }
}

static void core_that_cant_come_up_says_why(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        leat_err *const rcs[] = {&it.sink_rc, &it.link_rc, &it.transport_rc, &it.primary_rc,
                                 &it.backup_rc};
        *rcs[i] = LEAT_E_NO_MEMORY;
        assert_int_equal(comes_up(0), LEAT_E_NO_MEMORY);
        static const char *const expected[] = {
            "create the sink\n", "create the sink\ncreate the link\n",
            "create the sink\ncreate the link\ncreate the transport\nerror: no transport\n",
            "create the sink\ncreate the link\ncreate the transport\ncreate the primary\n"
            "error: no memory for replication\n",
            "create the sink\ncreate the link\ncreate the transport\ncreate the primary\n"
            "create the backup\nerror: no memory for replication\n"};
        assert_said(expected[i]);
        end();
    }
}

static void parts_are_made_with_what_the_node_says(void **state)
{
    (void)state;
    begin();
    alone.node.writer_bytes_max = 11;
    alone.node.copies_bytes = 12;
    alone.node.copies_first_bytes = 13;
    alone.node.options.audit_us = 14;
    alone.node.options.cluster.suspect_ms = 30;
    static const struct leat_transport_baseline baseline;
    alone.node.options.cluster.baseline = &baseline;
    struct leat_env other = alone.env; /* of a core that has no host */
    alone.env.rmem_host = (void *)&it;
    alone.cores[1].env = &other;
    assert_int_equal(comes_up(0), LEAT_OK);
    assert_ptr_equal(it.sink.host, &it);
    assert_ptr_equal(it.sink.env, &alone.env);
    assert_ptr_equal(it.transport.links, &it.self);
    assert_ptr_equal(it.transport.env, &alone.env);
    assert_ptr_equal(it.sink.baseline, &baseline);
    assert_ptr_equal(it.transport.baseline, &baseline);
    assert_ptr_equal(it.primary.env, &alone.env);
    assert_ptr_equal(it.primary.timers, &alone.cores[0].timers);
    assert_ptr_equal(it.primary.store.ctx, &it);
    assert_ptr_equal(it.primary.net.ctx, &it.member);
    assert_non_null(it.primary.rmem);
    assert_string_equal(it.primary.self.name, "n1");
    assert_ptr_equal(it.primary.owner, &alone.cores[0]);
    assert_int_equal(it.primary.quiet_us, 90 * 1000);
    assert_int_equal(it.primary.audit_us, 14);
    assert_ptr_equal(it.backup.env, &alone.env);
    assert_ptr_equal(it.backup.store, &it);
    assert_ptr_equal(it.backup.net.ctx, &it.member);
    assert_ptr_equal(it.backup.arg, &alone.cores[0]);
    assert_ptr_equal(it.backup.timers, &alone.cores[0].timers);
    assert_int_equal(it.backup.writer_bytes_max, 11);
    assert_int_equal(it.backup.writers_bytes_max, 12);
    assert_int_equal(it.backup.first_bytes_max, 13);
    assert_memory_equal(it.backup.cluster_id, alone.node.cluster_id, 16);
    assert_true(it.backup.less_bytes == leat_node_copies_less);
    it.full = true;
    assert_true(it.backup.is_full(it.backup.arg));
    assert_int_equal(it.full_left, LEAT_HEAP_SPARE_BYTES / 2);
    assert_int_equal(it.full_bytes, LEAT_SEGMENT_HEAP_BYTES);
    end();
}

/* Goal: as long as it takes to declare a node crashed. */
static void quiet_is_as_long_as_a_crash_takes(void **state)
{
    (void)state;
    static const struct {
        unsigned suspect, confirm;
        uint64_t us;
    } rows[] = {{0, 0, 160 * 1000}, {30, 20, 50 * 1000}};
    for (unsigned i = 0; i < 2; i++) {
        begin();
        alone.node.options.cluster.suspect_ms = rows[i].suspect;
        alone.node.options.cluster.confirm_ms = rows[i].confirm;
        assert_int_equal(comes_up(1), LEAT_OK);
        assert_int_equal(it.primary.quiet_us, rows[i].us);
        end();
    }
}

/* ---- nodes ---- */

/* Goal: a node that may still write is fenced before its next incarnation is heard, and a crashed node at once. */
static void nodes_that_write_no_more_are_fenced(void **state)
{
    (void)state;
    static const struct {
        uint64_t before;
        enum leat_node_state state;
        bool crashed, draining;
        const char *said, *words;
    } rows[] = {
        {0, LEAT_NODE_UP, false, false, "", ""},
        {199, LEAT_NODE_UP, false, false, "fence n2 199\n", ""},
        {200, LEAT_NODE_UP, false, false, "", ""},
        {201, LEAT_NODE_UP, false, false, "", ""},
        {200, LEAT_NODE_UP, false, true, "", ", draining"},
        {200, LEAT_NODE_DOWN, false, false, "", ""},
        {200, LEAT_NODE_DOWN, false, true, "", ", draining, gone"},
        {200, LEAT_NODE_DOWN, true, false, "fence n2 200\n", ", crashed"},
        {199, LEAT_NODE_DOWN, true, false, "fence n2 199\nfence n2 200\n", ", crashed"},
        {200, LEAT_NODE_GONE, false, false, "release n2 200\n", ", gone"},
    };
    for (unsigned backup = 0; backup < 2; backup++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            begin();
            struct leat_core *core = &alone.cores[backup ? 0 : 1];
            assert_int_equal(comes_up(core->index), LEAT_OK);
            said_enough();
            it.member.info.state = rows[i].state;
            it.member.info.crashed = rows[i].crashed;
            it.member.info.draining = rows[i].draining;
            leat_replicate_on_member(core, &it.member, rows[i].before);
            unsigned incarnation = rows[i].state == LEAT_NODE_UP ? 200 : 0;
            char expected[512];
            snprintf(expected, sizeof expected,
                     "%stransport to 12 \"n2\" %u at 10.0.0.2:7000\nlink to 12 \"n2\" %u at "
                     "10.0.0.2:7000, host 10.0.0.2, rack r2%s\n",
                     backup ? rows[i].said : "", incarnation, incarnation, rows[i].words);
            assert_said(expected);
            end();
        }
    }
}

/* Goal: a writer that can't be fenced ends the process, also where a fence of a later incarnation goes well. */
static void node_that_can_not_be_fenced_ends_the_process(void **state)
{
    (void)state;
    begin();
    assert_int_equal(comes_up(0), LEAT_OK);
    it.member.info.crashed = true;
    it.fence_rc = LEAT_E_NO_MEMORY;
    it.fence_fails_once = true;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        leat_replicate_on_member(&alone.cores[0], &it.member, it.member.info.incarnation - 1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    it.member.info.crashed = it.fence_fails_once = false;
    it.fence_rc = LEAT_OK;
    said_enough();
    end();
}

static void node_without_a_way_is_told_of(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_core *core = &alone.cores[0];
        if (i != 3) assert_int_equal(comes_up(0), LEAT_OK);
        said_enough();
        if (i == 0) it.node_rc = LEAT_E_NO_MEMORY;
        if (i == 1) it.link_node_rc = LEAT_E_NO_MEMORY;
        leat_replicate_on_member(core, i == 2 ? &it.self : &it.member, 0);
        static const char *const expected[] = {
            "transport to 12 \"n2\" 200 at 10.0.0.2:7000\n"
            "node log error: no way to the backup of node n2\n",
            "transport to 12 \"n2\" 200 at 10.0.0.2:7000\n"
            "link to 12 \"n2\" 200 at 10.0.0.2:7000, host 10.0.0.2, rack r2\n"
            "node log error: no way to the backup of node n2\n",
            "", ""}; /* itself; not up yet */
        assert_said(expected[i]);
        end();
    }
}

/* Goal: the machine is what a node says, or its address without the port. */
static void host_of_a_node(void **state)
{
    (void)state;
    char longest[LEAT_ADDRESS_BYTES_MAX + 1], host[LEAT_REP_HOST_BYTES_MAX + 1];
    memset(longest, 'h', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    snprintf(host, sizeof host, "%s", longest);
    for (unsigned i = 0; i < 4; i++) {
        begin();
        assert_int_equal(comes_up(1), LEAT_OK);
        said_enough();
        if (i == 0) snprintf(it.member.info.host, sizeof it.member.info.host, "b");
        if (i == 1)
            snprintf(it.member.info.node_address, sizeof it.member.info.node_address, "[::1]:70");
        if (i == 2)
            snprintf(it.member.info.node_address, sizeof it.member.info.node_address, "plain");
        if (i == 3) memcpy(it.member.info.node_address, longest, sizeof longest);
        leat_replicate_on_member(&alone.cores[1], &it.member, 0);
        char expected[1024];
        snprintf(
            expected, sizeof expected,
            "transport to 12 \"n2\" 200 at %s\nlink to 12 \"n2\" 200 at %s, host %s, rack r2\n",
            it.member.info.node_address, it.member.info.node_address,
            i == 0   ? "b"
            : i == 1 ? "[::1]"
            : i == 2 ? "plain"
                     : host);
        assert_said(expected);
        end();
    }
}

/* Goal: only an incarnation that the coordinators have committed, under its name, may write here. */
static void writer_is_a_node_that_is_known(void **state)
{
    (void)state;
    begin();
    assert_int_equal(comes_up(0), LEAT_OK);
    void *arg = it.backup.arg;
    assert_true(it.backup.is_node(arg, "n2", 200));
    assert_false(it.backup.is_node(arg, "n3", 200));
    assert_false(it.backup.is_node(arg, "n2", 199));
    assert_false(it.backup.is_node(arg, "n1", ALONE_SELF));
    it.member.info.state = LEAT_NODE_DOWN;
    assert_true(it.backup.is_node(arg, "n2", 200)); /* it may be back at any moment */
    it.member.info.crashed = true;
    assert_false(it.backup.is_node(arg, "n2", 200));
    it.member.info.crashed = false;
    it.member.info.state = LEAT_NODE_GONE;
    assert_false(it.backup.is_node(arg, "n2", 200));
    end();
}

/* ---- what a start finds ---- */

/* Goal: the backup takes replicas of other nodes' segments, and own segments of a stream that was deleted since. */
static void segments_of_a_start_go_to_the_backup(void **state)
{
    (void)state;
    static const struct {
        enum leat_disposition disposition;
        bool there, seen;
        const char *said;
    } rows[] = {
        {LEAT_DISPOSITION_REPLICA, true, true, "take found 9\n"},
        {LEAT_DISPOSITION_REPLICA, false, true, "take found 9\n"},
        {LEAT_DISPOSITION_SERVED, true, true, ""},
        {LEAT_DISPOSITION_SERVED, false, true, "take own 9\n"},
        {LEAT_DISPOSITION_SERVED, false, false, ""},
        {LEAT_DISPOSITION_KEPT, false, true, "take own 9\n"},
        {LEAT_DISPOSITION_KEPT, true, true, ""},
        {LEAT_DISPOSITION_GONE, false, true, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        struct leat_core *core = &alone.cores[0];
        struct leat_segment segs[2] = {{.id = {1}}, {.id = {9}}};
        struct leat_found found = {.seg = &segs[1]};
        struct leat_found_disposition disposition = {.log = {ALONE_STREAM, 1, 0},
                                                     .disposition = rows[i].disposition};
        it.replicas[0].seg = &segs[0];
        it.replica_count = 1;
        alone.node.found = &found;
        alone.node.found_count = 1;
        alone.node.dispositions = &disposition;
        alone.no_stream = !rows[i].there;
        core->data->stream_seen = rows[i].seen ? ALONE_STREAM : ALONE_STREAM - 1;
        assert_int_equal(leat_replicate_take_found(core), LEAT_OK); /* a server alone */
        assert_said("");
        assert_int_equal(comes_up(0), LEAT_OK);
        said_enough();
        assert_int_equal(leat_replicate_take_found(core), LEAT_OK);
        char expected[256];
        snprintf(expected, sizeof expected, "take found 1\n%sdrop those of deleted streams\n",
                 rows[i].said);
        assert_said(expected);
        end();
    }
}

static void start_fails_with_its_backup(void **state)
{
    (void)state;
    begin();
    struct leat_segment segs[3] = {{.id = {1}}, {.id = {3}}, {.id = {4}}};
    struct leat_found found = {.seg = &segs[2]};
    struct leat_found_disposition disposition = {.disposition = LEAT_DISPOSITION_REPLICA};
    for (unsigned i = 0; i < 3; i++)
        it.replicas[i].seg = &segs[i];
    it.replica_count = 3;
    alone.node.found = &found;
    alone.node.found_count = 1;
    alone.node.dispositions = &disposition;
    it.found_rc = LEAT_E_NO_MEMORY;
    assert_int_equal(comes_up(0), LEAT_OK);
    said_enough();
    assert_int_equal(leat_replicate_take_found(&alone.cores[0]), LEAT_E_NO_MEMORY);
    assert_said("take found 1\ntake found 3\n");
    end();
}

/* Goal: a stream is deleted whose id was given out, and that is not there, or is on its way out. */
static void stream_is_deleted_where_that_is_known(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = &alone.cores[0];
    assert_int_equal(comes_up(0), LEAT_OK);
    assert_int_equal(leat_replicate_take_found(core), LEAT_OK);
    assert_ptr_equal(it.deleted_arg, core);
    for (unsigned i = 0; i < 8; i++) {
        alone.no_stream = i & 1;
        alone.stream.deleted = i & 2;
        core->data->stream_seen = i & 4 ? ALONE_STREAM : ALONE_STREAM - 1;
        bool deleted = (i & 4) && (i & 3);
        assert_int_equal(it.deleted(it.deleted_arg, ALONE_STREAM), deleted);
        assert_int_equal(it.backup.stream_deleted(it.backup.arg, ALONE_STREAM), deleted);
    }
    end();
}

/* ---- logs ---- */

/* Goal: nothing is dropped of a log whose older segments follow, nor of one that stands in for another. */
static void log_of_several_copies_is_kept_by_its_primary(void **state)
{
    (void)state;
    struct leat_segment *const *segs = (void *)&it;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        struct leat_store_port store_port = {0};
        const struct leat_log_tail tail = {.backfill_follows = i == 3, .stands_in = i == 4};
        if (i != 0) assert_int_equal(comes_up(0), LEAT_OK);
        said_enough();
        if (i == 1) alone.desc->settings.copies = 1;
        if (i == 3) it.log_rc = LEAT_E_NO_MEMORY;
        assert_int_equal(leat_replicate_attach(&it.partition, segs, 2, &tail, &store_port),
                         it.log_rc);
        static const char copies[] =
            "copies of 7/1/0, epoch 9, 3 of which 2 at least, durability 1, "
            "version 1, 2 segments, unsure 2 to 5";
        char expected[256];
        snprintf(expected, sizeof expected, "%s%s", copies, i >= 3 ? ", older follow\n" : "\n");
        assert_said(i < 2 ? "" : expected);
        assert_ptr_equal(store_port.ctx, i == 2 || i == 4 ? (void *)&it.partition : (void *)&it);
        leat_replicate_detach(&it.partition);
        assert_said(i == 2 || i == 4 ? "destroy its copies\n" : "");
        assert_null(it.partition.copies);
        end();
    }
}

static void durability_is_as_asked_or_by_the_copies(void **state)
{
    (void)state;
    for (uint32_t copies = 1; copies <= 4; copies++) {
        struct leat_stream_settings settings = {.copies = copies};
        assert_int_equal(leat_replicate_durability(&settings),
                         copies >= 3 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK);
        settings.durability = LEAT_DURABILITY_MEMORY;
        assert_int_equal(leat_replicate_durability(&settings), LEAT_DURABILITY_MEMORY);
        settings.durability = LEAT_DURABILITY_DISK;
        assert_int_equal(leat_replicate_durability(&settings), LEAT_DURABILITY_DISK);
    }
}

static void primary_tells_its_log(void **state)
{
    (void)state;
    begin();
    struct leat_segment seg = {.id = {4}};
    assert_int_equal(comes_up(0), LEAT_OK);
    said_enough();
    it.primary.events.on_room(&alone.cores[0], (void *)&it.partition);
    it.primary.events.on_damaged(&alone.cores[0], (void *)&it.partition, &seg);
    assert_said("wake\nsegment 4 is damaged\n");
    end();
}

/* ---- versions ---- */

static void versions_come(const struct leat_rep_version *rows, size_t count)
{
    it.primary.events.on_versions(&alone.cores[0], (void *)&it.primary, rows, count);
}

static void coordinators_say(leat_err rc)
{
    struct leat_coordinate *request = it.request;
    assert_non_null(request);
    it.request = NULL;
    request->rc = leat_error_set(&request->error, rc, "as they say");
    request->on_done(request);
}

/* Goal: a request for each epoch and generation, one request after the other; every row is in one request. */
static void versions_are_committed_one_after_the_other(void **state)
{
    (void)state;
    begin();
    static const struct leat_rep_version rows[] = {
        {{7, 1, 0}, {9}, 2}, {{7, 1, 2}, {9}, 3}, {{7, 1, 4}, {9}, 2}, {{7, 1, 6}, {8}, 2}};
    assert_int_equal(comes_up(0), LEAT_OK);
    said_enough();
    versions_come(rows, 4);
    assert_said("version 2 of epoch 9, of 2: 7/1/0 7/1/4\n");
    coordinators_say(LEAT_OK);
    assert_said("version 3 of epoch 9, of 1: 7/1/2\n");
    coordinators_say(LEAT_OK);
    assert_said("version 2 of epoch 8, of 1: 7/1/6\n");
    coordinators_say(LEAT_OK);
    assert_said("versions done OK\n");
    versions_come(rows, 1);
    coordinators_say(LEAT_OK);
    end();
}

static void version_that_is_refused_ends_them(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        static const struct leat_rep_version rows[] = {
            {{7, 1, 0}, {9}, 2}, {{7, 1, 2}, {9}, 3}, {{7, 1, 4}, {9}, 3}};
        assert_int_equal(comes_up(0), LEAT_OK);
        versions_come(rows, 3);
        said_enough();
        if (i == 1) coordinators_say(LEAT_OK);
        said_enough();
        coordinators_say(LEAT_E_NOT_OWNER);
        assert_said(i == 0
                        ? "node log error: the coordinator did not commit version 2 of log 7/1/0\n"
                          "versions done NOT_OWNER\n"
                        : "node log error: the coordinator did not commit version 3 of log 7/1/2 "
                          "and 1 more\n"
                          "versions done NOT_OWNER\n");
        versions_come(rows, 1); /* another time */
        said_enough();
        coordinators_say(LEAT_OK);
        assert_said("versions done OK\n");
        end();
    }
}

static void so_many_versions_are_in_one_request(void **state)
{
    (void)state;
    begin();
    static struct leat_rep_version rows[LEAT_VERSION_ROWS_MAX + 1];
    for (uint32_t i = 0; i <= LEAT_VERSION_ROWS_MAX; i++)
        rows[i] = (struct leat_rep_version){{7, 1, i}, {9}, 2};
    assert_int_equal(comes_up(0), LEAT_OK);
    versions_come(rows, LEAT_VERSION_ROWS_MAX + 1);
    assert_int_equal(it.request->log_count, LEAT_VERSION_ROWS_MAX);
    said_enough();
    coordinators_say(LEAT_E_AGAIN);
    char expected[256];
    snprintf(expected, sizeof expected,
             "node log error: the coordinator did not commit version 2 of log 7/1/0 and %d more\n"
             "versions done AGAIN\n",
             LEAT_VERSION_ROWS_MAX - 1);
    assert_said(expected);
    versions_come(rows, LEAT_VERSION_ROWS_MAX + 1);
    coordinators_say(LEAT_OK);
    assert_int_equal(it.request->log_count, 1);
    assert_int_equal(it.request->logs[0].log, LEAT_VERSION_ROWS_MAX);
    coordinators_say(LEAT_OK);
    end();
}

/* Goal: a core that ends while a request is under way frees what it has of the request. */
static void versions_under_way_end_with_the_core(void **state)
{
    (void)state;
    begin();
    static const struct leat_rep_version row = {{7, 1, 0}, {9}, 2};
    assert_int_equal(comes_up(0), LEAT_OK);
    versions_come(&row, 1);
    leat_replicate_fini(&alone.cores[0]);
    assert_null(alone.cores[0].data->replicate->versions.sent);
    end();
}

/* ---- accounts ---- */

static void accounts_are_added(void **state)
{
    (void)state;
    begin();
    struct leat_msg_accounts sum, first;
    memset(&sum, 0, sizeof sum);
    it.own = (struct leat_rep_accounts){.cpu_append = 1,
                                        .replicated_bytes = 2,
                                        .writes = 3,
                                        .segments = 4,
                                        .control_rpcs = 5,
                                        .open_rpcs = 6,
                                        .hibernate_rpcs = 7,
                                        .resume_rpcs = 8,
                                        .flush_rpcs = 9,
                                        .other_rpcs = 10,
                                        .lost_backups = 11,
                                        .replaced_copies = 12};
    it.held.cpu_backup_control = 13;
    it.sunk = (struct leat_transport_sink_status){.cpu_ns = 30, .cpu_emulation_ns = 14};
    leat_replicate_accounts(&alone.cores[0], &sum); /* not up yet */
    assert_int_equal(sum.cpu_cores_ns, 1000);
    assert_int_equal(sum.writes, 0);
    assert_int_equal(comes_up(0), LEAT_OK);
    leat_replicate_accounts(&alone.cores[0], &sum);
    first = sum;
    leat_replicate_accounts(&alone.cores[0], &sum);
    const uint64_t once[] = {first.cpu_replicate_ns, first.replicated_bytes, first.writes,
                             first.segments,         first.control_rpcs,     first.open_rpcs,
                             first.hibernate_rpcs,   first.resume_rpcs,      first.flush_rpcs,
                             first.other_rpcs,       first.lost_backups,     first.replaced_copies,
                             first.cpu_control_ns,   first.cpu_emulation_ns};
    const uint64_t twice[] = {sum.cpu_replicate_ns, sum.replicated_bytes, sum.writes,
                              sum.segments,         sum.control_rpcs,     sum.open_rpcs,
                              sum.hibernate_rpcs,   sum.resume_rpcs,      sum.flush_rpcs,
                              sum.other_rpcs,       sum.lost_backups,     sum.replaced_copies,
                              sum.cpu_control_ns,   sum.cpu_emulation_ns};
    for (unsigned i = 0; i < 14; i++) {
        assert_int_equal(once[i], i + 1);
        assert_int_equal(twice[i], 2 * (i + 1));
    }
    assert_int_equal(sum.cpu_data_path_ns, 32);
    assert_int_equal(sum.cpu_cores_ns, 3000);
    assert_int_equal(sum.transports, 4);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core_comes_up_and_goes),
        cmocka_unit_test(core_that_cant_come_up_says_why),
        cmocka_unit_test(parts_are_made_with_what_the_node_says),
        cmocka_unit_test(quiet_is_as_long_as_a_crash_takes),
        cmocka_unit_test(nodes_that_write_no_more_are_fenced),
        cmocka_unit_test(node_that_can_not_be_fenced_ends_the_process),
        cmocka_unit_test(node_without_a_way_is_told_of),
        cmocka_unit_test(host_of_a_node),
        cmocka_unit_test(writer_is_a_node_that_is_known),
        cmocka_unit_test(segments_of_a_start_go_to_the_backup),
        cmocka_unit_test(start_fails_with_its_backup),
        cmocka_unit_test(stream_is_deleted_where_that_is_known),
        cmocka_unit_test(log_of_several_copies_is_kept_by_its_primary),
        cmocka_unit_test(durability_is_as_asked_or_by_the_copies),
        cmocka_unit_test(primary_tells_its_log),
        cmocka_unit_test(versions_are_committed_one_after_the_other),
        cmocka_unit_test(version_that_is_refused_ends_them),
        cmocka_unit_test(so_many_versions_are_in_one_request),
        cmocka_unit_test(versions_under_way_end_with_the_core),
        cmocka_unit_test(accounts_are_added),
    };
    return cmocka_run_group_tests_name("broker replicate", tests, NULL, NULL);
}
