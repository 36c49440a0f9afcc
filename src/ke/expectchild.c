/*
 * expectchild.c: a test expects a bugcheck, in a child. The child sends its result through a pipe when the routine
 * returns, or from the bugcheck of any of its threads. The parent reads the result, and then the child's exit status.
 */
#include "bugreport.h"

#include <interlock/verifier.h>
#include <string.h>

typedef struct _KI_CHILD {
    PVF_ROUTINE Routine;
    PVOID Context;
    HAL_CHILD Host;
} KI_CHILD, *PKI_CHILD;

static PKI_CHILD KiThisChild; /* in the child */

static VOID KiSendBugCheck(const KI_BUGCHECK *BugCheck)
{
    static VF_BUGCHECK Found; /* one thread reports */
    Found.Outcome = VfStopped;
    Found.Code = BugCheck->Code;
    memcpy(Found.Parameter, BugCheck->Parameter, sizeof(Found.Parameter));
    HalCapturePrint(Found.Report, sizeof(Found.Report));
    KiPrintBugCheck(BugCheck);
    HalCapturePrint(NULL, 0);
    HalFinishChild(&KiThisChild->Host, &Found, sizeof(Found));
}

static VOID KiRunInChild(PVOID Context)
{
    static const VF_BUGCHECK Nothing = {.Outcome = VfReturned};
    KiThisChild = Context;
    HalCurrentThread->ExpectedBugCheck = NULL; /* of the parent */
    KiBugCheckObserver = KiSendBugCheck;
    KiThisChild->Routine(KiThisChild->Context);
    HalFinishChild(&KiThisChild->Host, &Nothing, sizeof(Nothing));
}

ULONG VfExpectBugCheckInChild(PVF_ROUTINE Routine, PVOID Context, PVF_BUGCHECK BugCheck)
{
    KI_CHILD Child = {.Routine = Routine, .Context = Context};
    VF_BUGCHECK Own, *Found = BugCheck != NULL ? BugCheck : &Own;
    KiCurrentThread();
    memset(Found, 0, sizeof(*Found));
    if (!HalRunChild(&Child.Host, KiRunInChild, &Child, Found, sizeof(*Found))) {
        memset(Found, 0, sizeof(*Found));
        Found->Outcome = VfDied;
        Found->Code = Child.Host.ExitStatus;
        return 0;
    }
    return Found->Code;
}
