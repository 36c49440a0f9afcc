/* The last handle of a mutant is closed while its owner ends or releases it: it is freed, by one of the two. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

#include "ob/obp.h"

static HANDLE mutant;
static OBJECT_TYPE *type;
static ULONG others; /* mutants that are not ours */

static void setup(void)
{
    PVOID object;
    LabAssert(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, FALSE) == STATUS_SUCCESS);
    LabAssert(ObReferenceObjectByHandle(mutant, 0, NULL, KernelMode, &object, NULL) == STATUS_SUCCESS);
    type = ObpHeaderOf(object)->Type;
    ObDereferenceObject(object);
    others = type->TotalNumberOfObjects - 1;
}

static void own_and_end(void)
{
    NTSTATUS status = NtWaitForSingleObject(mutant, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}

static void own_and_release(void)
{
    own_and_end();
    NTSTATUS status = NtReleaseMutant(mutant, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}

static void close_last(void)
{
    LabAssert(NtClose(mutant) == STATUS_SUCCESS);
}

static void is_gone(void)
{
    LabAssert(type->TotalNumberOfObjects == others);
}
LAB_SCENARIO(mutant_closed_under_end, .Setup = setup, .Threads = {own_and_end, close_last}, .Finish = is_gone,
             .Flags = LAB_RUN_EXIT | LAB_CHECK_LEAKS);
LAB_SCENARIO(mutant_closed_under_release, .Setup = setup, .Threads = {own_and_release, close_last}, .Finish = is_gone,
             .Flags = LAB_RUN_EXIT | LAB_CHECK_LEAKS);

/* Leaks are those of a schedule's own memory: the owner creates the mutant. */
static volatile int created;

static void forget_mutant(void)
{
    setup();
    LabAssert(NtClose(mutant) == STATUS_SUCCESS);
    created = 0;
}

static void create_and_end(void)
{
    LabAssert(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, TRUE) == STATUS_SUCCESS);
    __atomic_store_n(&created, 1, __ATOMIC_RELEASE);
}

static void create_and_release(void)
{
    create_and_end();
    NTSTATUS status = NtReleaseMutant(mutant, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}

static void close_created(void)
{
    while (!__atomic_load_n(&created, __ATOMIC_ACQUIRE))
        ;
    close_last();
}

LAB_SCENARIO(mutant_freed_under_end, .Setup = forget_mutant, .Threads = {create_and_end, close_created}, .Finish = is_gone,
             .Flags = LAB_RUN_EXIT | LAB_CHECK_LEAKS);
LAB_SCENARIO(mutant_freed_under_release, .Setup = forget_mutant, .Threads = {create_and_release, close_created},
             .Finish = is_gone, .Flags = LAB_RUN_EXIT | LAB_CHECK_LEAKS);
