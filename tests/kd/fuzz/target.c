/* target.c: the readers of the debugger, for libFuzzer. INTERLOCK_READERS is the folder with undamaged files. */
#include "readers.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *folder = getenv("INTERLOCK_READERS");

    (void)argc;
    (void)argv;
    if (folder == NULL) {
        fprintf(stderr, "INTERLOCK_READERS is not set: use scripts/fuzz --readers\n");
        exit(2);
    }
    readers_start(folder);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    readers_run(bytes, size);
    return 0;
}
