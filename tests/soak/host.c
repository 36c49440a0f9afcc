/* host.c: descriptors as objects and objects as descriptors; processes; threads that a step creates and ends. */
#include "soak.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <interlock/io.h>

static void write_byte(int descriptor)
{
    ssize_t written;

    do
        written = write(descriptor, "x", 1);
    while (written < 0 && errno == EINTR);
    require(written == 1);
}

static void read_byte(int descriptor)
{
    ssize_t got;
    char byte;

    do
        got = read(descriptor, &byte, 1);
    while (got < 0 && errno == EINTR);
    require(got == 1);
}

static void use_descriptor(test_random *random)
{
    HANDLE readable, either[2];
    int ends[2];

    require(pipe2(ends, O_CLOEXEC) == 0);
    require(IoCreateDescriptorObject(&readable, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE) == 0);
    either[0] = readable;
    either[1] = CreateEventA(NULL, TRUE, FALSE, NULL);
    require(WaitForMultipleObjects(2, either, FALSE, random_below(random, 2)) == WAIT_TIMEOUT);
    write_byte(ends[1]);
    require(WaitForMultipleObjects(2, either, FALSE, INFINITE) == WAIT_OBJECT_0);
    require(WaitForSingleObject(readable, 0) == WAIT_OBJECT_0);
    read_byte(ends[0]);
    require(WaitForSingleObject(readable, 0) == WAIT_TIMEOUT);
    require(CloseHandle(readable) && CloseHandle(either[1]));
    close(ends[0]);
    close(ends[1]);
}

static bool is_readable(int descriptor, int milliseconds)
{
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    int ready;

    do
        ready = poll(&wanted, 1, milliseconds);
    while (ready < 0 && errno == EINTR);
    require(ready >= 0);
    return ready == 1;
}

static void use_export(void)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL), exported;
    int descriptor;

    require(event != NULL && IoExportObject(event, &exported, &descriptor) == STATUS_SUCCESS);
    require(!is_readable(descriptor, 0) && IoAcceptExport(exported) == STATUS_TIMEOUT);
    require(SetEvent(event));
    require(is_readable(descriptor, -1));
    require(IoAcceptExport(exported) == STATUS_SUCCESS);
    require(!is_readable(descriptor, 0));
    require(CloseHandle(exported) && CloseHandle(event));
}

static void descriptors_step(test_random *random)
{
    if (one_in(random, 2))
        use_descriptor(random);
    else
        use_export();
}

const soak_family descriptors_family = {.name = "descriptors", .weight = 2, .step = descriptors_step};

/* Processes: rarely, each costs a new image. */

static void processes_step(test_random *random)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION process;
    char command[] = "/bin/sh -c \"exit 3\"", sleeper[] = "/bin/sleep 1000";
    bool end = one_in(random, 2);
    DWORD code = 0;

    if (!one_in(random, 8)) {
        require(WaitForSingleObject(GetCurrentProcess(), 0) == WAIT_TIMEOUT);
        return;
    }
    require(CreateProcessA(NULL, end ? sleeper : command, NULL, NULL, FALSE, one_in(random, 2) ? CREATE_SUSPENDED : 0,
                           NULL, NULL, &startup, &process));
    if (end)
        require(TerminateProcess(process.hProcess, 4));
    else
        ResumeThread(process.hThread);
    require(WaitForSingleObject(process.hProcess, INFINITE) == WAIT_OBJECT_0);
    require(GetExitCodeProcess(process.hProcess, &code) && code == (end ? 4 : 3));
    require(CloseHandle(process.hProcess) && CloseHandle(process.hThread));
}

const soak_family processes_family = {.name = "processes", .weight = 1, .step = processes_step};

/* Threads of a step: created suspended or not, alerted, sent APCs, waited for. */

static DWORD WINAPI wait_to_be_told(LPVOID counter)
{
    while (load((LONG *)counter) == 0)
        SleepEx(INFINITE, TRUE);
    return 5;
}

static VOID CALLBACK tell(ULONG_PTR counter)
{
    add((LONG *)counter, 1);
}

static void threads_step(test_random *random)
{
    volatile LONG told = 0;
    bool suspended = one_in(random, 2);
    HANDLE thread =
        CreateThread(NULL, SMALL_STACK, wait_to_be_told, (LPVOID)&told, suspended ? CREATE_SUSPENDED : 0, NULL);
    DWORD code = 0;

    require(thread != NULL);
    if (one_in(random, 2)) {
        require(SuspendThread(thread) == (DWORD)suspended);
        require(NtAlertThread(thread) == STATUS_SUCCESS);
        require(ResumeThread(thread) == (DWORD)suspended + 1);
    }
    require(WaitForSingleObject(thread, random_below(random, 2)) == WAIT_TIMEOUT);
    require(QueueUserAPC(tell, thread, (ULONG_PTR)&told));
    if (suspended)
        require(ResumeThread(thread) == 1);
    require(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    require(load(&told) == 1 && GetExitCodeThread(thread, &code) && code == 5);
    require(!QueueUserAPC(tell, thread, (ULONG_PTR)&told));
    require(CloseHandle(thread));
}

const soak_family threads_family = {.name = "threads", .weight = 1, .step = threads_step};
