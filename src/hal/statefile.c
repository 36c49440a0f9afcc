/* statefile.c: a small file of lines that several runs of a program share. */
#include "halp.h"

#include <fcntl.h>
#include <string.h>

#define LONGEST_LINE 8192
#define STATE_MODE 0666

/* Lines that are longer are left out. FALSE: there is no such file. */
BOOLEAN HalReadLines(PCSTR Path, VOID (*Use)(PCSTR Line))
{
    CHAR Text[LONGEST_LINE];
    SIZE_T Used = 0;
    BOOLEAN Skips = FALSE;
    SSIZE_T Got;
    int File = HalpOpenFile(Path, O_RDONLY);

    if (File < 0) {
        return FALSE;
    }
    while ((Got = HalpReadFile(File, Text + Used, sizeof(Text) - 1 - Used)) > 0 || Got == -EINTR) {
        PSTR Line = Text, End;

        Used += Got > 0 ? (SIZE_T)Got : 0;
        Text[Used] = '\0';
        while ((End = strchr(Line, '\n')) != NULL) {
            *End = '\0';
            if (!Skips) {
                Use(Line);
            }
            Skips = FALSE;
            Line = End + 1;
        }
        Used -= (SIZE_T)(Line - Text);
        memmove(Text, Line, Used);
        if (Used == sizeof(Text) - 1) {
            Skips = TRUE;
            Used = 0;
        }
    }
    HalCloseDescriptor(File);
    return TRUE;
}

/* With one write, so that lines of several processes stay whole. */
BOOLEAN HalAppendText(PCSTR Path, PCSTR Text)
{
    SIZE_T Length = strlen(Text);
    int File = (int)HalpCall(SYS_openat, AT_FDCWD, Path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, STATE_MODE);
    BOOLEAN Written = File >= 0 && HalpWriteFile(File, Text, Length) == (SSIZE_T)Length;

    if (File >= 0) {
        HalCloseDescriptor(File);
    }
    return Written;
}
