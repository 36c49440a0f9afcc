/* machine.c: interlock machine: makes the world that the names of all users are in. */
#include "command.h"

#include <stdio.h>

#include "wo/wo.h"

int command_machine(int argc, char **argv)
{
    CHAR path[HAL_LONGEST_PATH];
    NTSTATUS status;

    (void)argv;
    if (argc != 1) {
        fprintf(stderr, "usage: interlock machine\n");
        return 2;
    }
    status = WoMakeMachineWorld(path);
    if (!NT_SUCCESS(status)) {
        fprintf(stderr, "interlock: %s cannot be made (status %08x)%s\n", path, (unsigned)status,
                status == STATUS_ACCESS_DENIED ? ": only root can" : "");
        return 1;
    }
    if (!WoHasMachineWorld()) {
        fprintf(stderr, "interlock: %s does not belong to root: programs will not use it\n", path);
        return 1;
    }
    printf("%s\n", path);
    return 0;
}
