/* SPDX-License-Identifier: Apache-2.0 */
/* News for an actor from other threads: mail, and disk operations that have ended. */
#include "os/internal.h"

/* SUBTLE: a wake-up costs the sender a system call, so it is sent only to a sleeping actor.
 * 1. The receiver stores SLEEPING, then looks into its inbox once more, then blocks.
 * 2. The sender pushes, then looks at the state.
 * 3. Both are sequentially consistent, so at least one sees the other: either the receiver finds
 *    the mail or the sender finds SLEEPING, and exactly one sender turns that into AWAKE and wakes.
 * With weaker order both could miss, and a mail would lie until something else happens. */
static void actor_wake(struct os_actor *actor)
{
    if (atomic_load(&actor->state) != OS_SLEEPING) return;
    if (atomic_exchange(&actor->state, OS_AWAKE) == OS_SLEEPING) uv_async_send(&actor->async);
}

void leat_os_mail_push(struct os_actor *to, struct leat_mail *mail)
{
    struct leat_mail *head = atomic_load_explicit(&to->inbox, memory_order_relaxed);
    do {
        mail->next = head;
    } while (!atomic_compare_exchange_weak(&to->inbox, &head, mail));
    actor_wake(to);
}

void leat_os_beside_done(struct os_actor *to, struct leat_disk_io *io)
{
    struct leat_disk_io *head = atomic_load_explicit(&to->beside_done, memory_order_relaxed);
    do {
        io->next = head;
    } while (!atomic_compare_exchange_weak(&to->beside_done, &head, io));
    actor_wake(to);
}
