/*
 * console.c: reading and writing descriptors, single keys of the terminal, and signals as console events.
 *
 * The handlers of the four signals are installed in front of the program's (handler.c). While the process watches its
 * console they only set a bit and wake the thread that waits for it. Otherwise, and in a forked child, which has no
 * such thread, a signal is passed to the predecessor. Signals that arrive while their bit is still set merge into one,
 * as the host's own do.
 */
#include "hal.h"

#include "halp.h"

#include <poll.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* Descriptors. */

HAL_DESCRIPTOR_KIND HalQueryDescriptorKind(LONG Descriptor)
{
    HALP_HOST_CALLS;
    struct stat Status;

    if (fstat(Descriptor, &Status) != 0) {
        return HalUnknownFile;
    }
    if (S_ISREG(Status.st_mode) || S_ISDIR(Status.st_mode) || S_ISBLK(Status.st_mode)) {
        return HalDiskFile;
    }
    if (S_ISFIFO(Status.st_mode) || S_ISSOCK(Status.st_mode)) {
        return HalPipe;
    }
    return S_ISCHR(Status.st_mode) ? (isatty(Descriptor) ? HalTerminal : HalCharacterFile) : HalUnknownFile;
}

/* The descriptor may be non-blocking. */
static VOID HalpAwaitDescriptor(LONG Descriptor, short Events)
{
    struct pollfd Poll = {.fd = Descriptor, .events = Events};

    HalpCall(SYS_ppoll, &Poll, 1, NULL, NULL, 0);
}

static NTSTATUS HalpStatusOfTransfer(SSIZE_T Result)
{
    switch (-Result) {
    case EBADF:
        return STATUS_ACCESS_DENIED; /* open, but not for this */
    case EPIPE:
        return STATUS_PIPE_CLOSING;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return STATUS_DISK_FULL;
    case EFAULT:
        return STATUS_ACCESS_VIOLATION;
    default:
        return STATUS_INVALID_DEVICE_REQUEST;
    }
}

NTSTATUS HalReadDescriptor(LONG Descriptor, PVOID Buffer, ULONG Length, PULONG Done)
{
    SSIZE_T Result;

    *Done = 0;
    while ((Result = HalpReadFile(Descriptor, Buffer, Length)) < 0) {
        if (Result == -EAGAIN) {
            HalpAwaitDescriptor(Descriptor, POLLIN);
        } else if (Result == -ECONNRESET) {
            return STATUS_PIPE_BROKEN;
        } else if (Result != -EINTR) {
            return HalpStatusOfTransfer(Result);
        }
    }
    *Done = (ULONG)Result;
    return Result == 0 && Length != 0 && HalQueryDescriptorKind(Descriptor) == HalPipe ? STATUS_PIPE_BROKEN
                                                                                       : STATUS_SUCCESS;
}

static NTSTATUS HalpWriteWhole(LONG Descriptor, const UCHAR *Buffer, ULONG Length, PULONG Done)
{
    while (*Done < Length) {
        SSIZE_T Result = HalpWriteFile(Descriptor, Buffer + *Done, Length - *Done);

        if (Result > 0) {
            *Done += (ULONG)Result;
        } else if (Result == -EAGAIN) {
            HalpAwaitDescriptor(Descriptor, POLLOUT);
        } else if (Result != -EINTR) {
            return HalpStatusOfTransfer(Result);
        }
    }
    return STATUS_SUCCESS;
}

/* SIGPIPE goes to the thread that writes: it is blocked meanwhile, and consumed unless one was pending before. */
NTSTATUS HalWriteDescriptor(LONG Descriptor, const VOID *Buffer, ULONG Length, PULONG Done)
{
    HALP_HOST_CALLS;
    struct timespec Now = {0};
    sigset_t Pipe, Before, Pending;
    NTSTATUS Status;

    *Done = 0;
    sigemptyset(&Pipe);
    sigaddset(&Pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &Pipe, &Before);
    sigpending(&Pending);
    Status = HalpWriteWhole(Descriptor, Buffer, Length, Done);
    if (Status == STATUS_PIPE_CLOSING && !sigismember(&Pending, SIGPIPE)) {
        sigtimedwait(&Pipe, NULL, &Now);
    }
    pthread_sigmask(SIG_SETMASK, &Before, NULL);
    return Status;
}

/* Console events. */

static const int HalpConsoleSignals[HalConsoleEvents] = {
    [HalConsoleInterrupt] = SIGINT,
    [HalConsoleBreak] = SIGQUIT,
    [HalConsoleClose] = SIGHUP,
    [HalConsoleShutdown] = SIGTERM,
};

static volatile ULONG HalpPendingEvents;  /* a bit for each event; the thread sleeps on it */
static volatile ULONG HalpConsoleProcess; /* the process that watches; 0: none */

static HAL_CONSOLE_EVENT HalpEventOfSignal(int Signal)
{
    ULONG Event = 0;

    while (Event < HalConsoleEvents - 1 && HalpConsoleSignals[Event] != Signal) {
        Event += 1;
    }
    return (HAL_CONSOLE_EVENT)Event;
}

static HALP_CHAIN HalpConsoleChain[HalConsoleEvents];

static VOID HalpHandleConsoleSignal(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    HAL_CONSOLE_EVENT Event = HalpEventOfSignal(Signal);
    struct sigaction Default = {.sa_handler = SIG_DFL};
    int Error = errno;

    /* relaxed: a number that is compared */
    if (__atomic_load_n(&HalpConsoleProcess, __ATOMIC_RELAXED) == (ULONG)getpid()) {
        /* release: pairs with the acquire in HalAwaitConsoleEvent */
        __atomic_fetch_or(&HalpPendingEvents, 1u << Event, __ATOMIC_RELEASE);
        HalDispatch.Wake(&HalpPendingEvents, 1);
    } else if (!HalpPassOn(&HalpConsoleChain[Event].Predecessor[Place], Signal, Information, Context)) {
        sigaction(Signal, &Default, NULL);
        HalpCall(SYS_tgkill, getpid(), HalpCall(SYS_gettid), Signal); /* when the handler has returned */
    }
    errno = Error;
}

HALP_DEFINE_HANDLERS(HalpConsoleHandler, HalpHandleConsoleSignal);

#define CONSOLE_CHAIN(Number)                                                                                         \
    {                                                                                                                 \
        .Signal = (Number), .Handler = HalpConsoleHandler, .Flags = SA_RESTART, .InheritedFlags = SA_ONSTACK          \
    }

static HALP_CHAIN HalpConsoleChain[HalConsoleEvents] = {
    [HalConsoleInterrupt] = CONSOLE_CHAIN(SIGINT),
    [HalConsoleBreak] = CONSOLE_CHAIN(SIGQUIT),
    [HalConsoleClose] = CONSOLE_CHAIN(SIGHUP),
    [HalConsoleShutdown] = CONSOLE_CHAIN(SIGTERM),
};

BOOLEAN HalWatchConsole(BOOLEAN Watch)
{
    HALP_HOST_CALLS;
    BOOLEAN InFront = TRUE;
    sigset_t Before;

    if (Watch) {
        HalpLockHandlers(&Before);
        for (ULONG Event = 0; Event < HalConsoleEvents; Event++) {
            InFront = HalpStandInFront(&HalpConsoleChain[Event]) && InFront;
        }
        HalpUnlockHandlers(&Before);
    }
    __atomic_store_n(&HalpConsoleProcess, Watch && InFront ? (ULONG)getpid() : 0, __ATOMIC_RELAXED);
    return InFront;
}

HAL_CONSOLE_EVENT HalAwaitConsoleEvent(VOID)
{
    static const HAL_DEADLINE Never = {HalNoDeadline, 0};
    ULONG Pending;

    while ((Pending = __atomic_load_n(&HalpPendingEvents, __ATOMIC_ACQUIRE)) == 0) {
        HalDispatch.Wait(&HalpPendingEvents, 0, &Never);
    }
    Pending = (ULONG)__builtin_ctz(Pending);
    __atomic_fetch_and(&HalpPendingEvents, ~(1u << Pending), __ATOMIC_RELAXED);
    return (HAL_CONSOLE_EVENT)Pending;
}

/* The predecessor of the handler that is installed. */
static struct sigaction HalpActionBefore(const HALP_CHAIN *Chain)
{
    struct sigaction Present = {.sa_handler = SIG_DFL};

    sigaction(Chain->Signal, NULL, &Present);
    for (ULONG Place = 0; Place < Chain->Used; Place++) {
        if (Present.sa_sigaction == Chain->Handler[Place]) {
            return Chain->Predecessor[Place].Action;
        }
    }
    return Present;
}

VOID HalTakeDefaultAction(HAL_CONSOLE_EVENT Event)
{
    HALP_HOST_CALLS;
    HALP_CHAIN *Chain = &HalpConsoleChain[Event];
    struct sigaction Action = HalpActionBefore(Chain);
    sigset_t Signals, Before;

    sigemptyset(&Signals);
    sigaddset(&Signals, Chain->Signal);
    sigaction(Chain->Signal, &Action, NULL);
    /* to this thread, which does not block it: it is delivered before the call returns */
    pthread_sigmask(SIG_UNBLOCK, &Signals, &Before);
    HalpCall(SYS_tgkill, getpid(), HalpCall(SYS_gettid), Chain->Signal);
    pthread_sigmask(SIG_SETMASK, &Before, NULL);
    HalWatchConsole(TRUE);
}

/* The host reads -1 as every process and a positive number as one process: neither is a group. */
BOOLEAN HalSendConsoleEvent(ULONG Group, HAL_CONSOLE_EVENT Event)
{
    return Group != 1 && Group <= MAXLONG && HalpCall(SYS_kill, -(pid_t)Group, HalpConsoleSignals[Event]) == 0;
}

/* Single keys of the terminal, from standard input. */

#define HALP_KEYS STDIN_FILENO

/* Unbuffered, unmodified bytes. FALSE: it is not a terminal, and bytes are read as they arrive. */
static BOOLEAN HalpEnterKeyMode(struct termios *Before, BOOLEAN Echo)
{
    struct termios Keys;

    if (tcgetattr(HALP_KEYS, Before) != 0) {
        return FALSE;
    }
    Keys = *Before;
    Keys.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    Keys.c_lflag |= Echo ? (tcflag_t)ECHO : 0;
    Keys.c_cc[VMIN] = 1;
    Keys.c_cc[VTIME] = 0;
    return tcsetattr(HALP_KEYS, TCSANOW, &Keys) == 0;
}

LONG HalReadKey(BOOLEAN Echo)
{
    HALP_HOST_CALLS;
    struct termios Before;
    BOOLEAN Terminal = HalpEnterKeyMode(&Before, Echo);
    UCHAR Key;
    ssize_t Count;

    do {
        Count = read(HALP_KEYS, &Key, 1);
    } while (Count < 0 && errno == EINTR);
    if (Terminal) {
        tcsetattr(HALP_KEYS, TCSANOW, &Before);
    }
    return Count == 1 ? Key : -1;
}

BOOLEAN HalIsKeyReady(VOID)
{
    HALP_HOST_CALLS;
    struct termios Before;
    BOOLEAN Terminal = HalpEnterKeyMode(&Before, FALSE);
    struct pollfd Ready = {.fd = HALP_KEYS, .events = POLLIN};
    int Count = poll(&Ready, 1, 0);

    if (Terminal) {
        tcsetattr(HALP_KEYS, TCSANOW, &Before);
    }
    return Count == 1 && (Ready.revents & (POLLIN | POLLHUP)) != 0;
}
