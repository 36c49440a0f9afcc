/* machine.c: interlock machine: makes the world that the names of all users are in. */
#include "command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wo/wo.h"

int command_machine(int argc, char **argv)
{
    CHAR path[HAL_LONGEST_PATH];
    NTSTATUS status;

    if (argc != 1) {
        bool help = argc == 2 && strcmp(argv[1], "--help") == 0;

        fprintf(help ? stdout : stderr, "usage: interlock machine\n\n"
                "Makes the world of the names that begin with Global\\, for all users, and prints where it is. For root.\n");
        return help ? 0 : 2;
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
