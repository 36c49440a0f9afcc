// The headers as C++17 sees them: linkage, literals, templates beside the macros, the same results
// as in C.
#include <interlock/bugcodes.h>
#include <interlock/interlocked.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

static_assert(std::is_same_v<SIZE_T, std::size_t>);
static_assert(std::is_same_v<ULONG_PTR, std::uintptr_t>);
static_assert(std::is_same_v<decltype(STATUS_SUCCESS), NTSTATUS>);
static_assert(std::is_same_v<WCHAR, char16_t> || std::is_same_v<WCHAR, wchar_t>);
static_assert(std::is_same_v<decltype(InterlockedIncrement), LONG(LONG volatile *)>);
static_assert(std::is_standard_layout_v<LARGE_INTEGER> && std::is_trivial_v<LARGE_INTEGER>);
static_assert(STATUS_TIMEOUT == 0x102 && NT_ERROR(STATUS_ACCESS_DENIED));

namespace
{

int failures, cases;

void expect(bool right, const char *what)
{
    std::printf("%s %d - %s\n", right ? "ok" : "not ok", ++cases, what);
    failures += !right;
}

struct Item {
    int number;
    LIST_ENTRY links;
};

template <class T, T (*Operation)(T volatile *)> T twice(T volatile *value)
{
    Operation(value);
    return Operation(value);
}

std::string numbers(PLIST_ENTRY head)
{
    std::string result;
    for (PLIST_ENTRY e = head->Flink; e != head; e = e->Flink)
        result += std::to_string(CONTAINING_RECORD(e, Item, links)->number);
    return result;
}

} // namespace

int main()
{
    LONG value = 5;
    LONG64 wide = -1;
    void *pointer = nullptr;

    expect(InterlockedCompareExchange(&value, 7, 5) == 5 && value == 7, "compare-exchange");
    expect(twice<LONG, InterlockedIncrement>(&value) == 9, "an operation as a template argument");
    expect(InterlockedAnd64(&wide, 0xff) == -1 && wide == 0xff, "64 bits");
    expect(InterlockedExchangePointer(&pointer, &value) == nullptr && pointer == &value, "pointer");
    expect(InterlockedBitTestAndReset(&value, 0) == 1 && value == 8, "bit test");
    expect(ReadPointerAcquire(&pointer) == &value && ReadAcquire(&value) == 8, "reads");

    alignas(16) LONG64 pair[2] = {1, 2};
    LONG64 comparand[2] = {1, 2};
    expect(InterlockedCompareExchange128(pair, 4, 3, comparand) == 1 && pair[0] == 3, "128 bits");

    LIST_ENTRY head;
    Item items[3] = {{0, {}}, {1, {}}, {2, {}}};
    InitializeListHead(&head);
    for (Item &item : items)
        InsertTailList(&head, &item.links);
    RemoveEntryList(&items[1].links);
    expect(numbers(&head) == "02", "lists");

    ANSI_STRING ansi = RTL_CONSTANT_STRING("text");
    expect(ansi.Length == 4 && ansi.MaximumLength == 5, "constant string");
#if __SIZEOF_WCHAR_T__ == 2
    DECLARE_CONST_UNICODE_STRING(name, L"name");
#else
    DECLARE_CONST_UNICODE_STRING(name, u"name");
#endif
    expect(name.Length == 8 && name.Buffer[3] == 'e', "constant UTF-16 string");

    LARGE_INTEGER large;
    large.QuadPart = -1;
    expect(large.LowPart == MAXULONG && large.u.HighPart == -1, "large integer");

    std::map<ULONG, std::string> codes;
#define CODE(Name, P1, P2, P3, P4) codes[Name] = #Name;
    INTERLOCK_BUGCODE_LIST(CODE)
    expect(codes[IRQL_NOT_LESS_OR_EQUAL] == "IRQL_NOT_LESS_OR_EQUAL", "bugcheck names");

    LONG counter = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (int n = 0; n < 10000; n++)
                InterlockedIncrement(&counter);
        });
    for (auto &thread : threads)
        thread.join();
    expect(counter == 40000, "threads");

    std::printf("1..%d\n", cases);
    return failures != 0;
}
