/* target.c: libFuzzer's entry point. INTERLOCK_FUZZ_PRINT: each call is printed before it is made. */
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    print_as_it_runs = getenv("INTERLOCK_FUZZ_PRINT") != NULL;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_input(data, size);
    return 0;
}
