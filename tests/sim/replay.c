/* SPDX-License-Identifier: Apache-2.0 */
/* Files that replay a run: lines of a word and its value. '#' begins a remark. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore.h"
#include "tests/sim/stage.h"

bool sim_replay_write(const char *path, const struct sim_replay *replay, const char *why)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return false;
    }
    const struct sim_setting *setting = &replay->setting;
    fprintf(file, "# %s\nseed %" PRIu64 "\nnodes %" PRIu32 "\n", why, replay->seed, setting->nodes);
    if (setting->hard) fprintf(file, "hard 1\n");
    if (setting->deletes) fprintf(file, "deletes 1\n");
    if (setting->hasty) fprintf(file, "hasty 1\n");
    if (setting->stage) fprintf(file, "stage %s\n", sim_stage_at(setting->stage)->name);
    if (setting->bug) fprintf(file, "bug %s\n", sim_bug_name(setting->bug));
    for (unsigned i = 0; i < replay->dice.count; i++)
        fprintf(file, "dice %" PRIu64 " %" PRIu64 "\n", replay->dice.at[i].turn,
                replay->dice.at[i].value);
    bool good = !ferror(file);
    if (fclose(file) != 0 || !good) {
        perror(path);
        return false;
    }
    return true;
}

/* Turns ascend, and a list has an end. */
static bool dice_read(struct sim_replay *replay, const char *values)
{
    struct sim_dice_plan *plan = &replay->dice;
    struct sim_dice at;
    if (sscanf(values, "%" SCNu64 " %" SCNu64, &at.turn, &at.value) != 2) return false;
    if (plan->count == SIM_DICE_MAX || at.turn == 0) return false;
    if (plan->count && at.turn <= plan->at[plan->count - 1].turn) return false;
    plan->at[plan->count++] = at;
    return true;
}

static bool line_read(struct sim_replay *replay, const char *word, char *values)
{
    struct sim_setting *setting = &replay->setting;
    char *end;
    values[strcspn(values, "\n")] = '\0';
    if (strcmp(word, "dice") == 0) return dice_read(replay, values);
    if (strcmp(word, "bug") == 0) return (setting->bug = sim_bug_find(values)) != 0;
    if (strcmp(word, "stage") == 0) {
        sim_stage_set(setting, sim_stage_find(values));
        return setting->stage != 0;
    }
    uint64_t number = strtoull(values, &end, 10);
    if (end == values || *end) return false;
    if (strcmp(word, "seed") == 0)
        replay->seed = number;
    else if (strcmp(word, "nodes") == 0 && number >= 1 && number <= SIM_SERVERS_MAX)
        setting->nodes = (uint32_t)number;
    else if (strcmp(word, "hard") == 0)
        setting->hard = number != 0;
    else if (strcmp(word, "deletes") == 0)
        setting->deletes = number != 0;
    else if (strcmp(word, "hasty") == 0)
        setting->hasty = number != 0;
    else
        return false;
    return true;
}

bool sim_replay_read(const char *path, struct sim_replay *out_replay)
{
    FILE *file = fopen(path, "r");
    char line[SIM_VERDICT_BYTES + 16], word[32];
    int at = 0;
    bool good = true;
    if (!file) {
        perror(path);
        return false;
    }
    *out_replay = (struct sim_replay){.setting = {.nodes = 1}};
    for (int number = 1; good && fgets(line, sizeof line, file); number++) {
        if (line[0] == '#' || line[0] == '\n') continue;
        good = sscanf(line, "%31s %n", word, &at) == 1 && line_read(out_replay, word, line + at);
        if (!good)
            fprintf(stderr, "leat-sim: %s:%d says nothing that is known: %s", path, number, line);
    }
    fclose(file);
    if (good && !out_replay->seed) fprintf(stderr, "leat-sim: %s names no seed\n", path);
    return good && out_replay->seed;
}
