/*
 * output.c: what an explored program prints. While schedules are searched it is discarded; while one is shown it is kept for
 * the report.
 */
#include "program.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void lab_program_mute(void)
{
    if (!lab->is_program || lab->is_muted)
        return;
    fflush(stdout);
    if (lab->output[0] == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

        lab->output[0] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
        lab->output[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
        lab->capture = memfd_create("lab-output", MFD_CLOEXEC);
        lab->sink = fcntl(nothing, F_DUPFD_CLOEXEC, 100);
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    if (lab->tracing && ftruncate(lab->capture, 0) == 0)
        lseek(lab->capture, 0, SEEK_SET);
    dup2(lab->tracing ? lab->capture : lab->sink, STDOUT_FILENO);
    dup2(lab->tracing ? lab->capture : lab->sink, STDERR_FILENO);
    lab->is_muted = true;
}

void lab_program_unmute(void)
{
    if (!lab->is_muted)
        return;
    fflush(stdout);
    dup2(lab->output[0], STDOUT_FILENO);
    dup2(lab->output[1], STDERR_FILENO);
    lab->is_muted = false;
}

void lab_program_print_output(void)
{
    char line[1024], last[1024] = "";

    if (!lab->is_program || lab->output[0] == 0)
        return;
    FILE *output = fdopen(dup(lab->capture), "r");
    bool any = false;
    if (output == NULL)
        return;
    rewind(output);
    while (fgets(line, sizeof(line), output) != NULL) {
        if (strcmp(line, last) == 0)
            continue;
        strcpy(last, line);
        printf("%s    | %s", any ? "" : "  output of this schedule:\n", line);
        if (strchr(line, '\n') == NULL)
            printf("\n");
        any = true;
    }
    fclose(output);
}
