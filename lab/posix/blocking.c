/*
 * blocking.c: functions that block in the kernel, and those that make threads and processes. The explorer has no model of
 * them: in a schedule they end the run with their name and place. Elsewhere they are the host's.
 */
#include "calls.h"
#include "posix.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#pragma weak _Fork

static void refuse(const char *call, uintptr_t pc)
{
    if (lab_sched_active())
        lab_posix_unsupported(call, pc);
}

ssize_t read(int descriptor, void *buffer, size_t size)
{
    if (lab_sched_active() && !lab_calls_never_block(descriptor))
        lab_posix_unsupported(lab_calls_name(SYS_read), CALLER);
    lab_calls_touch(buffer, size);
    if (lab_sched_active() && size != 0)
        lab_tsan_plain((uintptr_t)buffer, size, true, CALLER);
    return lab_host_result(lab_host_call(SYS_read, descriptor, (long)buffer, (long)size, 0, 0, 0));
}

ssize_t readv(int descriptor, const struct iovec *parts, int count)
{
    if (lab_sched_active() && !lab_calls_never_block(descriptor))
        lab_posix_unsupported(lab_calls_name(SYS_readv), CALLER);
    lab_calls_touch_parts(parts, count);
    return lab_host_result(lab_host_call(SYS_readv, descriptor, (long)parts, count, 0, 0, 0));
}

/* Without descriptors these two sleep. */

int poll(struct pollfd *descriptors, nfds_t count, int milliseconds)
{
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};

    if (lab_sched_active() && count == 0 && milliseconds >= 0)
        return nanosleep(&time, NULL);
    if (milliseconds != 0)
        refuse("poll", CALLER);
    return (int)lab_host_result(lab_host_call(SYS_ppoll, (long)descriptors, (long)count,
                                              (long)(milliseconds < 0 ? NULL : &time), 0, 0, 0));
}

int select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *time)
{
    struct timespec left = {time != NULL ? time->tv_sec : 0, time != NULL ? time->tv_usec * 1000 : 0};

    if (lab_sched_active() && count == 0 && time != NULL)
        return nanosleep(&left, NULL);
    if (time == NULL || time->tv_sec != 0 || time->tv_usec != 0)
        refuse("select", CALLER);
    return (int)lab_host_result(lab_host_call(SYS_pselect6, count, (long)in, (long)out, (long)other,
                                              (long)(time != NULL ? &left : NULL), 0));
}

int pselect(int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *time, const sigset_t *mask)
{
    struct timespec left = {time != NULL ? time->tv_sec : 0, time != NULL ? time->tv_nsec : 0};
    struct {
        const sigset_t *mask;
        size_t size;
    } signals = {mask, 8};

    if (lab_sched_active() && count == 0 && time != NULL)
        return nanosleep(&left, NULL);
    if (time == NULL || time->tv_sec != 0 || time->tv_nsec != 0)
        refuse("pselect", CALLER);
    return (int)lab_host_result(lab_host_call(SYS_pselect6, count, (long)in, (long)out, (long)other,
                                              (long)(time != NULL ? &left : NULL), (long)&signals));
}

/* Locks of a part of a file: F_LOCK and F_SETLKW wait for another process. */

static int lock_file(int descriptor, int command, off_t size, uintptr_t pc)
{
    struct flock lock = {.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK, .l_whence = SEEK_CUR, .l_len = size};

    if (command == F_LOCK)
        refuse("lockf", pc);
    if (command != F_TEST)
        return (int)lab_host_result(
            lab_host_call(SYS_fcntl, descriptor, command == F_LOCK ? F_SETLKW : F_SETLK, (long)&lock, 0, 0, 0));
    if (lab_host_result(lab_host_call(SYS_fcntl, descriptor, F_GETLK, (long)&lock, 0, 0, 0)) != 0)
        return -1;
    if (lock.l_type == F_UNLCK)
        return 0;
    errno = EACCES;
    return -1;
}

static int control_file(int descriptor, int command, long argument, uintptr_t pc)
{
    if (command == F_SETLKW || command == F_OFD_SETLKW)
        refuse("fcntl with F_SETLKW", pc);
    return (int)lab_host_result(lab_host_call(SYS_fcntl, descriptor, command, argument, 0, 0, 0));
}

/* Both names: a header may rename one to the other, for files of any size. */
#define CONTROLS(function, symbol)                                                                                     \
    int function(int descriptor, int command, ...) __asm__(symbol);                                                    \
    int function(int descriptor, int command, ...)                                                                     \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        long argument = va_arg(arguments, long);                                                                       \
        va_end(arguments);                                                                                             \
        return control_file(descriptor, command, argument, CALLER);                                                    \
    }
#define LOCKS(function, symbol)                                                                                        \
    int function(int descriptor, int command, off_t size) __asm__(symbol);                                             \
    int function(int descriptor, int command, off_t size)                                                              \
    {                                                                                                                  \
        return lock_file(descriptor, command, size, CALLER);                                                           \
    }

CONTROLS(control, "fcntl")
CONTROLS(control_large, "fcntl64")
LOCKS(lock, "lockf")
LOCKS(lock_large, "lockf64")

#define BLOCKS(type, name, number, parameters, ...)                                                                    \
    type name parameters                                                                                               \
    {                                                                                                                  \
        refuse(#name, CALLER);                                                                                         \
        return (type)lab_host_result(lab_host_call(number, __VA_ARGS__));                                              \
    }

BLOCKS(int, ppoll, SYS_ppoll, (struct pollfd * a, nfds_t b, const struct timespec *c, const sigset_t *d), (long)a, (long)b,
       (long)c, (long)d, 8, 0)
BLOCKS(int, epoll_wait, SYS_epoll_pwait, (int a, struct epoll_event *b, int c, int d), a, (long)b, c, d, 0, 8)
BLOCKS(int, epoll_pwait, SYS_epoll_pwait, (int a, struct epoll_event *b, int c, int d, const sigset_t *e), a, (long)b, c,
       d, (long)e, 8)
BLOCKS(int, accept4, SYS_accept4, (int a, struct sockaddr *b, socklen_t *c, int d), a, (long)b, (long)c, d, 0, 0)
BLOCKS(int, accept, SYS_accept, (int a, struct sockaddr *b, socklen_t *c), a, (long)b, (long)c, 0, 0, 0)
BLOCKS(int, connect, SYS_connect, (int a, const struct sockaddr *b, socklen_t c), a, (long)b, (long)c, 0, 0, 0)
BLOCKS(ssize_t, recv, SYS_recvfrom, (int a, void *b, size_t c, int d), a, (long)b, (long)c, d, 0, 0)
BLOCKS(ssize_t, recvfrom, SYS_recvfrom, (int a, void *b, size_t c, int d, struct sockaddr *e, socklen_t *f), a, (long)b,
       (long)c, d, (long)e, (long)f)
BLOCKS(ssize_t, recvmsg, SYS_recvmsg, (int a, struct msghdr *b, int c), a, (long)b, c, 0, 0, 0)
BLOCKS(pid_t, waitpid, SYS_wait4, (pid_t a, int *b, int c), a, (long)b, c, 0, 0, 0)
BLOCKS(pid_t, wait, SYS_wait4, (int *a), -1, (long)a, 0, 0, 0, 0)
BLOCKS(pid_t, wait4, SYS_wait4, (pid_t a, int *b, int c, struct rusage *d), a, (long)b, c, (long)d, 0, 0)
BLOCKS(int, waitid, SYS_waitid, (idtype_t a, id_t b, siginfo_t *c, int d), (long)a, (long)b, (long)c, d, 0, 0)
BLOCKS(int, sigsuspend, SYS_rt_sigsuspend, (const sigset_t *a), (long)a, 8, 0, 0, 0, 0)
BLOCKS(int, sigtimedwait, SYS_rt_sigtimedwait, (const sigset_t *a, siginfo_t *b, const struct timespec *c), (long)a,
       (long)b, (long)c, 8, 0, 0)
BLOCKS(int, sigwaitinfo, SYS_rt_sigtimedwait, (const sigset_t *a, siginfo_t *b), (long)a, (long)b, 0, 8, 0, 0)
BLOCKS(ssize_t, msgrcv, SYS_msgrcv, (int a, void *b, size_t c, long d, int e), a, (long)b, (long)c, d, e, 0)
BLOCKS(int, semop, SYS_semop, (int a, struct sembuf *b, size_t c), a, (long)b, (long)c, 0, 0, 0)
BLOCKS(int, msgsnd, SYS_msgsnd, (int a, const void *b, size_t c, int d), a, (long)b, (long)c, d, 0, 0)
BLOCKS(int, semtimedop, SYS_semtimedop, (int a, struct sembuf *b, size_t c, const struct timespec *d), a, (long)b, (long)c,
       (long)d, 0, 0)
BLOCKS(ssize_t, mq_receive, SYS_mq_timedreceive, (mqd_t a, char *b, size_t c, unsigned *d), a, (long)b, (long)c, (long)d, 0,
       0)
BLOCKS(ssize_t, mq_timedreceive, SYS_mq_timedreceive,
       (mqd_t a, char *b, size_t c, unsigned *d, const struct timespec *e), a, (long)b, (long)c, (long)d, (long)e, 0)
BLOCKS(int, mq_send, SYS_mq_timedsend, (mqd_t a, const char *b, size_t c, unsigned d), a, (long)b, (long)c, (long)d, 0, 0)
BLOCKS(int, mq_timedsend, SYS_mq_timedsend, (mqd_t a, const char *b, size_t c, unsigned d, const struct timespec *e), a,
       (long)b, (long)c, (long)d, (long)e, 0)
BLOCKS(int, recvmmsg, SYS_recvmmsg, (int a, struct mmsghdr *b, unsigned c, int d, struct timespec *e), a, (long)b, (long)c, d,
       (long)e, 0)
BLOCKS(int, flock, SYS_flock, (int a, int b), a, b, 0, 0, 0, 0)
BLOCKS(int, setitimer, SYS_setitimer, (__itimer_which_t a, const struct itimerval *b, struct itimerval *c), (long)a,
       (long)b, (long)c, 0, 0, 0)

int sigwait(const sigset_t *set, int *signal)
{
    refuse("sigwait", CALLER);
    long result = lab_host_call(SYS_rt_sigtimedwait, (long)set, 0, 0, 8, 0, 0);
    if (result < 0)
        return (int)-result;
    *signal = (int)result;
    return 0;
}

int pause(void)
{
    refuse("pause", CALLER);
    return (int)lab_host_result(lab_host_call(SYS_ppoll, 0, 0, 0, 0, 0, 0));
}

unsigned alarm(unsigned seconds)
{
    struct itimerval time = {{0, 0}, {(time_t)seconds, 0}}, old = {{0, 0}, {0, 0}};

    refuse("alarm", CALLER);
    setitimer(ITIMER_REAL, &time, &old);
    return (unsigned)old.it_value.tv_sec;
}

pid_t fork(void)
{
    refuse("fork", CALLER);
    return _Fork != NULL ? _Fork() : (pid_t)lab_host_result(lab_host_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0));
}

pid_t vfork(void)
{
    refuse("vfork", CALLER);
    return fork();
}

int clone(int (*routine)(void *), void *stack, int flags, void *argument, ...)
{
    (void)routine;
    (void)stack;
    (void)flags;
    (void)argument;
    lab_posix_unsupported("clone", CALLER);
}
