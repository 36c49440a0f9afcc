/*
 * library.c: was a thread interrupted in the middle of the C library?
 *
 * A thread that is stopped there may hold the lock of the heap. Then all who allocate stop, too, and a fork never
 * ends: the C library takes the locks of the heap for it when the handlers have run, ours too, and ours have closed the
 * dispatcher by then. So nobody could let the thread go on. The locks cannot be seen; what can be seen is where the
 * thread was. While it is in the C library, in the loader or in what provides malloc, it goes on for RETRY_AFTER and is
 * interrupted again. Not so
 * 1. in a system call that waits, where it may stay for good. Memory is asked for with the heap locked: calls for
 *    that do not count. A thread that waits for a lock holds none that matters here.
 * 2. after MOST_RETRIES: it may spin for good on something, or copy a gigabyte.
 * A program that is linked with the C library statically cannot be told from it: there it is stopped where it is.
 */
#include "context.h"
#include "halp.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>

#define RETRY_AFTER 100000 /* nanoseconds; inside of malloc a thread is for a fraction of that */
#define MOST_RETRIES 1000
#define MOST_RANGES 8

/* The instruction of a system call, the registers of its number and of its result. */
#if defined(__x86_64__)
static const UCHAR HalpSystemCall[] = {0x0f, 0x05};
#define CONTEXT_CALL(Context) ((Context)->uc_mcontext.gregs[REG_RAX])
#define CONTEXT_RESULT(Context) CONTEXT_CALL(Context)
#elif defined(__aarch64__)
static const UCHAR HalpSystemCall[] = {0x01, 0x00, 0x00, 0xd4};
#define CONTEXT_CALL(Context) ((Context)->uc_mcontext.regs[8])
#define CONTEXT_RESULT(Context) ((Context)->uc_mcontext.regs[0])
#elif defined(__riscv) && __riscv_xlen == 64
static const UCHAR HalpSystemCall[] = {0x73, 0x00, 0x00, 0x00};
#define CONTEXT_CALL(Context) ((Context)->uc_mcontext.__gregs[REG_A0 + 7])
#define CONTEXT_RESULT(Context) ((Context)->uc_mcontext.__gregs[REG_A0])
#endif

typedef struct _HALP_RANGE {
    ULONG_PTR First;
    ULONG_PTR End;
} HALP_RANGE;

static HALP_RANGE HalpLibraryCode[MOST_RANGES];
static ULONG HalpLibraryRanges;
static PCSTR HalpOwnObject; /* the loader's name for what this code is in; NULL: it is in the program itself */
HALP_THREAD_LOCAL ULONG HalpRetries;
HALP_THREAD_LOCAL int HalpRetryTimer; /* one more than the host's number; 0: none */

/* An address in each of the objects, or 0. */
typedef struct _HALP_LANDMARKS {
    ULONG_PTR Address[3];
} HALP_LANDMARKS;

static BOOLEAN HalpContains(const struct dl_phdr_info *Object, ULONG_PTR Address)
{
    for (ULONG Index = 0; Index < Object->dlpi_phnum; Index++) {
        const ElfW(Phdr) *Segment = &Object->dlpi_phdr[Index];
        ULONG_PTR Begin = Object->dlpi_addr + Segment->p_vaddr;
        if (Segment->p_type == PT_LOAD && Address >= Begin && Address - Begin < Segment->p_memsz) {
            return TRUE;
        }
    }
    return FALSE;
}

static VOID HalpAddCode(const struct dl_phdr_info *Object)
{
    for (ULONG Index = 0; Index < Object->dlpi_phnum && HalpLibraryRanges < MOST_RANGES; Index++) {
        const ElfW(Phdr) *Segment = &Object->dlpi_phdr[Index];
        if (Segment->p_type == PT_LOAD && (Segment->p_flags & PF_X) != 0) {
            ULONG_PTR Begin = Object->dlpi_addr + Segment->p_vaddr;
            HalpLibraryCode[HalpLibraryRanges++] = (HALP_RANGE){.First = Begin, .End = Begin + Segment->p_memsz};
        }
    }
}

/* The program itself has no name. */
static int HalpLookAtObject(struct dl_phdr_info *Object, size_t Size, VOID *Context)
{
    const HALP_LANDMARKS *Landmarks = Context;
    (VOID)Size;
    if (Object->dlpi_name[0] == '\0') {
        return 0;
    }
    if (HalpContains(Object, (ULONG_PTR)HalpLookAtObject)) {
        HalpOwnObject = Object->dlpi_name;
        return 0;
    }
    for (ULONG Index = 0; Index < ARRAYSIZE(Landmarks->Address); Index++) {
        if (Landmarks->Address[Index] != 0 && HalpContains(Object, Landmarks->Address[Index])) {
            HalpAddCode(Object);
            break;
        }
    }
    return 0;
}

VOID HalpInitializeLibrary(VOID)
{
    HALP_LANDMARKS Landmarks = {{
        (ULONG_PTR)dlsym(RTLD_DEFAULT, "malloc"),
        (ULONG_PTR)dlsym(RTLD_DEFAULT, "sysconf"), /* of the C library, whoever provides malloc */
        (ULONG_PTR)getauxval(AT_BASE),             /* the loader */
    }};
    dl_iterate_phdr(HalpLookAtObject, &Landmarks);
}

/*
 * Threads, handlers of signals and the destructor of a thread-specific key run here until the process ends, whoever
 * unloads what this code is in. The shared library is linked as one that stays; a plugin with a copy of the library in
 * it is made to stay. Weak: a program that is linked with the C library statically loads nothing, and should not need
 * the loader for this.
 */
extern __typeof__(dlopen) dlopen __attribute__((weak));

VOID HalpStayLoaded(VOID)
{
    HALP_HOST_CALLS;
    if (HalpOwnObject != NULL && dlopen != NULL && dlopen(HalpOwnObject, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        HalPrint("interlock: %s must not be unloaded, and the loader does not keep it\n", HalpOwnObject);
    }
}

static const HALP_RANGE *HalpFindCode(ULONG_PTR Instruction)
{
    for (ULONG Index = 0; Index < HalpLibraryRanges; Index++) {
        if (Instruction >= HalpLibraryCode[Index].First && Instruction < HalpLibraryCode[Index].End) {
            return &HalpLibraryCode[Index];
        }
    }
    return NULL;
}

static BOOLEAN HalpIsCallForMemory(ULONG_PTR Number)
{
    return Number == SYS_mmap || Number == SYS_munmap || Number == SYS_mremap || Number == SYS_mprotect ||
           Number == SYS_madvise || Number == SYS_brk;
}

static BOOLEAN HalpIsSystemCallAt(const HALP_RANGE *Code, ULONG_PTR Instruction)
{
    return Instruction >= Code->First && Code->End - Instruction >= sizeof(HalpSystemCall) &&
           memcmp((const VOID *)Instruction, HalpSystemCall, sizeof(HalpSystemCall)) == 0;
}

/* The host has gone back to the instruction, to make the call again, or has left the call with EINTR. */
static BOOLEAN HalpIsWaitingCall(const HALP_RANGE *Code, const ucontext_t *Context)
{
    ULONG_PTR Instruction = (ULONG_PTR)HALP_CONTEXT_INSTRUCTION(Context);
    if (HalpIsSystemCallAt(Code, Instruction)) {
        return !HalpIsCallForMemory((ULONG_PTR)CONTEXT_CALL(Context));
    }
    return HalpIsSystemCallAt(Code, Instruction - sizeof(HalpSystemCall)) &&
           (LONG_PTR)CONTEXT_RESULT(Context) == -EINTR;
}

VOID HalpCancelInterruptLater(VOID)
{
    if (HalpRetryTimer != 0) {
        HalpCall(SYS_timer_delete, HalpRetryTimer - 1);
        HalpRetryTimer = 0;
    }
}

BOOLEAN HalpIsInLibrary(const VOID *Context)
{
    const HALP_RANGE *Code = HalpFindCode((ULONG_PTR)HALP_CONTEXT_INSTRUCTION((const ucontext_t *)Context));
    BOOLEAN Inside = Code != NULL && !HalpIsWaitingCall(Code, Context);
    HalpCancelInterruptLater();
    if (!Inside) {
        HalpRetries = 0;
    }
    return Inside;
}

/* The host's own structure, and below its calls: the C library's functions are not for handlers of signals. */
typedef struct _HALP_SIGNAL_EVENT {
    union sigval Value;
    int Signal;
    int Notify;
    int ThreadId;
    int Unused[11];
} HALP_SIGNAL_EVENT;

static BOOLEAN HalpStartRetryTimer(int Signal, PVOID Value)
{
    HALP_SIGNAL_EVENT Event = {
        .Value.sival_ptr = Value, .Signal = Signal, .Notify = SIGEV_THREAD_ID, .ThreadId = (int)HalCurrentThreadId()};
    struct itimerspec When = {.it_value.tv_nsec = RETRY_AFTER};
    int Timer;
    C_ASSERT(sizeof(Event) == sizeof(struct sigevent));
    if (HalpCall(SYS_timer_create, CLOCK_MONOTONIC, &Event, &Timer) != 0) {
        return FALSE;
    }
    HalpRetryTimer = Timer + 1;
    if (HalpCall(SYS_timer_settime, Timer, 0, &When, NULL) != 0) {
        HalpCancelInterruptLater();
        return FALSE;
    }
    return TRUE;
}

BOOLEAN HalpInterruptLater(int Signal, PVOID Value)
{
    if (HalpRetries < MOST_RETRIES && HalpStartRetryTimer(Signal, Value)) {
        HalpRetries += 1;
        return TRUE;
    }
    HalpRetries = 0;
    return FALSE;
}

/* The timer has stayed with the parent. */
VOID HalpForkChildLibrary(VOID)
{
    HalpRetryTimer = 0;
}
