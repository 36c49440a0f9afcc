/* memory.c: virtual memory and heaps. */
#include "report.h"

#define PAGE 4096

static void Describe(const char *what, void *address)
{
    MEMORY_BASIC_INFORMATION information;
    ZeroMemory(&information, sizeof(information));
    printf("%s: %u", what, (unsigned)VirtualQuery(address, &information, sizeof(information)));
    printf(" state 0x%x protect 0x%x first 0x%x type 0x%x size 0x%x\n", (unsigned)information.State,
           (unsigned)information.Protect, (unsigned)information.AllocationProtect, (unsigned)information.Type,
           (unsigned)information.RegionSize);
    fflush(stdout);
}

static void Reservations(void)
{
    char *base = (char *)VirtualAlloc(NULL, 16 * PAGE, MEM_RESERVE, PAGE_READWRITE);
    DWORD old = 0;
    SHOW_TRUTH(base != NULL && (ULONG_PTR)base % 65536 == 0);
    Describe("reserved", base);
    SHOW_TRUTH(VirtualAlloc(base + 4 * PAGE + 100, PAGE, MEM_COMMIT, PAGE_READONLY) == base + 4 * PAGE);
    Describe("before", base);
    Describe("committed", base + 4 * PAGE);
    Describe("behind", base + 6 * PAGE);
    SHOW_TRUTH(VirtualAlloc(base, 2 * PAGE, MEM_RESERVE, PAGE_READWRITE) == NULL);
    SHOW(VirtualProtect(base + 4 * PAGE, PAGE, PAGE_READWRITE, &old));
    SHOW(old);
    SHOW(VirtualProtect(base + 3 * PAGE, 2 * PAGE, PAGE_READWRITE, &old));
    SHOW(VirtualProtect(base + 4 * PAGE, PAGE, 0, &old));
    SHOW(VirtualProtect(base + 4 * PAGE, PAGE, PAGE_READONLY, NULL));
    SHOW(VirtualProtect(base + 4 * PAGE, 0, PAGE_READONLY, &old));
    SHOW(VirtualProtect(base + 4 * PAGE, PAGE, PAGE_READWRITE | PAGE_GUARD, &old));
    Describe("guard", base + 4 * PAGE);
    SHOW(VirtualFree(base + 5 * PAGE, PAGE, MEM_DECOMMIT));
    Describe("decommitted", base + 5 * PAGE);
    SHOW(VirtualFree(base + PAGE, 0, MEM_DECOMMIT));
    SHOW(VirtualFree(base, 32 * PAGE, MEM_DECOMMIT));
    SHOW(VirtualFree(base, PAGE, MEM_RELEASE));
    SHOW(VirtualFree(base + PAGE, 0, MEM_RELEASE));
    SHOW(VirtualFree(base, 0, MEM_RELEASE | MEM_DECOMMIT));
    SHOW(VirtualFree(base, 0, 0));
    SHOW(VirtualFree(base, 0, MEM_DECOMMIT));
    Describe("all decommitted", base);
    SHOW(VirtualFree(base, 0, MEM_RELEASE));
    SHOW(VirtualFree(base, 0, MEM_RELEASE));
    SHOW(VirtualFree(NULL, 0, MEM_RELEASE));
}

static void BadAllocations(void)
{
    MEMORY_BASIC_INFORMATION information;
    char *base = (char *)VirtualAlloc(NULL, PAGE, MEM_RESERVE, PAGE_NOACCESS);
    VirtualFree(base, 0, MEM_RELEASE);
    SHOW_TRUTH(VirtualAlloc(NULL, 0, MEM_RESERVE, PAGE_READWRITE) == NULL);
    SHOW_TRUTH(VirtualAlloc(NULL, PAGE, 0, PAGE_READWRITE) == NULL);
    SHOW_TRUTH(VirtualAlloc(NULL, PAGE, MEM_RESERVE, 0) == NULL);
    SHOW_TRUTH(VirtualAlloc(NULL, PAGE, MEM_RESERVE, PAGE_READONLY | PAGE_READWRITE) == NULL);
    SHOW_TRUTH(VirtualAlloc(NULL, PAGE, MEM_COMMIT, PAGE_WRITECOPY) == NULL);
    SHOW_TRUTH(VirtualAlloc(NULL, (SIZE_T)1 << 60, MEM_RESERVE, PAGE_READWRITE) == NULL);
    SHOW_TRUTH(VirtualAlloc(base, PAGE, MEM_COMMIT, PAGE_READWRITE) == NULL);
    SHOW(VirtualQuery(base, &information, sizeof(information) - 1));
    SHOW(VirtualQuery((void *)(ULONG_PTR)-1, &information, sizeof(information)));
}

static void Heaps(void)
{
    HANDLE heap = HeapCreate(0, 0, 0), limited = HeapCreate(0, PAGE, 65536);
    HANDLE heaps[8];
    char *block = (char *)HeapAlloc(heap, HEAP_ZERO_MEMORY, 100);
    SHOW_TRUTH(block != NULL);
    SHOW(HeapSize(heap, 0, block));
    SHOW(HeapValidate(heap, 0, NULL));
    SHOW(HeapValidate(heap, 0, block));
    SHOW_TRUTH(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 50) == block);
    SHOW(HeapSize(heap, 0, block));
    SHOW(HeapLock(heap));
    SHOW(HeapLock(heap));
    SHOW(HeapUnlock(heap));
    SHOW(HeapUnlock(heap));
    SHOW_TRUTH(GetProcessHeaps(8, heaps) >= 3);
    SHOW_TRUTH(HeapAlloc(limited, 0, 100000) == NULL);
    SHOW(HeapFree(heap, 0, block));
    SHOW(HeapFree(heap, 0, NULL));
    SHOW(HeapDestroy(limited));
    SHOW(HeapDestroy(heap));
}

static void Variables(void)
{
    char text[16] = "";
    SHOW(SetEnvironmentVariableA("INTERLOCK_TEST", "abc"));
    SHOW(GetEnvironmentVariableA("INTERLOCK_TEST", text, 16));
    SHOW(GetEnvironmentVariableA("INTERLOCK_TEST", text, 3));
    SHOW(SetEnvironmentVariableA("INTERLOCK_TEST", ""));
    SHOW(GetEnvironmentVariableA("INTERLOCK_TEST", text, 16));
    SHOW(SetEnvironmentVariableA("INTERLOCK_TEST", NULL));
    SHOW(GetEnvironmentVariableA("INTERLOCK_TEST", text, 16));
    SHOW(SetEnvironmentVariableA("INTERLOCK_TEST", NULL));
    SHOW(SetEnvironmentVariableA("", "x"));
    SHOW(SetEnvironmentVariableA("A=B", "x"));
    SHOW(SetEnvironmentVariableA(NULL, "x"));
}

int main(void)
{
    Reservations();
    BadAllocations();
    Heaps();
    Variables();
    return 0;
}
