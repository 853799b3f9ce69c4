/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/kafka-api.md from the tables. With --check FILE: is the file what it would print? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/apis.h"

static const char *const kinds[] = {
    [LEAT_KAFKA_BOOL] = "bool",
    [LEAT_KAFKA_INT8] = "int8",
    [LEAT_KAFKA_INT16] = "int16",
    [LEAT_KAFKA_INT32] = "int32",
    [LEAT_KAFKA_INT64] = "int64",
    [LEAT_KAFKA_UUID] = "uuid",
    [LEAT_KAFKA_STRING] = "string",
    [LEAT_KAFKA_BYTES] = "bytes",
    [LEAT_KAFKA_RECORDS] = "records",
    [LEAT_KAFKA_STRUCT] = "struct",
    [LEAT_KAFKA_ARRAY] = "array of",
    [LEAT_KAFKA_INT32_ARRAY] = "array of int32",
    [LEAT_KAFKA_STRING_ARRAY] = "array of string",
    [LEAT_KAFKA_UUID_ARRAY] = "array of uuid",
};

enum { NAME_COLUMNS = 44 };

static void print_range(FILE *out, int first, int last, int api_last)
{
    if (last > api_last) last = api_last;
    if (first == last)
        fprintf(out, "%d", first);
    else
        fprintf(out, "%d-%d", first, last);
}

static void print_fields(FILE *out, const struct leat_kafka_api *api,
                         const struct leat_kafka_type *type, int depth)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (field->first > api->last || field->last < api->first) continue;
        fprintf(out, "%*s%-*s %-16s ", depth * 2, "", NAME_COLUMNS - depth * 2, field->name,
                kinds[field->kind]);
        print_range(out, field->first, field->last, api->last);
        if (field->nullable > 0 && field->nullable - 1 <= api->last) {
            fputs(", null: ", out);
            print_range(out, field->nullable - 1, field->last, api->last);
        }
        if (field->tagged > 0) fprintf(out, ", tag %d from %d", field->tag, field->tagged - 1);
        if (field->fallback != 0) fprintf(out, ", else %lld", (long long)field->fallback);
        fputc('\n', out);
        if (field->element != NULL) print_fields(out, api, field->element(), depth + 1);
    }
}

static void print_message(FILE *out, const struct leat_kafka_api *api, const char *what,
                          const struct leat_kafka_type *type)
{
    fprintf(out, "\n%s\n\n", what);
    if (type->field_count == 0) {
        fputs("No fields.\n", out);
        return;
    }
    fputs("```\n", out);
    print_fields(out, api, type, 0);
    fputs("```\n", out);
}

static int by_key(const void *a, const void *b)
{
    return ((const struct leat_kafka_api *)a)->key - ((const struct leat_kafka_api *)b)->key;
}

static void print_page(FILE *out)
{
    uint32_t count;
    const struct leat_kafka_api *apis = leat_kafka_apis(&count);
    struct leat_kafka_api *sorted = calloc(count, sizeof *sorted);
    if (sorted == NULL) return;
    memcpy(sorted, apis, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_key);
    fputs(
        "# Requests of the Kafka protocol that are served\n\n"
        "`kafka_api_page` makes this page from kafka/codec/schema_*.def and kafka/codec/apis.def; "
        "a test "
        "compares them.\n"
        "A line has a field's name, its type and the versions that have the field. Elements of an "
        "array are indented.\n"
        "In other versions the field has the value after \"else\", or 0, null or empty. From the "
        "version in \"compact from\"\n"
        "on, lengths are variable-length numbers, and tagged fields may follow each struct.\n\n"
        "| key | request | versions | compact from |\n|---|---|---|---|\n",
        out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "| %d | [%s](#%d-%s) | %d-%d | %d |\n", sorted[i].key, sorted[i].name,
                sorted[i].key, sorted[i].name, sorted[i].first, sorted[i].last, sorted[i].flexible);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, "\n## %d %s\n", sorted[i].key, sorted[i].name);
        print_message(out, &sorted[i], "Request", sorted[i].request());
        print_message(out, &sorted[i], "Answer", sorted[i].response());
    }
    free(sorted);
}

static int check(const char *path)
{
    char *page = NULL;
    size_t page_bytes = 0;
    FILE *out = open_memstream(&page, &page_bytes);
    print_page(out);
    fclose(out);
    FILE *in = fopen(path, "r");
    char *there = malloc(page_bytes + 2);
    size_t there_bytes = in != NULL && there != NULL ? fread(there, 1, page_bytes + 1, in) : 0;
    int same = there_bytes == page_bytes && memcmp(page, there, page_bytes) == 0;
    if (!same)
        fprintf(stderr, "%s is not what the tables say: write it anew by kafka_api_page > %s\n",
                path, path);
    if (in != NULL) fclose(in);
    free(there);
    free(page);
    return same ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--check") == 0) return check(argv[2]);
    print_page(stdout);
    return 0;
}
