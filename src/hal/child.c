/* child.c: a forked child that runs a routine and sends a result back through a pipe. */
#include "halp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define EXIT_CODES 256

static VOID HalpBecomeChild(int Input)
{
    HalCloseDescriptor(Input);
    HalpCall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL); /* it dies with a parent that is killed */
    signal(SIGABRT, SIG_DFL);                       /* a test framework's handler would run the parent's next test */
}

static BOOLEAN HalpReadResult(int Input, PVOID Result, SIZE_T Size)
{
    SIZE_T Used = 0;

    while (Used < Size) {
        SSIZE_T Got = HalpReadFile(Input, (PCHAR)Result + Used, Size - Used);
        if (Got > 0) {
            Used += (SIZE_T)Got;
        } else if (Got != -EINTR) {
            return FALSE;
        }
    }
    return TRUE;
}

static ULONG HalpReapChild(pid_t Process)
{
    siginfo_t Info = {.si_code = 0};
    long Error;

    do {
        Error = HalpCall(SYS_waitid, P_PID, Process, &Info, WEXITED, NULL);
    } while (Error == -EINTR);
    if (Error < 0) {
        return 0; /* the program ignores its children */
    }
    return Info.si_code == CLD_EXITED ? EXIT_CODES + (ULONG)Info.si_status : (ULONG)Info.si_status;
}

BOOLEAN HalRunChild(PHAL_CHILD Child, VOID (*Routine)(PVOID), PVOID Context, PVOID Result, SIZE_T Size)
{
    int Ends[2];
    pid_t Process;
    BOOLEAN Complete;

    Child->ExitStatus = 0;
    if (HalpCall(SYS_pipe2, Ends, O_CLOEXEC) < 0) {
        return FALSE;
    }
    Child->Output = Ends[1];
    {
        HALP_HOST_CALLS;
        fflush(NULL); /* or the child would write it again */
        Process = fork();
    }
    if (Process == 0) {
        HalpBecomeChild(Ends[0]);
        Routine(Context);
        _exit(0);
    }
    HalCloseDescriptor(Ends[1]);
    Complete = Process > 0 && HalpReadResult(Ends[0], Result, Size);
    HalCloseDescriptor(Ends[0]);
    if (Process > 0) {
        Child->ExitStatus = HalpReapChild(Process);
    }
    return Complete;
}

VOID HalFinishChild(const HAL_CHILD *Child, const VOID *Result, SIZE_T Size)
{
    SIZE_T Used = 0;

    while (Used < Size) {
        SSIZE_T Written = HalpWriteFile(Child->Output, (const CHAR *)Result + Used, Size - Used);
        if (Written > 0) {
            Used += (SIZE_T)Written;
        } else if (Written != -EINTR) {
            break;
        }
    }
    _exit(0);
}
