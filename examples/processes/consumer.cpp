// consumer.cpp: takes jobs until it is killed. The other half of producer.c.
#include <windows.h>
#include <cstdio>
#include <memory>
#include <string_view>

struct Closer {
    void operator()(HANDLE handle) const { CloseHandle(handle); }
};
using Handle = std::unique_ptr<void, Closer>;

int main(int argc, char **argv)
{
    Handle jobs(OpenSemaphoreA(SYNCHRONIZE, FALSE, "jobs"));
    Handle done(OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, "jobs done"));
    Handle taken(OpenEventA(EVENT_MODIFY_STATE, FALSE, "a job was taken"));
    if (!jobs || !done || !taken) {
        std::puts("no producer runs");
        return 1;
    }
    while (WaitForSingleObject(jobs.get(), INFINITE) == WAIT_OBJECT_0) {
        SetEvent(taken.get());
        if (argc > 1 && std::string_view(argv[1]) == "sleepy") {
            Sleep(INFINITE);
        }
        ReleaseSemaphore(done.get(), 1, nullptr);
    }
    return 0;
}
