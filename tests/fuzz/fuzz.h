/* What every fuzz target includes. */
#ifndef LEAT_TESTS_FUZZ_H
#define LEAT_TESTS_FUZZ_H

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#endif
