/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the stages (stage.h), and what the rest of the simulator asks of a stage. */
#include "tests/sim/stage.h"

#include <string.h>

#define SIM_STAGE(name) extern const struct sim_stage sim_stage_##name;
#include "tests/sim/stages.def"
#undef SIM_STAGE

static const struct sim_stage *const stages[] = {
    NULL, /* number 0: no stage */
#define SIM_STAGE(name) &sim_stage_##name,
#include "tests/sim/stages.def"
#undef SIM_STAGE
};
enum { STAGES = sizeof stages / sizeof *stages };

unsigned sim_stage_find(const char *name)
{
    for (unsigned i = 1; i < STAGES; i++)
        if (strcmp(stages[i]->name, name) == 0) return i;
    return 0;
}

const struct sim_stage *sim_stage_at(unsigned number)
{
    return number < STAGES ? stages[number] : NULL;
}

void sim_stage_set(struct sim_setting *setting, unsigned number)
{
    const struct sim_stage *stage = sim_stage_at(number);
    if (!stage) return;
    *setting = (struct sim_setting){.nodes = stage->nodes,
                                    .hard = stage->hard,
                                    .deletes = stage->deletes,
                                    .hasty = stage->hasty,
                                    .stage = number,
                                    .bug = setting->bug};
}

void sim_stage_choose(struct scenario *scenario)
{
    if (scenario->stage && scenario->stage->choose) scenario->stage->choose(scenario);
}

void sim_stage_start(struct scenario *scenario)
{
    if (scenario->stage && scenario->stage->start) scenario->stage->start(scenario);
}

void sim_stage_came(struct scenario *scenario)
{
    if (!scenario->stage) return;
    sim_fault_struck(scenario->world, SIM_FAULT_STAGE);
    sim_trace(scenario->world, "stage %s: its moment has come", scenario->stage->name);
}
