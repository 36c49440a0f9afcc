/*
 * Names that ports ask for in their first hour, each used once and its result checked. Exits with 0, or with the line of the
 * first check that fails. names.cpp is the same as C++.
 */
#include <Windows.h>
#include <conio.h>
#include <crtdbg.h>
#include <intrin.h>
#include <io.h>
#include <mmsystem.h>
#include <process.h>
#include <sal.h>
#include <stdio.h>
#include <strsafe.h>
#include <tchar.h>
#include <winapifamily.h>
#include <winternl.h>

#define CHECK(Condition)                                                                                               \
    do {                                                                                                               \
        if (!(Condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s, error %u\n", __FILE__, __LINE__, #Condition, (unsigned)GetLastError());           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void Intrinsics(void)
{
    ULONG index;
    __int8 byte = 1;
    __int64 quad = 2;
#ifdef __x86_64__
    int leaf[4];
    _mm_pause();
    CHECK(__rdtsc() != 0);
    __cpuid(leaf, 0);
    CHECK(leaf[0] > 0 && leaf[1] != 0);
    __cpuidex(leaf, 1, 0);
#endif
    CHECK(_byteswap_ushort(0x0102) == 0x0201 && _byteswap_ulong(0x01020304) == 0x04030201 &&
          _byteswap_uint64(1) == 1ULL << 56);
    CHECK(_rotl(0x80000000u, 1) == 1 && _rotr(1, 1) == 0x80000000u && _rotl64(1ULL << 63, 1) == 1 && _rotl8(0x81, 1) == 3 &&
          _rotr16(1, 1) == 0x8000 && _lrotl(2, 1) == 4);
    CHECK(_BitScanForward(&index, 12) && index == 2 && _BitScanReverse(&index, 12) && index == 3);
    CHECK(_BitScanForward64(&index, 1ULL << 40) && index == 40 && _BitScanReverse64(&index, 3) && index == 1);
    CHECK(!_BitScanForward(&index, 0));
    __iso_volatile_store8(&byte, 5);
    __iso_volatile_store64(&quad, 6);
    CHECK(__iso_volatile_load8(&byte) == 5 && __iso_volatile_load64(&quad) == 6);
    __faststorefence();
    _ReadWriteBarrier();
}

static void Versions(void)
{
    CHECK(_WIN32_WINNT_WIN7 == 0x0601 && _WIN32_WINNT_WINXP == 0x0501 && _WIN32_WINNT_WIN10 == 0x0A00);
    CHECK(NTDDI_WIN7 == 0x06010000 && NTDDI_VISTA == 0x06000000 && WINVER >= 0x0A00);
    CHECK(WINAPI_FAMILY_PARTITION(WINAPI_PARTITION_DESKTOP));
    CHECK(DLL_PROCESS_DETACH == 0 && DLL_PROCESS_ATTACH == 1 && DLL_THREAD_ATTACH == 2 && DLL_THREAD_DETACH == 3);
    CHECK(MAXIMUM_SUSPEND_COUNT == 127 && MAXIMUM_PROCESSORS == 64 && QUEUE_USER_APC_CALLBACK_DATA_CONTEXT == 0x10000);
    CHECK(THREAD_MODE_BACKGROUND_BEGIN == 0x10000 && THREAD_MODE_BACKGROUND_END == 0x20000);
    CHECK(WSAEWOULDBLOCK == 10035 && WSAEINTR == 10004 && WSAETIMEDOUT == 10060 && WSAECONNRESET == 10054);
}

static void Processes(void)
{
    HANDLE process = GetCurrentProcess();
    DWORD_PTR own, system;
    FILETIME created, exited, kernel, user;
    BOOL disabled = 5;
    DWORD length = 0;
    PSYSTEM_LOGICAL_PROCESSOR_INFORMATION records;
    DWORD cores = 0, i;
    ULONG_PTR low, high;
    SIZE_T size = 0;
    LPPROC_THREAD_ATTRIBUTE_LIST list;

    CHECK(GetProcessAffinityMask(process, &own, &system) && own != 0 && (own & ~system) == 0);
    CHECK(SetProcessAffinityMask(process, own));
    CHECK(SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)-1) == own);
    CHECK(GetProcessTimes(process, &created, &exited, &kernel, &user) && created.dwHighDateTime != 0);
    CHECK(GetPriorityClass(process) == NORMAL_PRIORITY_CLASS && SetPriorityClass(process, NORMAL_PRIORITY_CLASS));
    CHECK(GetProcessPriorityBoost(process, &disabled) && disabled == FALSE && SetProcessPriorityBoost(process, FALSE));
    CHECK(!GetLogicalProcessorInformation(NULL, &length) && GetLastError() == ERROR_INSUFFICIENT_BUFFER);
    records = (PSYSTEM_LOGICAL_PROCESSOR_INFORMATION)malloc(length);
    CHECK(GetLogicalProcessorInformation(records, &length));
    for (i = 0; i < length / sizeof(*records); i++)
        cores += records[i].Relationship == RelationProcessorCore;
    CHECK(cores > 0);
    free(records);
    length = 0;
    CHECK(!GetLogicalProcessorInformationEx(RelationAll, NULL, &length) && GetLastError() == ERROR_INSUFFICIENT_BUFFER);
    FlushProcessWriteBuffers();
    GetCurrentThreadStackLimits(&low, &high);
    CHECK(low < (ULONG_PTR)&low && (ULONG_PTR)&low < high);
    CHECK(!InitializeProcThreadAttributeList(NULL, 1, 0, &size) && size != 0);
    list = (LPPROC_THREAD_ATTRIBUTE_LIST)malloc(size);
    CHECK(InitializeProcThreadAttributeList(list, 1, 0, &size));
    CHECK(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &process, sizeof(process), NULL, NULL));
    DeleteProcThreadAttributeList(list);
    free(list);
    CHECK(!BindIoCompletionCallback(process, NULL, 0));
}

static volatile LONG TimerCalls;

static void CALLBACK OnTimer(UINT id, UINT message, DWORD_PTR event, DWORD_PTR first, DWORD_PTR second)
{
    (void)id, (void)message, (void)first, (void)second;
    InterlockedIncrement(&TimerCalls);
    SetEvent((HANDLE)event);
}

static void Times(void)
{
    HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);
    TIMECAPS caps;
    TIME_ZONE_INFORMATION zone;
    LARGE_INTEGER now;
    ULONG minimum, maximum, current, set;
    struct _timeb timeb;
    MMRESULT timer;

    CHECK(timeGetDevCaps(&caps, sizeof(caps)) == MMSYSERR_NOERROR && caps.wPeriodMin == 1);
    CHECK(timeBeginPeriod(1) == TIMERR_NOERROR && timeEndPeriod(1) == TIMERR_NOERROR && timeGetTime() != 0);
    timer = timeSetEvent(1, 0, OnTimer, (DWORD_PTR)event, TIME_PERIODIC);
    CHECK(timer != 0 && WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
    CHECK(timeKillEvent(timer) == TIMERR_NOERROR && timeKillEvent(timer) == MMSYSERR_INVALPARAM && TimerCalls > 0);
    CHECK(GetTimeZoneInformation(&zone) <= TIME_ZONE_ID_DAYLIGHT);
    CHECK(NtQuerySystemTime(&now) == 0 && now.QuadPart > 0);
    CHECK(NtQueryTimerResolution(&minimum, &maximum, &current) == 0 && maximum <= minimum);
    CHECK(NtSetTimerResolution(minimum, TRUE, &set) == 0 && NtSetTimerResolution(minimum, FALSE, &set) == 0);
    _ftime(&timeb);
    CHECK(timeb.time > 1000000000 && timeb.millitm < 1000);
    CloseHandle(event);
}

static BOOL WINAPI OnConsole(DWORD type)
{
    return type == CTRL_BREAK_EVENT;
}

static void Program(void)
{
    TCHAR path[MAX_PATH], value[16];
    void *frames[8];
    DWORD mode, written;
    HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE), memory;
    BOOL state = 5;

    CHECK(SetThreadErrorMode(SEM_FAILCRITICALERRORS, &mode) && GetThreadErrorMode() == SEM_FAILCRITICALERRORS);
    CHECK(SetConsoleCtrlHandler(OnConsole, TRUE) && SetConsoleCtrlHandler(OnConsole, FALSE));
    CHECK(output != NULL && WriteFile(output, "", 0, &written, NULL) && written == 0);
    if (GetFileType(output) != FILE_TYPE_CHAR)
        CHECK(!WriteConsole(output, TEXT("x"), 1, &written, NULL));
    CHECK(GetModuleFileName(NULL, path, MAX_PATH) > 0 && path[0] != 0);
    CHECK(CaptureStackBackTrace(0, 8, frames, NULL) > 0);
    CHECK(SetEnvironmentVariable(TEXT("INTERLOCK_NAMES"), TEXT("value")));
    CHECK(GetEnvironmentVariable(TEXT("INTERLOCK_NAMES"), value, 16) == 5 && _tcscmp(value, TEXT("value")) == 0);
    memory = CreateMemoryResourceNotification(LowMemoryResourceNotification);
    CHECK(memory != NULL && QueryMemoryResourceNotification(memory, &state) && (state == TRUE || state == FALSE));
    CloseHandle(memory);
    CHECK(_getpid() == (int)GetCurrentProcessId());
    CHECK(_write(_fileno(stdout), "", 0) == 0 && _kbhit() >= 0);
}

static void Memory(void)
{
    MEMORY_BASIC_INFORMATION information;
    DWORD old;
    char *pages = (char *)VirtualAlloc(NULL, 65536, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE), secret[4] = "abc";
    HANDLE heap = HeapCreate(0, 0, 0);
    void *block = _aligned_malloc(100, 64);

    CHECK(pages != NULL && ((ULONG_PTR)pages & 0xFFFF) == 0);
    pages[0] = 1;
    CHECK(VirtualProtect(pages, 4096, PAGE_READONLY, &old) && old == PAGE_READWRITE);
    CHECK(VirtualQuery(pages, &information, sizeof(information)) == sizeof(information));
    CHECK(information.State == MEM_COMMIT && information.Protect == PAGE_READONLY && information.Type == MEM_PRIVATE);
    CHECK(VirtualFree(pages, 0, MEM_RELEASE));
    CHECK(((ULONG_PTR)block & 63) == 0);
    block = _aligned_realloc(block, 200, 128);
    CHECK(((ULONG_PTR)block & 127) == 0);
    _aligned_free(block);
    SecureZeroMemory(secret, sizeof(secret));
    CHECK(secret[0] == 0 && secret[2] == 0);
    block = HeapAlloc(heap, HEAP_ZERO_MEMORY, 10);
    CHECK(HeapSize(heap, 0, block) == 10 && HeapValidate(heap, 0, block));
    block = HeapReAlloc(heap, 0, block, 20);
    CHECK(HeapSize(heap, 0, block) == 20 && HeapLock(heap) && HeapUnlock(heap) && HeapFree(heap, 0, block));
    CHECK(HeapDestroy(heap) && GetProcessHeap() != NULL && GetProcessHeaps(0, NULL) > 0);
}

static LPVOID MainFiber;
static SRWLOCK FiberLock = SRWLOCK_INIT;
static CRITICAL_SECTION FiberSection;
static HANDLE FiberEvent;
static DWORD FiberIndex;

static VOID WINAPI OnFiber(LPVOID parameter)
{
    int *count = (int *)parameter;
    CHECK(FlsGetValue(FiberIndex) == NULL && FlsSetValue(FiberIndex, count));
    for (;;) {
        EnterCriticalSection(&FiberSection);
        AcquireSRWLockExclusive(&FiberLock);
        *count += WaitForSingleObject(FiberEvent, 1) == WAIT_OBJECT_0 ? 10 : 1;
        ReleaseSRWLockExclusive(&FiberLock);
        LeaveCriticalSection(&FiberSection);
        CHECK(GetFiberData() == parameter && IsThreadAFiber());
        SwitchToFiber(MainFiber);
    }
}

static void Fibers(void)
{
    int count = 0;
    LPVOID fiber;

    InitializeCriticalSection(&FiberSection);
    FiberEvent = CreateEvent(NULL, FALSE, TRUE, NULL);
    FiberIndex = FlsAlloc(NULL);
    MainFiber = ConvertThreadToFiber(NULL);
    CHECK(MainFiber != NULL && GetCurrentFiber() == MainFiber);
    fiber = CreateFiber(0, OnFiber, &count);
    SwitchToFiber(fiber);
    SwitchToFiber(fiber);
    CHECK(count == 11 && FlsGetValue(FiberIndex) == NULL);
    DeleteFiber(fiber);
    CHECK(ConvertFiberToThread() && !IsThreadAFiber());
    FlsFree(FiberIndex);
    CloseHandle(FiberEvent);
    DeleteCriticalSection(&FiberSection);
}

static void Natives(void)
{
    static const WCHAR letters[] = {'a', 'b', 0};
    UNICODE_STRING string, copy;
    HANDLE thread = NULL;
    ULONG index;
    PVOID value = NULL;

    CHECK(NtCurrentTeb() != NULL && NtCurrentTeb()->ClientId.UniqueThread == (HANDLE)(ULONG_PTR)GetCurrentThreadId());
    CHECK(NtGetNextThread(GetCurrentProcess(), NULL, THREAD_QUERY_INFORMATION, 0, 0, &thread) == 0 && NtClose(thread) == 0);
    CHECK(RtlFlsAlloc(NULL, &index) == 0 && RtlFlsSetValue(index, &string) == 0 && RtlFlsGetValue(index, &value) == 0 &&
          value == &string && RtlFlsFree(index) == 0);
    RtlInitUnicodeString(&string, letters);
    CHECK(RtlDuplicateUnicodeString(1, &string, &copy) == 0 && copy.Length == 4);
    RtlFreeUnicodeString(&copy);
}

static void Modules(void)
{
    static const char *const names[] = {"InitializeConditionVariable", "GetProcessAffinityMask", "InterlockedIncrement",
                                        "RtlMoveMemory", "WaitOnAddress", "CreateFiber"};
    HMODULE kernel = GetModuleHandle(TEXT("kernel32")), set = LoadLibrary(TEXT("api-ms-win-core-synch-l1-2-0.dll"));
    HMODULE crt = LoadLibrary(TEXT("msvcrt.dll")), ucrt = GetModuleHandle(TEXT("ucrtbase.dll"));
    size_t i;

    CHECK(kernel != NULL && set != NULL && crt != NULL && ucrt != NULL);
    for (i = 0; i < ARRAYSIZE(names); i++) {
        if (GetProcAddress(kernel, names[i]) == NULL)
            fprintf(stderr, "no %s\n", names[i]);
        CHECK(GetProcAddress(kernel, names[i]) != NULL);
    }
    CHECK(GetProcAddress(set, "WaitOnAddress") != NULL && GetProcAddress(set, "InitOnceExecuteOnce") != NULL);
    CHECK(GetProcAddress(crt, "_beginthreadex") != NULL && GetProcAddress(ucrt, "_endthreadex") != NULL);
    CHECK(GetModuleHandle(TEXT("no-such-module")) == NULL && GetLastError() == ERROR_MOD_NOT_FOUND);
}

static void __checkReturn_is_a_word(__in_opt const char *text, _Out_opt_ int *length)
{
    if (length != NULL)
        *length = text != NULL ? (int)strlen(text) : 0;
}

static void CLibrary(void)
{
    char text[16], *context = NULL, list[] = "a,b";
    TCHAR wide[16];
    int value = 0;
    size_t length;

    CHECK(strcpy_s(text, sizeof(text), "abc") == 0 && strcat_s(text, sizeof(text), "def") == 0 && strcmp(text, "abcdef") == 0);
    CHECK(strncpy_s(text, sizeof(text), "abcdef", 3) == 0 && strcmp(text, "abc") == 0);
    CHECK(sprintf_s(text, sizeof(text), "%d", 42) == 2 && _snprintf_s(text, 3, _TRUNCATE, "%d", 123) == -1);
    CHECK(strcmp(strtok_s(list, ",", &context), "a") == 0 && strcmp(strtok_s(NULL, ",", &context), "b") == 0);
    CHECK(memcpy_s(text, sizeof(text), "xyz", 4) == 0 && strnlen_s(text, 16) == 3);
    CHECK(_stprintf_s(wide, 16, TEXT("%d-%s"), 7, TEXT("x")) == 3 && _tcscmp(wide, TEXT("7-x")) == 0);
    CHECK(StringCchCopy(wide, 16, TEXT("abc")) == S_OK && StringCchLength(wide, 16, &length) == S_OK && length == 3);
    CHECK(StringCchPrintf(wide, 3, TEXT("%d"), 123) == STRSAFE_E_INSUFFICIENT_BUFFER);
    CHECK(_itot_s(255, wide, 16, 16) == 0 && _tcsicmp(wide, TEXT("FF")) == 0 && _istdigit(TEXT('7')));
    CHECK(_set_errno(5) == 0 && _get_errno(&value) == 0 && value == 5);
    __checkReturn_is_a_word("abc", &value);
    CHECK(value == 3);
    CHECK(_CrtSetDbgFlag(_CRTDBG_REPORT_FLAG) == 0 && _CrtDumpMemoryLeaks() == 0);
    _ASSERTE(value == 3);
    CHECK(_snprintf(text, sizeof(text), "%I64d", 5000000000LL) == 10 && strcmp(text, "5000000000") == 0);
}

#ifdef __x86_64__
static DWORD WINAPI Spin(LPVOID flag)
{
    while (*(volatile LONG *)flag == 0)
        YieldProcessor();
    return 0;
}

static void Registers(void)
{
    static volatile LONG flag;
    CONTEXT context;
    HANDLE thread = CreateThread(NULL, 0, Spin, (LPVOID)&flag, 0, NULL);

    memset(&context, 0, sizeof(context));
    context.ContextFlags = CONTEXT_CONTROL;
    CHECK(SuspendThread(thread) == 0 && GetThreadContext(thread, &context) && context.Rip != 0 && context.Rsp != 0);
    CHECK(ResumeThread(thread) == 1);
    flag = 1;
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    CloseHandle(thread);
}
#endif

int _tmain(int argc, TCHAR *argv[])
{
    CHECK(argc >= 1 && _tcslen(argv[0]) > 0);
    Intrinsics();
    Versions();
    Processes();
    Times();
    Program();
    Memory();
    Fibers();
    Natives();
    Modules();
    CLibrary();
#ifdef __x86_64__
    Registers();
#endif
    return 0;
}
