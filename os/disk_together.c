/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that are under way at the same time, from one thread: the kernel's own asynchronous I/O (io_submit(2)).
 *
 * A round of commits writes one piece for each log, 112 KiB each, and waits for all pieces. In turn, each write
 * begins only when this thread has been woken for the write before; together, the disk has the next write when a
 * write is done, and this thread is woken once. An additional thread per write costs more wake-ups than it saves. */
#include "os/internal.h"

#include "base/assert.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool context_ready(struct os_disk_queue *queue)
{
    if (queue->aio_refused) return false;
    if (queue->aio) return true;
    aio_context_t made = 0;
    /* Refused where it is not built in, or where the machine's limit (fs.aio-max-nr) is reached. */
    if (syscall(SYS_io_setup, OS_TOGETHER_MAX, &made)) {
        queue->aio_refused = true;
        return false;
    }
    queue->aio = made;
    return true;
}

void leat_os_disk_together_fini(struct os_disk_queue *queue)
{
    if (queue->aio) (void)syscall(SYS_io_destroy, (aio_context_t)queue->aio);
    queue->aio = 0;
}

/* How many were taken; the rest is run one after the other. */
static unsigned submit(struct os_disk_queue *queue, struct leat_disk_io *const *ios, unsigned count)
{
    struct iocb blocks[OS_TOGETHER_MAX] = {0}, *pointers[OS_TOGETHER_MAX];
    for (unsigned i = 0; i < count; i++) {
        const struct leat_disk_io *io = ios[i];
        blocks[i].aio_data = i;
        blocks[i].aio_lio_opcode = IOCB_CMD_PWRITE;
        blocks[i].aio_fildes = (uint32_t)leat_os_file_direct_fd(io->file);
        blocks[i].aio_buf = (uintptr_t)io->buffer;
        blocks[i].aio_nbytes = io->bytes;
        blocks[i].aio_offset = (int64_t)io->offset;
        pointers[i] = &blocks[i];
    }
    long taken;
    do {
        taken = syscall(SYS_io_submit, (aio_context_t)queue->aio, (long)count, pointers);
    } while (taken < 0 && errno == EINTR);
    return taken > 0 ? (unsigned)taken : 0;
}

void leat_os_disk_together_run(struct os_disk_queue *queue, struct leat_disk_io *const *ios,
                               unsigned count)
{
    LEAT_ASSERT_CMP(count, <=, OS_TOGETHER_MAX);
    unsigned taken = 0, ended = 0;
    /* Buffered writes would be done one after the other in there, too. */
    bool direct = true;
    for (unsigned i = 0; i < count; i++)
        direct = direct && leat_os_file_direct_fd(ios[i]->file) >= 0;
    if (direct && context_ready(queue)) taken = submit(queue, ios, count);
    for (unsigned i = taken; i < count; i++)
        leat_os_disk_io_run(ios[i]);
    while (ended < taken) {
        struct io_event events[OS_TOGETHER_MAX];
        long left = (long)(taken - ended);
        long got = syscall(SYS_io_getevents, (aio_context_t)queue->aio, left, left, events, NULL);
        if (got < 0 && errno == EINTR) continue;
        /* The kernel has the buffers until it says otherwise: there is no going on without an answer. */
        LEAT_ASSERT_CMP(got, >, 0);
        for (long i = 0; i < got; i++) {
            LEAT_ASSERT_CMP(events[i].data, <, taken);
            leat_os_disk_write_ended(ios[events[i].data], events[i].res);
        }
        ended += (unsigned)got;
    }
}
