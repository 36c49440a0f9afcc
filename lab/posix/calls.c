/*
 * calls.c: system calls that do not come through a function of lab/posix: those inside the C library (popen, fgets,
 * eventfd_read) and those of inline assembly. While a schedule runs, the kernel hands every system call back as SIGSYS
 * (prctl PR_SET_SYSCALL_USER_DISPATCH: Linux 5.11, x86-64). One that cannot block is then made, after the pages that it may
 * write were made writable: the kernel returns EFAULT where the program would fault (memory.c). Every other one ends the run
 * with its name and place. Descriptors that a schedule opens are closed after it.
 * Without the dispatch only the functions of lab/posix are watched.
 */
#include "calls.h"

#include "posix.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "host.h"

#define PAGE           4096ul
#define MEMORY_DEVICES 1 /* the major number of /dev/null, /dev/zero, /dev/urandom */

/* Without a model: they block, make a thread or a process, or send a signal later. */
#define NAMED(name) {SYS_##name, #name}

static const struct {
    long number;
    const char *name;
} refused[] = {
    NAMED(clone), NAMED(wait4), NAMED(waitid), NAMED(ppoll), NAMED(pselect6), NAMED(epoll_pwait), NAMED(accept), NAMED(accept4),
    NAMED(recvfrom), NAMED(recvmsg), NAMED(recvmmsg), NAMED(sendto), NAMED(sendmsg), NAMED(sendmmsg), NAMED(connect),
    NAMED(rt_sigsuspend), NAMED(rt_sigtimedwait), NAMED(msgrcv), NAMED(msgsnd), NAMED(semop), NAMED(semtimedop), NAMED(flock),
    NAMED(mq_timedreceive), NAMED(mq_timedsend), NAMED(io_getevents), NAMED(sendfile), NAMED(splice), NAMED(tee),
    NAMED(vmsplice), NAMED(execve), NAMED(execveat), NAMED(unshare), NAMED(ptrace), NAMED(timer_create), NAMED(setitimer),
    NAMED(nanosleep), NAMED(clock_nanosleep), NAMED(futex),
#ifdef SYS_clone3
    NAMED(clone3),
#endif
#ifdef SYS_futex_waitv
    NAMED(futex_waitv),
#endif
#ifdef SYS_io_uring_enter
    NAMED(io_uring_setup), NAMED(io_uring_enter),
#endif
#ifdef SYS_fork
    NAMED(fork), NAMED(vfork), NAMED(poll), NAMED(select), NAMED(epoll_wait), NAMED(pause), NAMED(alarm),
#endif
};

/* What the report calls it. */
const char *lab_calls_name(long number)
{
    switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
        return "read of something that is not a regular file";
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
        return "write to something that is not a regular file";
    default:
        break;
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i].number == number)
            return refused[i].name;
    snprintf(lab->calls.name, sizeof(lab->calls.name), "system call %ld", number);
    return lab->calls.name;
}

/* Regular files and the devices of memory never block. A descriptor that is not open is an error. */
bool lab_calls_never_block(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ||
           (S_ISCHR(status.st_mode) && major(status.st_rdev) == MEMORY_DEVICES);
}

/* Memory that was not written yet is protected, also against the kernel. */
void lab_calls_touch(const void *buffer, size_t size)
{
    uintptr_t end = (uintptr_t)buffer + size;

    for (uintptr_t page = (uintptr_t)buffer & ~(PAGE - 1); lab != NULL && size != 0 && page < end; page += PAGE)
        lab_memory_take_fault(page);
}

void lab_calls_touch_parts(const struct iovec *parts, long count)
{
    for (long i = 0; i < count && i < IOV_MAX; i++)
        lab_calls_touch(parts[i].iov_base, parts[i].iov_len);
}

#if defined(__x86_64__)

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define RESTORER  0x04000000ul /* SA_RESTORER */
#define RED_ZONE  128
#define IS_TRACED 1

/* Calls that cannot block. The first open descriptors. */
static const short opening[] = {
    SYS_open, SYS_openat, SYS_creat, SYS_pipe, SYS_pipe2, SYS_socket, SYS_socketpair, SYS_eventfd, SYS_eventfd2,
    SYS_epoll_create, SYS_epoll_create1, SYS_dup, SYS_dup2, SYS_dup3, SYS_memfd_create, SYS_timerfd_create, SYS_signalfd,
    SYS_signalfd4, SYS_inotify_init, SYS_inotify_init1, SYS_fcntl,
};
static const short harmless[] = {
    SYS_access, SYS_arch_prctl, SYS_bind, SYS_brk, SYS_chdir, SYS_chmod, SYS_chown, SYS_clock_getres, SYS_clock_gettime,
    SYS_close, SYS_epoll_ctl, SYS_faccessat, SYS_fadvise64, SYS_fallocate, SYS_fchdir, SYS_fchmod, SYS_fchmodat, SYS_fchown,
    SYS_fdatasync, SYS_fstat, SYS_fstatfs, SYS_fsync, SYS_ftruncate, SYS_getcpu, SYS_getcwd, SYS_getegid, SYS_geteuid,
    SYS_getgid, SYS_getgroups, SYS_getitimer, SYS_getpeername, SYS_getpgid, SYS_getpgrp, SYS_getpid, SYS_getppid,
    SYS_getpriority, SYS_getresgid, SYS_getresuid, SYS_getrlimit, SYS_getrusage, SYS_getsid, SYS_getsockname, SYS_getsockopt,
    SYS_gettid, SYS_gettimeofday, SYS_getuid, SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_ioctl, SYS_link, SYS_linkat,
    SYS_listen, SYS_lseek, SYS_lstat, SYS_madvise, SYS_mincore, SYS_mkdir, SYS_mkdirat, SYS_mlock, SYS_mlockall, SYS_mmap,
    SYS_mprotect, SYS_mremap, SYS_msync, SYS_munlock, SYS_munlockall, SYS_munmap, SYS_newfstatat, SYS_personality, SYS_prctl,
    SYS_prlimit64, SYS_readlink, SYS_readlinkat, SYS_rename, SYS_renameat, SYS_renameat2, SYS_rmdir, SYS_rt_sigaction,
    SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_getaffinity,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_setaffinity, SYS_sched_setparam, SYS_sched_setscheduler,
    SYS_set_robust_list, SYS_setpriority, SYS_setrlimit, SYS_setsockopt, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_shmget,
    SYS_shutdown, SYS_sigaltstack, SYS_stat, SYS_statfs, SYS_symlink, SYS_symlinkat, SYS_sysinfo, SYS_time, SYS_timerfd_gettime,
    SYS_timerfd_settime, SYS_times, SYS_truncate, SYS_umask, SYS_uname, SYS_unlink, SYS_unlinkat, SYS_utimensat,
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
};

static bool is_among(long number, const short *calls, size_t count)
{
    while (count != 0)
        if (calls[--count] == number)
            return true;
    return false;
}

static bool opens(long number)
{
    return is_among(number, opening, sizeof(opening) / sizeof(opening[0]));
}

bool lab_calls_may_make(long number, const long a[6])
{
    switch (number) {
    case SYS_read:
    case SYS_pread64:
        lab_calls_touch((void *)a[1], (size_t)a[2]);
        return lab_calls_never_block((int)a[0]);
    case SYS_readv:
    case SYS_preadv:
        lab_calls_touch_parts((const struct iovec *)a[1], a[2]);
        return lab_calls_never_block((int)a[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev: /* what it prints goes where the explorer has put it */
        return a[0] == STDOUT_FILENO || a[0] == STDERR_FILENO || lab_calls_never_block((int)a[0]);
    case SYS_getdents64:
        lab_calls_touch((void *)a[1], (size_t)a[2]);
        return true;
    case SYS_getrandom:
        lab_calls_touch((void *)a[0], (size_t)a[1]);
        return true;
    case SYS_kill: /* a handler of the program runs at once */
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
        return a[0] == lab_host_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    case SYS_futex: /* of the C library's own locks */
        return (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE;
    default:
        break;
    }
    for (int i = 0; i < 6; i++) /* of structures the size is not known */
        lab_calls_touch((void *)a[i], PAGE);
    return opens(number) || is_among(number, harmless, sizeof(harmless) / sizeof(harmless[0]));
}

static void note_descriptor(long descriptor)
{
    if (descriptor > STDERR_FILENO && descriptor < LAB_DESCRIPTORS)
        lab->calls.opened[descriptor / 64] |= 1ull << descriptor % 64;
    lab->calls.has_opened = true;
}

long lab_calls_make(long number, const long a[6])
{
    long result = lab_host_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const int *pair = (const int *)(number == SYS_socketpair ? a[3] : a[0]);

    if (result < 0 || !lab_sched_active() || !opens(number))
        return result;
    if (number == SYS_pipe || number == SYS_pipe2 || number == SYS_socketpair) {
        note_descriptor(pair[0]);
        note_descriptor(pair[1]);
    } else if (number != SYS_fcntl || a[1] == F_DUPFD || a[1] == F_DUPFD_CLOEXEC) {
        note_descriptor(result);
    }
    return result;
}

/*
 * The only instructions whose system calls are always made.
 * lab_calls_restore: returns from a signal handler; the unwinder knows these bytes.
 * lab_calls_within: the call of the interrupted program, whose place is below the red zone.
 * lab_calls_return: a return from a signal handler of the program.
 */
__asm__(".pushsection .text\n"
        ".balign 16\n"
        "lab_calls_begin:\n"
        "lab_calls_restore: mov $15, %rax\n"
        "syscall\n"
        "lab_calls_within: syscall\n"
        "ret $128\n"
        "lab_calls_return: syscall\n"
        ".globl lab_host_call\n"
        ".type lab_host_call, @function\n"
        "lab_host_call:\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "mov %rdx, %rsi\n"
        "mov %rcx, %rdx\n"
        "mov %r8, %r10\n"
        "mov %r9, %r8\n"
        "mov 8(%rsp), %r9\n"
        "syscall\n"
        "ret\n"
        ".size lab_host_call, .-lab_host_call\n"
        "lab_calls_end:\n"
        ".popsection\n");

extern const char lab_calls_begin[], lab_calls_end[], lab_calls_within[], lab_calls_return[];
extern void lab_calls_restore(void);
extern const char __executable_start[], etext[];

/* A call that is refused: on the stack of its thread, as if the instruction had called this function. */

typedef struct search {
    uintptr_t callers[EVENT_CALLERS];
    int count;
    uintptr_t outside; /* in the function of a library that the program called; 0: none */
    bool began;
} search;

static bool is_in_program(uintptr_t pc)
{
    return pc - (uintptr_t)__executable_start < (uintptr_t)(etext - __executable_start);
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *argument)
{
    search *s = argument;
    uintptr_t pc = _Unwind_GetIP(context);
    bool is_own = is_in_program(pc);

    if (s->began && is_own)
        s->callers[s->count++] = pc;
    else if (s->began && s->count == 0)
        s->outside = pc;
    s->began = true; /* the first frame is that of refuse */
    return s->count == EVENT_CALLERS ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

/* Without what the C library puts before names of its own. */
static const char *public_name(const char *name)
{
    name = strncmp(name, "__libc_", 7) == 0 ? name + 7 : name;
    return name + strspn(name, "_");
}

__attribute__((force_align_arg_pointer, noreturn, used)) static void refuse(void)
{
    search s = {.count = 0};
    const char *name = lab_calls_name(lab->calls.number);
    Dl_info symbol = {0};

    lab->quiet = true; /* the unwinder's own locks are not steps */
    _Unwind_Backtrace(look_at_frame, &s);
    const char *function = s.outside != 0 && dladdr((void *)s.outside, &symbol) != 0 && symbol.dli_sname != NULL
                               ? public_name(symbol.dli_sname)
                               : name;
    lab->quiet = false;
    lab->known_callers = s.callers;
    bool is_same = strcmp(function, name) == 0;
    lab_sched_fail(VERDICT_UNSUPPORTED, s.count != 0 ? s.callers[0] : lab->calls.place, "%s%s%s%s: the explorer has no model of it",
                   function, is_same ? "" : " (", is_same ? "" : name, is_same ? "" : ")");
    __builtin_unreachable();
}

__attribute__((force_align_arg_pointer, noreturn, used)) static void end_program(int status)
{
    _exit(status);
}

static bool is_on_signal_stack(uintptr_t sp)
{
    return sp - (uintptr_t)lab->calls.stack < lab->calls.stack_size;
}

/* rt_sigprocmask. The kernel kills a process that blocks SIGSYS and needs it, and so for faults. */
static long change_mask(ucontext_t *context, const long a[6])
{
    uint64_t *mask = (uint64_t *)(void *)&context->uc_sigmask; /* the kernel's has no more */
    const uint64_t *set = (const uint64_t *)a[1], needed = 1ull << (SIGSYS - 1) | 1ull << (SIGSEGV - 1), old = *mask;

    if (a[3] != sizeof(*mask) || (set != NULL && a[0] != SIG_BLOCK && a[0] != SIG_UNBLOCK && a[0] != SIG_SETMASK))
        return -EINVAL;
    if (set != NULL)
        *mask = (a[0] == SIG_BLOCK ? old | *set : a[0] == SIG_UNBLOCK ? old & ~*set : *set) & ~needed;
    if (a[2] != 0)
        *(uint64_t *)a[2] = old;
    lab->calls.has_masked = true;
    return 0;
}

/* The kernel has made nothing: the registers are those of the call, and its place is after the instruction. */
static void on_call(int signal, siginfo_t *information, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const long a[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                       registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
    long number = information->si_syscall;
    uintptr_t place = (uintptr_t)registers[REG_RIP], target = (uintptr_t)lab_calls_within;
    uintptr_t sp = (uintptr_t)registers[REG_RSP];
    bool is_explored = lab_sched_active();

    (void)signal;
    registers[REG_RAX] = number;
    if (number == SYS_rt_sigreturn) {
        registers[REG_RIP] = (greg_t)(uintptr_t)lab_calls_return;
        return;
    }
    if (is_explored && number == SYS_exit_group) {
        target = (uintptr_t)end_program;
    } else if (is_explored && !lab_calls_may_make(number, a)) {
        lab->calls.number = number;
        lab->calls.place = place;
        target = (uintptr_t)refuse;
        if ((number == SYS_clone || number == SYS_clone3) && !is_in_program(place)) {
            place = *(uintptr_t *)sp; /* the unwinder stops at the C library's function, which has no frame */
            sp += sizeof(place);
        }
    } else if (number == SYS_rt_sigprocmask) {
        registers[REG_RAX] = change_mask(context, a);
        return;
    } else if (opens(number) || is_on_signal_stack(sp)) {
        registers[REG_RAX] = lab_calls_make(number, a);
        return;
    } else {
        sp -= RED_ZONE;
    }
    sp -= sizeof(place);
    *(uintptr_t *)sp = place;
    registers[REG_RSP] = (greg_t)sp;
    registers[REG_RIP] = (greg_t)target;
}

void lab_calls_handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    const struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {handler, (unsigned long)flags | RESTORER, lab_calls_restore, 0};

    lab_host_call(SYS_rt_sigaction, number, (long)&action, 0, sizeof(action.mask), 0, 0);
}

void lab_calls_start(void *stack, size_t size)
{
    lab->calls.stack = stack;
    lab->calls.stack_size = size;
    lab_calls_handle(SIGSYS, on_call, SA_SIGINFO | SA_ONSTACK | SA_NODEFER);
    prctl(PR_SET_SYSCALL_USER_DISPATCH, IS_TRACED, (long)lab_calls_begin, (long)(lab_calls_end - lab_calls_begin),
          &lab->calls.is_watching);
}

void lab_calls_watch(bool watches)
{
    const uint64_t none = 0;

    lab->calls.is_watching = watches;
    if (!watches && lab->calls.has_masked)
        lab_host_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none), 0, 0);
    lab->calls.has_masked = watches && lab->calls.has_masked;
    if (watches || !lab->calls.has_opened)
        return;
    lab->calls.has_opened = false;
    for (long i = 0; i < LAB_DESCRIPTORS; i++)
        if (lab->calls.opened[i / 64] >> i % 64 & 1)
            lab_host_call(SYS_close, i, 0, 0, 0, 0, 0);
    memset(lab->calls.opened, 0, sizeof(lab->calls.opened));
}

#else

bool lab_calls_may_make(long number, const long a[6])
{
    (void)a;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i].number == number)
            return false;
    return true;
}

long lab_calls_make(long number, const long a[6])
{
    return lab_host_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void lab_calls_handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags};

    sigaction(number, &action, NULL);
}

void lab_calls_start(void *stack, size_t size)
{
    (void)stack;
    (void)size;
}

void lab_calls_watch(bool watches)
{
    (void)watches;
}

#endif
