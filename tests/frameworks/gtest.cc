// Bugchecks that a GoogleTest test expects, and what is left after them.
#include <gtest/gtest.h>

#include <ntddk.h>
#include <interlock/verifier.h>

#include <string>

namespace driver {

class Queue {
public:
    Queue() { KeInitializeSpinLock(&lock); }
    void Corrupt(ULONG_PTR value) __attribute__((noinline)) { KeBugCheckEx(MANUALLY_INITIATED_CRASH, value, 2, 3, 4); }

private:
    KSPIN_LOCK lock;
};

} // namespace driver

namespace {

void Wait(PVOID context)
{
    KIRQL old;
    KeEnterCriticalRegion();
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeWaitForSingleObject(context, Executive, KernelMode, FALSE, nullptr);
}

void Corrupt(PVOID context)
{
    static_cast<driver::Queue *>(context)->Corrupt(1);
    __asm__ volatile("");
}

class BugChecks : public testing::TestWithParam<int> {
protected:
    void SetUp() override { KeInitializeEvent(&event, NotificationEvent, FALSE); }
    void TearDown() override
    {
        EXPECT_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
        EXPECT_FALSE(KeAreApcsDisabled());
    }
    KEVENT event;
};

TEST_P(BugChecks, InProcess)
{
    VF_BUGCHECK stop;
    EXPECT_EQ(VfExpectBugCheck(Wait, &event, &stop), IRQL_NOT_LESS_OR_EQUAL);
    EXPECT_EQ(stop.Parameter[0], reinterpret_cast<ULONG_PTR>(&event));
    EXPECT_NE(std::string(stop.Report).find("waited at DISPATCH_LEVEL"), std::string::npos);
}

TEST_P(BugChecks, InAChild)
{
    EXPECT_EQ(VfExpectBugCheckInChild(Wait, &event, nullptr), IRQL_NOT_LESS_OR_EQUAL);
}

TEST_P(BugChecks, AsAStatement)
{
    VF_BUGCHECK stop;
    VF_EXPECT_BUGCHECK(&stop) {
        Wait(&event);
        ADD_FAILURE() << "it goes on";
    }
    EXPECT_EQ(stop.Code, IRQL_NOT_LESS_OR_EQUAL);
    VF_EXPECT_BUGCHECK(&stop) {
        EXPECT_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
    }
    EXPECT_EQ(stop.Outcome, VfReturned);
}

TEST_P(BugChecks, NamesOfMethods)
{
    driver::Queue queue;
    VF_BUGCHECK stop;
    EXPECT_EQ(VfExpectBugCheck(Corrupt, &queue, &stop), MANUALLY_INITIATED_CRASH);
    if (std::string(stop.Report).find("no stack trace") == std::string::npos) {
        EXPECT_NE(std::string(stop.Report).find("!driver::Queue::Corrupt+0x"), std::string::npos) << stop.Report;
        EXPECT_NE(std::string(stop.Report).find("!(anonymous namespace)::Corrupt+0x"), std::string::npos) << stop.Report;
    }
}

INSTANTIATE_TEST_SUITE_P(Repeatedly, BugChecks, testing::Range(0, 3));

} // namespace
