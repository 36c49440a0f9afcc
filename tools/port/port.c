/* port.c: interlock port. */
#include "command.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char usage[] = "usage: interlock port [-v] [--json] DIRECTORY|FILE\n"
                            "Shows which functions of Windows the sources call, which of them Interlock has, and what needs attention.\n"
                            "  -v      also every place, and the functions that exist\n"
                            "  --json  for programs\n";

int command_port(int argc, char **argv)
{
    bool verbose = false, is_json = false;
    const char *path = NULL;
    tree *found;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (strcmp(argv[i], "--help") == 0)
            return fputs(usage, stdout) < 0;
        else if (path != NULL || (argv[i][0] == '-' && argv[i][1] != '\0'))
            return fprintf(stderr, "interlock: unrecognized argument: %s\n%s", argv[i], usage) < 0 ? 1 : 2;
        else
            path = argv[i];
    }
    if (path == NULL)
        return fputs(usage, stderr) < 0 ? 1 : 2;
    found = tree_read(path);
    if (found == NULL) {
        fprintf(stderr, "interlock: %s: %s\n", path, strerror(errno));
        return 1;
    }
    if (is_json)
        report_json(found, path);
    else
        report_text(found, path, verbose);
    tree_free(found);
    return 0;
}
