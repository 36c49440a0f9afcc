#!/usr/bin/env python3
"""No file of the library calls a cancellation point of POSIX, except where cancellation is off."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from layering import code_only
from tap import Tap

# POSIX.1-2017, 2.9.5.2: the functions that shall be cancellation points, then those that may be.
SHALL = """accept aio_suspend clock_nanosleep close connect creat fcntl fdatasync fsync getmsg getpmsg lockf mq_receive mq_send
mq_timedreceive mq_timedsend msgrcv msgsnd msync nanosleep open openat pause poll pread pselect pthread_cond_timedwait
pthread_cond_wait pthread_join pthread_testcancel putmsg putpmsg pwrite read readv recv recvfrom recvmsg select
sem_timedwait sem_wait send sendmsg sendto sigpause sigsuspend sigtimedwait sigwait sigwaitinfo sleep tcdrain usleep wait
waitid waitpid write writev""".split()
MAY = """access asctime_r catclose catgets catopen chmod chown closedir closelog ctermid ctime_r dlclose dlopen dprintf
endgrent endhostent endnetent endprotoent endpwent endservent endutxent faccessat fchmod fchmodat fchown fchownat fclose
fflush fgetc fgetpos fgets fgetwc fgetws fmtmsg fopen fpathconf fprintf fputc fputs fputwc fputws fread freopen fscanf
fseek fseeko fsetpos fstat fstatat ftell ftello futimens fwprintf fwrite fwscanf getaddrinfo getc getchar getcwd getdate
getdelim getgrent getgrgid_r getgrnam_r gethostent gethostid gethostname getline getlogin_r getnameinfo getopt getpwent
getpwnam_r getpwuid_r gets getutxent getwc getwchar glob iconv_close iconv_open ioctl link linkat lio_listio localtime
localtime_r lseek lstat mkdir mkdirat mkdtemp mkfifo mkfifoat mknod mknodat mkstemp mktime opendir openlog pathconf pclose
perror popen posix_fadvise posix_fallocate posix_madvise posix_openpt posix_spawn posix_spawnp printf psiginfo psignal
pthread_rwlock_rdlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_wrlock putc putchar puts putwc
putwchar readdir_r readlink readlinkat remove rename renameat rewind rewinddir scandir scanf seekdir semop setvbuf
sigset stat strerror_r strftime symlink symlinkat sync syslog tmpfile ttyname_r tzset ungetc ungetwc unlink unlinkat
utimensat utimes vdprintf vfprintf vfwprintf vprintf vwprintf wcsftime wordexp wprintf wscanf""".split()
# Functions of Linux that are cancellation points likewise.
LINUX = """accept4 epoll_pwait epoll_pwait2 epoll_wait eventfd_read eventfd_write fallocate flock ftruncate getrandom
open_by_handle_at ppoll preadv preadv2 process_vm_readv pwritev pwritev2 recvmmsg sendmmsg splice sync_file_range tee
vmsplice wait3 wait4 pthread_clockjoin_np pthread_timedjoin_np sem_clockwait pthread_cond_clockwait sigtimedwait
pthread_barrier_wait copy_file_range sendfile name_to_handle_at""".split()
POINTS = set(SHALL + MAY + LINUX)

# Calls that are allowed, by file, with the reason.
ALLOWED = {
    "hal/interrupt.c": ({"dlopen"}, "within HALP_HOST_CALLS"),
    "hal/module.c": ({"dlopen", "dlclose"}, "within HALP_HOST_CALLS"),
    "hal/process.c": ({"access", "fflush", "localtime_r", "posix_spawnp", "readlink", "tzset"}, "within HALP_HOST_CALLS"),
    "hal/clock.c": ({"localtime_r", "tzset"}, "within HALP_HOST_CALLS"),
    "hal/sharedfile.c": ({"access", "close", "fchmod", "fstat", "linkat", "lstat", "open", "poll", "stat", "unlink"},
                         "within HALP_HOST_CALLS"),
    "hal/console.c": ({"fstat", "poll", "read", "sigtimedwait"}, "within HALP_HOST_CALLS"),
    "hal/tracefile.c": ({"open", "read", "write", "close", "fchmod", "fcntl", "flock", "fstat", "getcwd", "lstat", "poll",
                         "posix_fallocate", "readlink", "rename", "sigtimedwait", "unlink"},
                        "within HALP_HOST_CALLS"),
    "win32/crt.c": ({"fflush", "fputs", "fscanf", "fwrite", "putc", "vfprintf"},
                    "printf, fscanf_s, _cputs and _putch use a stream of the C library: what the caller asked for"),
}


def canonical(symbol):
    """The name in POSIX: without version, 64-bit suffix and the prefixes of the C library."""
    name = symbol.split("@")[0]
    name = re.sub(r"^(__isoc\d+_|__interceptor_|__libc_|__)", "", name)
    return name if name in POINTS else re.sub(r"(64)?(_chk|_2|_time64)?$", "", name)


def source_of(member):
    """The member hal_clock.c.o is of src/hal/clock.c."""
    return Path(member).name.removesuffix(".o").replace("_", "/", 1)


def calls(archive):
    """{source: cancellation points that it calls} of an archive, or of an object file."""
    result = {}
    output = subprocess.run(["nm", "-A", "-u", archive], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        match = re.match(r"(.*):\s+[Uuw] (\S+)$", line)
        if match and canonical(match[2]) in POINTS:
            result.setdefault(source_of(match[1].split(":")[-1]), set()).add(canonical(match[2]))
    return result


def violations(found, allowed):
    for source, points in sorted(found.items()):
        for point in sorted(points - allowed.get(source, (set(), ""))[0]):
            yield f"src/{source} calls {point}, which is a cancellation point"


def needless(found, allowed):
    for source, (points, _) in sorted(allowed.items()):
        for point in sorted(points - found.get(source, set())):
            yield f"src/{source} does not call {point} any more"


FUNCTION = re.compile(r"^(static )?(?:[A-Za-z_]\w*[ *]+)+([A-Za-z_]\w*)\([^;{}]*\)\n\{\n(.*?)^\}", re.S | re.M)
SCOPE = "HALP_HOST_CALLS;"


def without_scope(text, points):
    """Functions that call one of the points, by themselves or by static functions, and have cancellation on."""
    found = {name: (bool(static), body) for static, name, body in FUNCTION.findall(code_only(text))}
    call = re.compile(rf"(?<![\w.>])(?:{'|'.join(sorted(points))})\s*\(")
    calling = [name for name, (_, body) in found.items() if call.search(body)]
    if not calling:
        yield "no function calls what the list allows"
    seen = set()
    while calling:
        name = calling.pop()
        if name in seen or SCOPE in found[name][1]:
            continue
        seen.add(name)
        callers = [other for other, (_, body) in found.items() if other != name and re.search(rf"\b{name}\b", body)]
        calling += callers
        if not found[name][0] or not callers:
            yield f"{name} has no HALP_HOST_CALLS"


def without_scopes(root):
    for source, (points, reason) in sorted(ALLOWED.items()):
        if "HALP_HOST_CALLS" in reason:
            text = (root / "src" / source).read_text("utf-8")
            yield from (f"src/{source}: {problem}" for problem in without_scope(text, points))


PLANTED = """static int Inner(int File)
{
    return close(File);
}

int Careful(int File)
{
    HALP_HOST_CALLS;
    return Inner(File);
}
"""
CARELESS = """
int Careless(int File)
{
    return Inner(File);
}
"""


def self_test(tap, compiler):
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "hal_planted.c"
        source.write_text("#include <time.h>\n#include <poll.h>\n#include <unistd.h>\n#include <fcntl.h>\n"
                          "int f(void) { struct timespec t = {0, 1}; return nanosleep(&t, 0) + poll(0, 0, 0)"
                          " + open(\"/\", O_RDONLY) + getpid(); }\n", encoding="utf-8")
        subprocess.run([*compiler, "-D_FILE_OFFSET_BITS=64", "-c", source, "-o", f"{source}.o"], check=True)
        found = calls(f"{source}.o")
        tap.case("self-test: cancellation points are found by their names and by those of the C library",
                 [] if found == {"hal/planted.c": {"nanosleep", "poll", "open"}} else [found])
        tap.case("self-test: what is not allowed is reported",
                 [] if len(list(violations(found, {"hal/planted.c": ({"open"}, "")}))) == 2 else ["it was not"])
        tap.case("self-test: an exception that nobody needs is reported",
                 [] if list(needless(found, {"hal/planted.c": ({"read"}, "")})) else ["it was not"])
    tap.case("self-test: a scope of the caller counts", without_scope(PLANTED, {"close"}))
    tap.case("self-test: a caller without a scope is reported",
             [] if list(without_scope(PLANTED + CARELESS, {"close"})) == ["Careless has no HALP_HOST_CALLS"] else ["it was not"])
    names = {"__read_chk": "read", "pread64": "pread", "open64": "open", "__open64_2": "open", "fstat64": "fstat",
             "fcntl64": "fcntl", "__isoc99_fscanf": "fscanf", "epoll_wait": "epoll_wait"}
    tap.case("self-test: variants of names",
             [f"{name}: {canonical(name)}" for name, wanted in names.items() if canonical(name) != wanted])


def main():
    tap = Tap()
    root, archive, compiler = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    self_test(tap, compiler)
    found = calls(archive)
    tap.case("no file calls a cancellation point", violations(found, ALLOWED))
    tap.case("every exception is needed", needless(found, ALLOWED))
    tap.case("every exception has cancellation off", without_scopes(root))
    tap.done()


main()
