/* SPDX-License-Identifier: Apache-2.0 */
/* Grants, as a lying or older backup sends them, taken by the real transports of the operating system: the sections of
 * shared memory and of verbs are read, the file that a section names is opened and mapped, a queue pair is connected
 * (by fake_verbs.c, which can change the private data of both sides), and memory is written to. Each attach is answered
 * once, and so is each write. A file is opened only if its name is an arena's. All writes into the true arena that were
 * acked are there.
 *
 * The input: a byte (bit 0: by verbs, else by shared memory; bits 1 to 3: how many writes), then pieces (fuzz.h), which
 * add a section to the grant, or change something else; `enum what`. A grant without sections becomes the true
 * grant. */
#include "fuzz.h"

#include "fake_verbs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/rmem.h"
#include "tests/transport/os_rig.h"

enum {
    STEP = LEAT_ARENA_STEP_BYTES,
    WRITES_MAX = 7,
    WRITE_BYTES = 4096,
    FILES = 3,
    FILE_CHANGE_BYTES_MAX = RMEM_HEADER_BYTES,
};
enum what {
    SECTION, /* byte: kind; the body */
    PATCHED, /* byte: kind; byte: where; bytes that stand there in the true section */
    CUT,     /* byte: kind; byte: so many bytes of the true section, or zeros behind it */
    PATH,    /* byte: which path; the true section of shared memory, with that one */
    PATHS,   /* bytes: a path; the true section of shared memory, with that one */
    FILED,   /* byte: which file; two bytes: where; bytes that stand there in its header */
    HELLO,   /* byte: bit 0 nothing follows, the others where; bytes of the request to connect */
    WELCOME, /* the same of its acceptance */
    WHATS,
};

#ifndef LEAT_FUZZ_VERBS /* this machine has no verbs to fake */
struct fake_verbs_tale fake_verbs_hello, fake_verbs_welcome;
#endif

static struct os_rig *rig;
static const struct leat_rmem *ports[2];
static struct leat_rmem_arena *arena;
static struct leat_rmem_grow growth;
static struct leat_rmem_grant truth;
static bool grown;

/* Files that a grant may name: all have the arena's header, and none has its memory. */
static char files[FILES][160];
static const uint64_t file_bytes[FILES] = {RMEM_HEADER_BYTES, POOL_DATA_OFFSET,
                                           POOL_DATA_OFFSET + STEP / 2};
static uint8_t file_header[RMEM_HEADER_BYTES];
static bool file_dirty[FILES];
static int file_locks[FILES];
static char folder_path[160], link_path[160], pipe_path[160], foreign_path[160];
static const char *const paths[] = {files[0],         files[1],    files[2],     folder_path,
                                    link_path,        pipe_path,   foreign_path, "/dev/null",
                                    "/proc/self/mem", "/dev/zero", "",           "relative"};

/* ---- which files are opened: the linker puts these in front of open() ---- */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

static void path_check(const char *path, int flags)
{
    if ((flags & O_ACCMODE) != O_RDWR || !(flags & O_NOFOLLOW)) return;
    const char *name = strrchr(path, '/');
    if (name && strncmp(name + 1, LEAT_OS_RMEM_FILE, strlen(LEAT_OS_RMEM_FILE)) == 0) return;
    fprintf(stderr, "a grant had \"%s\" opened\n", path);
    abort();
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    path_check(path, flags);
    return __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    path_check(path, flags);
    return __real_open64(path, flags, mode);
}

/* ---- the world ---- */

static void on_grown(struct leat_rmem_grow *grow)
{
    LEAT_ASSERT(grow->rc == LEAT_OK);
    grown = true;
    rig->rig.notify(rig);
}

static void arena_open(void *arg)
{
    const struct leat_rmem_host *host = rig->rig.host;
    struct leat_error error;
    (void)arg;
    growth = (struct leat_rmem_grow){.on_grown = on_grown};
    LEAT_ASSERT(host->open(host->ctx, "writer", 7, 2 * (uint64_t)STEP, &arena, &error) == LEAT_OK);
    host->grow(host->ctx, arena, &growth);
}

static bool is_grown(void *arg)
{
    (void)arg;
    return grown;
}

static void grant_get(void *arg)
{
    const struct leat_rmem_host *host = rig->rig.host;
    (void)arg;
    host->grant(host->ctx, arena, &truth);
}

/* As of an arena whose host lives: it is locked, for as long as this process is there. */
static void file_make(unsigned number)
{
    int fd = __real_open(files[number], O_RDWR | O_CREAT, 0600);
    LEAT_ASSERT(fd >= 0 && ftruncate(fd, (off_t)file_bytes[number]) == 0);
    LEAT_ASSERT(pwrite(fd, file_header, sizeof file_header, 0) == (ssize_t)sizeof file_header);
    if (file_locks[number] == 0) {
        file_locks[number] = fd;
        LEAT_ASSERT(flock(fd, LOCK_EX | LOCK_NB) == 0);
    } else {
        LEAT_ASSERT(close(fd) == 0);
    }
    file_dirty[number] = false;
}

/* Nobody knows whether this process ends by itself: another one takes its files away then. */
static void leave_nothing(const char *path)
{
    int ends[2];
    LEAT_ASSERT(pipe(ends) == 0);
    pid_t pid = fork();
    LEAT_ASSERT(pid >= 0);
    (void)close(ends[pid == 0 ? 1 : 0]);
    if (pid != 0) return; /* its end of the pipe stays open */
    char byte;
    (void)setsid();
    while (read(ends[0], &byte, 1) > 0)
        continue;
    (void)unlink(path);
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", rig->dir);
    if (system(command) != 0) _exit(1);
    _exit(0);
}

static void files_make(void)
{
    const struct os_rmem_arena *own = LEAT_CONTAINER(arena, struct os_rmem_arena, port);
    memcpy(file_header, own->header, sizeof file_header);
    for (unsigned i = 0; i < FILES; i++) {
        (void)snprintf(files[i], sizeof files[i], "%s/" LEAT_OS_RMEM_FILE "file%u", rig->dir, i);
        file_make(i);
    }
    (void)snprintf(folder_path, sizeof folder_path, "%s/" LEAT_OS_RMEM_FILE "folder", rig->dir);
    (void)snprintf(link_path, sizeof link_path, "%s/" LEAT_OS_RMEM_FILE "link", rig->dir);
    (void)snprintf(pipe_path, sizeof pipe_path, "%s/" LEAT_OS_RMEM_FILE "pipe", rig->dir);
    (void)snprintf(foreign_path, sizeof foreign_path, "%s/notes", rig->dir);
    LEAT_ASSERT(mkdir(folder_path, 0700) == 0 && symlink(own->path, link_path) == 0 &&
                mkfifo(pipe_path, 0600) == 0 && link(files[2], foreign_path) == 0);
}

static void world_make(void)
{
    rig = os_rig_make(NULL, "127.0.0.1");
    ports[0] = os_rig_writer(rig, LEAT_RMEM_SHM);
    ports[1] = os_rig_writer(rig, LEAT_RMEM_VERBS);
    LEAT_ASSERT(ports[0] != NULL);
    rig->rig.writer = ports[1] ? ports[1] : ports[0];
    os_rig_start(rig);
    rig->rig.call(rig, RIG_HOST, arena_open, NULL);
    rig->rig.wait(rig, RIG_HOST, is_grown, NULL);
    leave_nothing(LEAT_CONTAINER(arena, struct os_rmem_arena, port)->path);
    rig->rig.call(rig, RIG_HOST, grant_get, NULL);
    (void)rig->rig.memory(rig, WRITES_MAX * WRITE_BYTES);
    files_make();
}

/* ---- one grant ---- */

static struct input {
    const struct leat_rmem *port;
    struct leat_rmem_grant grant;
    struct leat_rmem_target *target;
    struct leat_rmem_write writes[WRITES_MAX];
    struct leat_iov iovs[WRITES_MAX];
    unsigned wanted, posted, ended;
    bool begun, attached, failed;
} in;

static void section_add(unsigned kind, const uint8_t *body, size_t bytes)
{
    if (!leat_rmem_grant_add(&in.grant, (enum leat_rmem_kind)kind, body, bytes)) return;
}

/* The true section of that kind, or nothing, with free space after it. */
static size_t section_true(unsigned kind, uint8_t out[RMEM_SECTION_BYTES])
{
    size_t bytes = 0;
    const uint8_t *body = leat_rmem_grant_find(&truth, (enum leat_rmem_kind)kind, &bytes);
    memset(out, 0, RMEM_SECTION_BYTES);
    if (body) memcpy(out, body, bytes);
    return body ? bytes : 0;
}

static void path_add(const void *path, size_t bytes)
{
    uint8_t body[RMEM_SECTION_BYTES];
    struct rmem_shm_grant head;
    (void)section_true(LEAT_RMEM_SHM, body);
    if (bytes > sizeof body - sizeof head) bytes = sizeof body - sizeof head;
    memcpy(&head, body, sizeof head);
    head.path_bytes = (uint32_t)bytes;
    memcpy(body, &head, sizeof head);
    if (bytes) memcpy(body + sizeof head, path, bytes);
    section_add(LEAT_RMEM_SHM, body, sizeof head + bytes);
}

static void section_patch(const struct fuzz_piece *piece)
{
    uint8_t body[RMEM_SECTION_BYTES];
    if (piece->count < 2) return;
    size_t bytes = section_true(piece->bytes[0], body), at = piece->bytes[1],
           count = piece->count - 2;
    if (at >= sizeof body) return;
    if (count > sizeof body - at) count = sizeof body - at;
    if (count) memcpy(body + at, piece->bytes + 2, count);
    section_add(piece->bytes[0], body, bytes > at + count ? bytes : at + count);
}

static void file_change(const struct fuzz_piece *piece)
{
    if (piece->count < 3) return;
    unsigned number = piece->bytes[0] % FILES;
    size_t at = leat_get_le16(piece->bytes + 1) % RMEM_HEADER_BYTES, count = piece->count - 3;
    if (count > RMEM_HEADER_BYTES - at) count = RMEM_HEADER_BYTES - at;
    int fd = __real_open(files[number], O_RDWR);
    LEAT_ASSERT(fd >= 0);
    LEAT_ASSERT(pwrite(fd, piece->bytes + 3, count, (off_t)at) == (ssize_t)count);
    LEAT_ASSERT(close(fd) == 0);
    file_dirty[number] = true;
}

static void tale_take(struct fake_verbs_tale *tale, const struct fuzz_piece *piece)
{
    if (piece->count < 1) return;
    *tale = (struct fake_verbs_tale){.changed = true,
                                     .cuts = piece->bytes[0] & 1,
                                     .from = piece->bytes[0] / 2,
                                     .count = piece->count - 1,
                                     .bytes = piece->bytes + 1};
}

static void piece_take(const struct fuzz_piece *piece)
{
    uint8_t body[RMEM_SECTION_BYTES];
    const char *path;
    switch ((enum what)(piece->kind % WHATS)) {
    case SECTION:
        if (piece->count) section_add(piece->bytes[0], piece->bytes + 1, piece->count - 1);
        break;
    case PATCHED:
        section_patch(piece);
        break;
    case CUT:
        if (piece->count < 2) break;
        (void)section_true(piece->bytes[0], body);
        section_add(piece->bytes[0], body, piece->bytes[1]);
        break;
    case PATH:
        if (piece->count < 1) break;
        path = paths[piece->bytes[0] % (sizeof paths / sizeof *paths)];
        path_add(path, strlen(path));
        break;
    case PATHS:
        path_add(piece->bytes, piece->count);
        break;
    case FILED:
        file_change(piece);
        break;
    case HELLO:
        tale_take(&fake_verbs_hello, piece);
        break;
    case WELCOME:
        tale_take(&fake_verbs_welcome, piece);
        break;
    case WHATS:
        break;
    }
}

/* ---- attaching and writing; on the writer's actor ---- */

static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    write->rc = rc;
    in.ended++;
    rig->rig.notify(rig);
}

static void write_one(unsigned number)
{
    static const uint64_t offsets[WRITES_MAX] = {
        0, 64 * 1024, STEP - WRITE_BYTES, STEP - WRITE_BYTES / 2, STEP, UINT64_MAX - 1, 4096};
    uint8_t *bytes = rig->memory + (size_t)number * WRITE_BYTES;
    memset(bytes, (int)(number + 1), WRITE_BYTES);
    in.iovs[number] = (struct leat_iov){bytes, WRITE_BYTES};
    in.writes[number] = (struct leat_rmem_write){.iovs = &in.iovs[number],
                                                 .iov_count = 1,
                                                 .offset = offsets[number],
                                                 .on_done = on_done,
                                                 .rc = LEAT_E_INTERNAL};
    if (in.port->write(in.target, &in.writes[number]) == LEAT_OK) in.posted++;
}

static void on_attached(void *user, struct leat_rmem_target *target)
{
    (void)user;
    LEAT_ASSERT(target == in.target && !in.attached && !in.failed);
    in.attached = true;
    for (unsigned i = 0; i < in.wanted; i++)
        write_one(i);
    rig->rig.notify(rig);
}

static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    (void)user;
    LEAT_ASSERT(target == in.target && !in.failed && in.ended == in.posted);
    LEAT_ASSERT(error->code != LEAT_OK && error->text[0] != '\0');
    in.failed = true;
    rig->rig.notify(rig);
}

static void attach(void *arg)
{
    static const struct leat_rmem_target_handler handler = {on_attached, on_failed};
    struct leat_error error = {.text = ""};
    (void)arg;
    leat_err rc = in.port->attach(in.port->ctx, 0, &in.grant, &handler, NULL, &in.target, &error);
    in.begun = rc == LEAT_OK;
    LEAT_ASSERT(in.begun || (rc == error.code && error.text[0] != '\0'));
}

static bool is_over(void *arg)
{
    (void)arg;
    return in.failed || (in.attached && in.ended == in.posted);
}

static void detach(void *arg)
{
    (void)arg;
    in.port->detach(in.target);
}

/* An acked write lies in the true arena, if that is what the grant names. */
static void writes_check(void)
{
    struct leat_rmem_address address;
    if (!in.attached || fake_verbs_hello.changed || fake_verbs_welcome.changed) return;
    LEAT_ASSERT(leat_rmem_grant_address(&in.grant, &address) == LEAT_OK);
    if (memcmp(address.id, arena->id, sizeof address.id) != 0 || in.port->kind == LEAT_RMEM_SHM)
        return;
    for (unsigned i = 0; i < in.wanted; i++)
        if (in.writes[i].rc == LEAT_OK)
            LEAT_ASSERT(arena->base[in.writes[i].offset] == i + 1 ||
                        in.writes[i].offset >= arena->grown_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!rig) world_make();
    if (size == 0) return 0;
    struct fuzz_pieces pieces = {data + 1, data + size};
    struct fuzz_piece piece;
    memset(&in, 0, sizeof in);
    fake_verbs_hello = fake_verbs_welcome = (struct fake_verbs_tale){0};
    in.port = ports[data[0] & 1];
    in.wanted = data[0] / 2 % (WRITES_MAX + 1);
    if (!in.port) return 0; /* this build has no verbs */
    while (fuzz_piece_next(&pieces, &piece))
        piece_take(&piece);
    if (in.grant.bytes == 0) in.grant = truth;
    rig->rig.call(rig, RIG_WRITER, attach, NULL);
    if (in.begun) {
        rig->rig.wait(rig, RIG_WRITER, is_over, NULL);
        writes_check();
        rig->rig.call(rig, RIG_WRITER, detach, NULL);
    }
    for (unsigned i = 0; i < FILES; i++)
        if (file_dirty[i]) file_make(i);
    return 0;
}
