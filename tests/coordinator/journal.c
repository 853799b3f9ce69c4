/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/coordinator/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file {
    struct leat_file *below;
    char name[64];
};

static struct file *file_of(struct leat_file *file)
{
    return (struct file *)(void *)file;
}

static void name_short(char out[64], const char *path)
{
    const char *name = strncmp(path, "raft/", 5) == 0 ? path + 5 : path;
    const char *digits = strchr(name, '-');
    if (digits)
        snprintf(out, 64, "%.*s-%llu", (int)(digits - name), name, strtoull(digits + 1, NULL, 10));
    else
        snprintf(out, 64, "%s", name);
}

__attribute__((format(printf, 2, 3))) static leat_err note(struct journal *journal,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = sizeof journal->text - journal->used;
    int bytes = snprintf(journal->text + journal->used, left, journal->used ? ", " : "");
    bytes += vsnprintf(journal->text + journal->used + bytes, left - (size_t)bytes, format, args);
    va_end(args);
    if ((size_t)bytes >= left) abort();
    journal->used += (size_t)bytes;
    return ++journal->calls == journal->fail_at ? journal->fail_with : LEAT_OK;
}

static leat_err journal_open(void *ctx, const char *path, unsigned flags,
                             struct leat_file **out_file, struct leat_error *error)
{
    struct journal *journal = ctx;
    struct file *file = calloc(1, sizeof *file);
    if (!file) abort();
    name_short(file->name, path);
    leat_err rc = note(journal, "%s %s", flags & LEAT_OPEN_CREATE ? "create" : "open", file->name);
    if (rc != LEAT_OK)
        (void)leat_error_set(error, rc, "%s", leat_err_text(rc));
    else
        rc = journal->below->open(journal->below->ctx, path, flags, &file->below, error);
    if (rc == LEAT_OK) {
        journal->files_open++;
        *out_file = (struct leat_file *)(void *)file;
    } else {
        free(file);
    }
    return rc;
}

static void journal_close(void *ctx, struct leat_file *file)
{
    struct journal *journal = ctx;
    (void)note(journal, "close %s", file_of(file)->name);
    journal->calls--;
    journal->files_open--;
    journal->below->close(journal->below->ctx, file_of(file)->below);
    free(file);
}

static leat_err io_note(struct journal *journal, struct leat_disk_io *io)
{
    static const char *const kinds[] = {[LEAT_DISK_READ] = "read", [LEAT_DISK_WRITE] = "write"};
    struct file *file = file_of(io->file);
    io->file = file->below;
    return io->kind == LEAT_DISK_SYNC ? note(journal, "sync %s", file->name)
                                      : note(journal, "%s %s %llu+%zu", kinds[io->kind], file->name,
                                             (unsigned long long)io->offset, io->bytes);
}

static leat_err journal_run(void *ctx, struct leat_disk_io *io)
{
    struct journal *journal = ctx;
    io->done_bytes = 0;
    io->rc = io_note(journal, io);
    return io->rc != LEAT_OK ? io->rc : journal->below->run(journal->below->ctx, io);
}

static void journal_submit(void *ctx, struct leat_disk_io *io)
{
    struct journal *journal = ctx;
    io->rc = io_note(journal, io);
    if (io->rc == LEAT_OK)
        journal->below->submit(journal->below->ctx, io);
    else
        io->on_done(io);
}

static leat_err journal_size(void *ctx, struct leat_file *file, uint64_t *out_bytes)
{
    struct journal *journal = ctx;
    leat_err rc = note(journal, "size %s", file_of(file)->name);
    return rc ? rc : journal->below->size(journal->below->ctx, file_of(file)->below, out_bytes);
}
static leat_err journal_allocate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct journal *journal = ctx;
    leat_err rc = note(journal, "allocate %s %llu", file_of(file)->name, (unsigned long long)bytes);
    return rc ? rc : journal->below->allocate(journal->below->ctx, file_of(file)->below, bytes);
}
static leat_err journal_truncate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct journal *journal = ctx;
    leat_err rc = note(journal, "truncate %s %llu", file_of(file)->name, (unsigned long long)bytes);
    return rc ? rc : journal->below->truncate(journal->below->ctx, file_of(file)->below, bytes);
}
static leat_err journal_remove(void *ctx, const char *path)
{
    struct journal *journal = ctx;
    char name[64];
    name_short(name, path);
    leat_err rc = note(journal, "remove %s", name);
    return rc ? rc : journal->below->remove(journal->below->ctx, path);
}
static leat_err journal_rename(void *ctx, const char *from, const char *to)
{
    struct journal *journal = ctx;
    char names[2][64];
    name_short(names[0], from);
    name_short(names[1], to);
    leat_err rc = note(journal, "rename %s %s", names[0], names[1]);
    return rc ? rc : journal->below->rename(journal->below->ctx, from, to);
}
static leat_err journal_make_dir(void *ctx, const char *path)
{
    struct journal *journal = ctx;
    leat_err rc = note(journal, "make %s/", path);
    return rc ? rc : journal->below->make_dir(journal->below->ctx, path);
}
static leat_err journal_sync_dir(void *ctx, const char *path)
{
    struct journal *journal = ctx;
    leat_err rc = note(journal, "sync %s/", path);
    return rc ? rc : journal->below->sync_dir(journal->below->ctx, path);
}
static leat_err journal_list(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                             void *arg)
{
    struct journal *journal = ctx;
    leat_err rc = note(journal, "list %s/", path);
    return rc ? rc : journal->below->list(journal->below->ctx, path, each, arg);
}

void journal_init(struct journal *journal, const struct leat_disk *below)
{
    *journal = (struct journal){.below = below};
    journal->disk = (struct leat_disk){.ctx = journal,
                                       .submit = journal_submit,
                                       .run = journal_run,
                                       .open = journal_open,
                                       .close = journal_close,
                                       .size = journal_size,
                                       .allocate = journal_allocate,
                                       .truncate = journal_truncate,
                                       .remove = journal_remove,
                                       .rename = journal_rename,
                                       .make_dir = journal_make_dir,
                                       .sync_dir = journal_sync_dir,
                                       .list = journal_list};
}

void journal_clear(struct journal *journal)
{
    journal->used = journal->calls = journal->fail_at = 0;
    journal->text[0] = '\0';
}

void journal_fail(struct journal *journal, unsigned at, leat_err with)
{
    journal->calls = 0;
    journal->fail_at = at;
    journal->fail_with = with;
}
