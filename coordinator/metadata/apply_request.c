/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with an id of their own take effect once.
 *
 * A coordinator whose leader died sends its request again, and the request may then be committed twice. For every
 * session (a coordinator's process) the machine keeps the highest sequence and the outcomes of the last
 * LEAT_OUTCOMES_MAX requests. A sequence at or below the highest is looked up among these outcomes; if it is not
 * there, later requests overtook the request, and it has never been applied. */
#include "coordinator/metadata/private.h"

#include <string.h>

#include "base/mem.h"

/* Moved to the front; the least recently used session is dropped. */
static struct leat_machine_session *session_take(struct leat_machine *machine, uint64_t session)
{
    struct leat_machine_session found = {.session = session};
    uint32_t at = 0;
    while (at < machine->session_count && machine->sessions[at].session != session)
        at++;
    if (at == machine->session_count) {
        if (machine->session_count < LEAT_SESSIONS_MAX)
            machine->session_count++;
        else
            at--;
    } else {
        found = machine->sessions[at];
    }
    memmove(&machine->sessions[1], &machine->sessions[0], at * sizeof machine->sessions[0]);
    machine->sessions[0] = found;
    return &machine->sessions[0];
}

static const struct leat_machine_outcome *outcome_find(const struct leat_machine *machine,
                                                       uint64_t session, uint64_t sequence)
{
    for (uint32_t i = 0; i < machine->outcome_count; i++)
        if (machine->outcomes[i].sequence == sequence && machine->outcomes[i].session == session)
            return &machine->outcomes[i];
    return NULL;
}

static void outcome_repeat(struct leat_machine *machine, const struct leat_machine_outcome *outcome,
                           struct leat_machine_result *result)
{
    result->rc = (leat_err)outcome->rc;
    if (result->rc != LEAT_OK)
        (void)leat_error_set(&result->error, result->rc, "%s", leat_err_text(result->rc));
    result->stream_id = outcome->stream_id;
    result->first_id = outcome->first_id;
    result->id_count = outcome->id_count;
    result->incarnation = outcome->incarnation;
    result->epoch.v = outcome->epoch;
    struct leat_machine_stream *stream =
        outcome->stream_id ? leat_machine_stream_find(machine, outcome->stream_id) : NULL;
    if (stream) result->desc = stream->desc;
}

bool leat_machine_outcome(struct leat_machine *machine, uint64_t session, uint64_t sequence,
                          struct leat_machine_result *out_result)
{
    const struct leat_machine_outcome *outcome = outcome_find(machine, session, sequence);
    if (!outcome) return false;
    *out_result =
        (struct leat_machine_result){.rc = LEAT_OK, .session = session, .sequence = sequence};
    outcome_repeat(machine, outcome, out_result);
    return true;
}

static leat_err outcome_keep(struct leat_machine *machine, const struct leat_machine_result *result)
{
    if (!machine->outcomes) {
        machine->outcomes =
            leat_mem_calloc(LEAT_MEM_COORDINATOR, LEAT_OUTCOMES_MAX, sizeof *machine->outcomes);
        if (!machine->outcomes) return LEAT_E_NO_MEMORY;
    }
    machine->outcomes[machine->outcome_next] = (struct leat_machine_outcome){
        .session = result->session,
        .sequence = result->sequence,
        .incarnation = result->incarnation,
        .first_id = result->first_id,
        .rc = (uint32_t)result->rc,
        .stream_id = result->stream_id,
        .id_count = result->id_count,
        .epoch = result->epoch.v,
    };
    machine->outcome_next = (machine->outcome_next + 1) % LEAT_OUTCOMES_MAX;
    if (machine->outcome_count < LEAT_OUTCOMES_MAX) machine->outcome_count++;
    return LEAT_OK;
}

leat_err leat_machine_apply_request(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_entry_request request;
    (void)leat_entry_request_read(reader, &request);
    const uint64_t id = request.session, sequence = request.sequence;
    if (!leat_msg_read_done(reader) || id == 0 || sequence == 0)
        return leat_machine_malformed(result);
    struct leat_machine_session *session = session_take(machine, id);
    const struct leat_machine_outcome *outcome =
        sequence <= session->sequence ? outcome_find(machine, id, sequence) : NULL;
    leat_err rc = LEAT_OK;
    if (outcome)
        outcome_repeat(machine, outcome, result);
    else
        rc = leat_machine_apply_plain(machine, request.command.data, request.command.bytes, result);
    if (result->malformed) rc = LEAT_OK; /* its requester is told */
    result->session = id;
    result->sequence = sequence;
    if (rc != LEAT_OK || outcome) return rc;
    if (sequence > session->sequence) session->sequence = sequence;
    return outcome_keep(machine, result);
}
