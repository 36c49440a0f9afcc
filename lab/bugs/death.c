/* A thread that ends in the middle of an operation, and what it leaves behind. */
#include <interlock/lab.h>

#include <ntifs.h>

static uint32_t word;
static KMUTANT mutant;
static uint32_t got;

static void acquire_word(void)
{
    while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE) != 0)
        LabWaitOnWord(&word, 1);
}

static void release_word(void)
{
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
    LabWakeWord(&word, 1);
}

/* A plain word does not record its owner. */
static void die_with_word(void)
{
    LabMayDie();
    acquire_word();
    LabYield();
    release_word();
}

static void take_word(void)
{
    acquire_word();
    release_word();
}
LAB_SCENARIO(death_with_word, .Threads = {die_with_word, take_word}, .Deaths = 1, .Expect = "deadlock");
LAB_SCENARIO(death_none, .Threads = {die_with_word, take_word});

/* A mutant does, and reports the abandonment to the next owner. */
static void setup_mutant(void)
{
    KeInitializeMutant(&mutant, FALSE);
}

static void die_with_mutant(void)
{
    LabMayDie();
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabYield();
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void inherit_mutant(void)
{
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);

    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    got += 1;
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void heir_got_it(void)
{
    LabAssert(got == 1 && KeReadStateMutant(&mutant) == 1);
}
LAB_SCENARIO(death_with_mutant, .Setup = setup_mutant, .Threads = {die_with_mutant, inherit_mutant}, .Deaths = 1,
             .Finish = heir_got_it, .MaximumSchedules = 20000);

static void inherit_carelessly(void)
{
    LabAssert(KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}
LAB_SCENARIO(death_unexpected, .Setup = setup_mutant, .Threads = {die_with_mutant, inherit_carelessly}, .Deaths = 1,
             .Expect = "assertion");

/* Machines of one processor, of two, and of three. */
static void count_processors(void)
{
    LabAssert(KeQueryActiveProcessorCount(NULL) == 2);
}
LAB_SCENARIO(processors_one, .Threads = {count_processors}, .Processors = 1, .Expect = "assertion");
LAB_SCENARIO(processors_two, .Threads = {count_processors}, .Processors = 2);
LAB_SCENARIO(processors_three, .Threads = {count_processors}, .Processors = 3, .Expect = "assertion");
