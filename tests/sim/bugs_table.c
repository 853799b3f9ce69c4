/* SPDX-License-Identifier: Apache-2.0 */
/* The table of deliberate bugs (bugs.md): is each still found? Its row names the world and the seed that failed last:
 * that one is tried first. Where it passes now, seeds of the row's world are run from 1 on without any bug, and with it
 * those alone that came to the rule. What no seed finds is explored for (explore.c), as long as a minute of CPU time
 * is: in events, so that it is the same each time. Says the whole file anew, with the rows as they are now. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "tests/sim/explore.h"

enum {
    LINE_BYTES = 512,
    LINES_MAX = 512,
    CELLS = 5,
    FOUND_AS_BYTES = 64, /* of a verdict: the anomaly, without its particulars */
    EVENTS_MAX = 75 * 1000 * 1000,
    EVENTS_PER_WORD = 1000 * 1000, /* "12 M explored" */
};

/* Of a row: | bug | world | seed | as | after | */
enum cell { BUG, WORLD, SEED, AS, AFTER };

struct row {
    char cells[CELLS][LINE_BYTES];
    struct sim_setting setting; /* bug 0: this line is no row */
    uint64_t seed;              /* 0: none fails */
    bool explores;              /* exploring found it, and is tried before seeds are */
    bool explored;              /* it was found so now */
    bool wanted, untried;       /* is it looked for; is its seed still to be tried? */
    bool without;               /* its seed failed, and runs once more without the bug */
    bool searched;              /* other seeds of its world were run */
    unsigned met;               /* so many of them came to the rule */
    uint64_t rare; /* its seed, where that is beyond all seeds that a check may run; 0: it is not */
};

static struct {
    char lines[LINES_MAX][LINE_BYTES];
    struct row rows[LINES_MAX]; /* beside their lines */
    unsigned count;
} table;

/* "| a | b |": its cells without the spaces around them. False: a line of another kind. */
static bool cells_split(const char *line, char cells[CELLS][LINE_BYTES])
{
    for (unsigned i = 0; i < CELLS; i++) {
        const char *end;
        size_t bytes;
        if (*line != '|' || (end = strchr(line + 1, '|')) == NULL) return false;
        line++;
        while (*line == ' ' && line < end)
            line++;
        bytes = (size_t)(end - line);
        while (bytes && line[bytes - 1] == ' ')
            bytes--;
        memcpy(cells[i], line, bytes);
        cells[i][bytes] = '\0';
        line = end;
    }
    return true;
}

/* False after a message: what looks like a row and is none. */
static bool row_read(struct row *row, const char *line, unsigned only)
{
    unsigned bug;
    if (!cells_split(line, row->cells) || strcmp(row->cells[BUG], "bug") == 0 ||
        strncmp(row->cells[BUG], "---", 3) == 0)
        return true;
    bug = sim_bug_find(row->cells[BUG]);
    if (bug && sim_bug_world(row->cells[WORLD], &row->setting)) {
        row->setting.bug = bug;
        row->explores = strstr(row->cells[SEED], "explored") != NULL;
        row->seed = row->explores ? 0 : strtoull(row->cells[SEED], NULL, 10);
        row->wanted = !only || only == bug;
        row->untried = row->wanted && row->seed;
        return true;
    }
    fprintf(stderr, "leat-sim: no such bug, or no such world: %s\n", line);
    return false;
}

static bool table_read(const char *path, unsigned only)
{
    FILE *file = fopen(path, "r");
    bool well = file != NULL;
    if (!file) fprintf(stderr, "leat-sim: %s can't be read\n", path);
    while (well && fgets(table.lines[table.count], LINE_BYTES, file)) {
        char *line = table.lines[table.count];
        line[strcspn(line, "\n")] = '\0';
        well = row_read(&table.rows[table.count], line, only);
        if (++table.count < LINES_MAX) continue;
        fprintf(stderr, "leat-sim: %s has more than %d lines\n", path, LINES_MAX - 1);
        well = false;
    }
    if (file) fclose(file);
    return well;
}

static bool is_found(const struct row *row)
{
    return row->seed || row->explored;
}

/* What a failure is called in the table. */
static void row_name(struct row *row, const char *verdict)
{
    size_t bytes = strcspn(verdict, ":");
    if (bytes >= FOUND_AS_BYTES) bytes = FOUND_AS_BYTES - 1;
    snprintf(row->cells[AS], LINE_BYTES, "%.*s", (int)bytes, verdict);
}

static void row_found(struct row *row, uint64_t seed, const char *verdict)
{
    row->seed = seed;
    snprintf(row->cells[SEED], LINE_BYTES, "%" PRIu64, seed);
    row_name(row, verdict);
}

static void row_explore(struct row *row, unsigned jobs)
{
    const struct sim_explore_options options = {
        .setting = row->setting, .from = 1, .events = EVENTS_MAX, .jobs = jobs, .quiet = true};
    struct sim_explored explored;
    if (row->setting.nodes == 1 || !sim_explore_run(&options, &explored) || !explored.failures)
        return;
    row->explored = true;
    snprintf(row->cells[SEED], LINE_BYTES, "%" PRIu64 " M explored",
             explored.events / EVENTS_PER_WORD + 1);
    row_name(row, explored.verdict);
    fprintf(stderr, "%s: %s\n", row->cells[BUG], row->cells[SEED]);
}

/* Those that exploring found the last time; or else those that nothing has found yet. */
static void rows_explore(bool first, unsigned jobs)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct row *row = &table.rows[i];
        if (row->wanted && !is_found(row) && row->explores == first) row_explore(row, jobs);
    }
}

/* What a row's seed has come to, and the run that is to follow: a seed that fails with the bug says nothing if it fails
 * without the bug, too. */
static void row_tried(struct row *row, struct sim_job *job)
{
    char verdict[SIM_VERDICT_BYTES];
    sim_job_verdict(job, verdict, sizeof verdict);
    sim_job_next(job);
    if (row->without || !verdict[0]) {
        if (!row->without || verdict[0]) row->seed = 0;
        return;
    }
    struct sim_setting without = row->setting;
    without.bug = 0;
    row->without = true;
    row_found(row, row->seed, verdict);
    sim_job_start(job, &without, row->seed, row->seed + 1, false);
}

/* Each row's own seed, several at once. */
static void rows_try(unsigned jobs)
{
    static struct sim_job running[SIM_JOBS_MAX];
    static struct row *of[SIM_JOBS_MAX];
    unsigned next = 0;
    for (;;) {
        for (unsigned i = 0; i < jobs; i++) {
            while (next < table.count && !table.rows[next].untried)
                next++;
            if (running[i].pid || next == table.count) continue;
            of[i] = &table.rows[next++];
            sim_job_start(&running[i], &of[i]->setting, of[i]->seed, of[i]->seed + 1, false);
        }
        if (!sim_jobs_wait(running, jobs)) return;
        for (unsigned i = 0; i < jobs; i++)
            if (running[i].ready) row_tried(of[i], &running[i]);
    }
}

/* A seed beyond the count says that a bug is found, but not that a check finds the bug: other seeds and exploring have
 * the first try. */
static void rare_set_aside(uint64_t count)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct row *row = &table.rows[i];
        if (!row->wanted || row->seed <= count) continue;
        row->rare = row->seed;
        row->seed = 0;
        row->untried = false;
    }
}

static void rare_try(unsigned jobs)
{
    for (unsigned i = 0; i < table.count; i++) {
        struct row *row = &table.rows[i];
        row->untried = row->rare && !is_found(row);
        if (row->untried) row->seed = row->rare;
        if (!row->untried) row->rare = 0;
    }
    rows_try(jobs);
}

/* ---- other seeds of a world ---- */

/* What is to be run next: a seed that came to a rule, with the bug. */
static struct {
    struct {
        struct row *row;
        uint64_t seed;
    } tasks[SIM_JOBS_MAX * LINES_MAX];
    unsigned first, end;
} queue;

static bool is_sought(const struct row *row, const char *world)
{
    return row->wanted && !is_found(row) && strcmp(row->cells[WORLD], world) == 0;
}

/* A seed has passed without a bug: whose rules did it come to? */
static void queue_add(const struct sim_job *job, const char *world)
{
    if (queue.first == queue.end) queue.first = queue.end = 0;
    for (unsigned i = 0; i < table.count; i++) {
        struct row *row = &table.rows[i];
        if (!is_sought(row, world) || !job->result.bugs_met[row->setting.bug]) continue;
        row->met++;
        queue.tasks[queue.end].row = row;
        queue.tasks[queue.end++].seed = job->seed;
    }
}

/* NULL: there is none, but for those whose bug was found meanwhile. */
static struct row *queue_take(uint64_t *out_seed)
{
    while (queue.first < queue.end) {
        struct row *row = queue.tasks[queue.first].row;
        *out_seed = queue.tasks[queue.first++].seed;
        if (!row->seed) return row;
    }
    return NULL;
}

static unsigned sought_count(const char *world)
{
    unsigned count = 0;
    for (unsigned i = 0; i < table.count; i++)
        count += is_sought(&table.rows[i], world);
    return count;
}

/* Nothing new is run without a bug before all of the queue is under way: so it has room. */
static void world_search(const char *world, const struct sim_setting *setting, uint64_t count,
                         unsigned jobs)
{
    static struct sim_job running[SIM_JOBS_MAX];
    static struct row *of[SIM_JOBS_MAX];
    struct sim_setting without = *setting;
    uint64_t next = 1;
    without.bug = 0;
    for (;;) {
        for (unsigned i = 0; i < jobs; i++) {
            uint64_t seed = next;
            if (running[i].pid) continue;
            of[i] = queue_take(&seed);
            if (!of[i] && (next > count || sought_count(world) == 0)) continue;
            if (!of[i]) next++;
            sim_job_start(&running[i], of[i] ? &of[i]->setting : &without, seed, seed + 1, false);
        }
        if (!sim_jobs_wait(running, jobs)) return;
        for (unsigned i = 0; i < jobs; i++) {
            char verdict[SIM_VERDICT_BYTES];
            if (!running[i].ready) continue;
            sim_job_verdict(&running[i], verdict, sizeof verdict);
            if (of[i] && verdict[0] && !of[i]->seed) {
                row_found(of[i], running[i].seed, verdict);
                fprintf(stderr, "%s: seed %s\n", of[i]->cells[BUG], of[i]->cells[SEED]);
            } else if (!of[i] && !verdict[0]) {
                queue_add(&running[i], world);
            }
            sim_job_next(&running[i]);
        }
    }
}

static void worlds_search(uint64_t count, unsigned jobs)
{
    for (unsigned i = 0; i < table.count; i++) {
        const char *world = table.rows[i].cells[WORLD];
        if (table.rows[i].searched || !is_sought(&table.rows[i], world)) continue;
        world_search(world, &table.rows[i].setting, count, jobs);
        for (unsigned k = i; k < table.count; k++)
            table.rows[k].searched |= strcmp(table.rows[k].cells[WORLD], world) == 0;
    }
}

/* The bugs that no seed of their row's world finds, and the bugs without a row, each by name. Returns how many. */
static unsigned missed_tell(unsigned only, uint64_t count)
{
    unsigned missed = 0;
    for (unsigned i = 0; i < table.count; i++) {
        const struct row *row = &table.rows[i];
        if (!row->wanted || is_found(row)) continue;
        fprintf(stderr,
                "%s is not found by %" PRIu64
                " seeds (%s), nor by exploring: %u came to its rule%s\n",
                row->cells[BUG], count, row->cells[WORLD], row->met,
                row->met ? "" : " (is its file compiled? meson setup --reconfigure)");
        missed++;
    }
    for (unsigned bug = 1; bug < LEAT_BUGS_END; bug++) {
        bool has = only && only != bug;
        for (unsigned i = 0; i < table.count && !has; i++)
            has = table.rows[i].setting.bug == bug;
        if (has) continue;
        fprintf(stderr, "%s has no row\n", sim_bug_name(bug));
        missed++;
    }
    return missed;
}

/* Returns how many. */
static unsigned rare_tell(uint64_t count)
{
    unsigned rare = 0;
    for (unsigned i = 0; i < table.count; i++) {
        const struct row *row = &table.rows[i];
        if (!row->rare || !is_found(row)) continue;
        fprintf(stderr,
                "RARE: %s is found by seed %" PRIu64 " (%s), by none of %" PRIu64
                " seeds and not by exploring\n",
                row->cells[BUG], row->rare, row->cells[WORLD], count);
        rare++;
    }
    return rare;
}

int sim_bugs_table(const char *path, unsigned only, uint64_t count, unsigned jobs)
{
    unsigned missed, rare, searched = 0, rows = 0;
#ifndef LEAT_BUGS
    fputs("leat-sim: leat-sim-bugs has them\n", stderr);
    return 2;
#endif
    if (!table_read(path, only)) return 2;
    rare_set_aside(count);
    rows_try(jobs);
    for (unsigned i = 0; i < table.count; i++) {
        const struct row *row = &table.rows[i];
        rows += row->wanted;
        searched += row->wanted && !row->seed && !row->explores;
    }
    rows_explore(true, jobs);
    worlds_search(count, jobs);
    rows_explore(false, jobs);
    rare_try(jobs);
    for (unsigned i = 0; i < table.count; i++) {
        const struct row *row = &table.rows[i];
        if (row->setting.bug)
            printf("| %s | %s | %s | %s | %s |\n", row->cells[BUG], row->cells[WORLD],
                   row->cells[SEED], row->cells[AS], row->cells[AFTER]);
        else
            puts(table.lines[i]);
    }
    fflush(stdout);
    missed = missed_tell(only, count);
    rare = rare_tell(count);
    fprintf(stderr,
            "%u bugs, %u not found by the seed of their row, %u rare, %u not found at all\n", rows,
            searched, rare, missed);
    return missed || rare ? 1 : 0;
}
