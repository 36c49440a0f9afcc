/* Sizes, signs, layouts and macros of ntdef.h; severities of ntstatus.h; the lists of bugcodes.h.
 */
#include "support.h"

#include <stddef.h>
#include <string.h>

#include <interlock/bugcodes.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

#define IS_SIGNED(Type) ((Type)-1 < (Type)1)
#define INTEGER(Type, Size, Signed)                                                                \
    C_ASSERT(sizeof(Type) == (Size) && sizeof(*(P##Type)0) == (Size) && IS_SIGNED(Type) == (Signed))

INTEGER(SCHAR, 1, 1);
INTEGER(UCHAR, 1, 0);
INTEGER(BYTE, 1, 0);
INTEGER(BOOLEAN, 1, 0);
INTEGER(SHORT, 2, 1);
INTEGER(CSHORT, 2, 1);
INTEGER(USHORT, 2, 0);
INTEGER(WORD, 2, 0);
INTEGER(WCHAR, 2, 0);
INTEGER(INT, 4, 1);
INTEGER(UINT, 4, 0);
INTEGER(LONG, 4, 1);
INTEGER(ULONG, 4, 0);
INTEGER(LONG32, 4, 1);
INTEGER(ULONG32, 4, 0);
INTEGER(INT32, 4, 1);
INTEGER(UINT32, 4, 0);
INTEGER(DWORD, 4, 0);
INTEGER(BOOL, 4, 1);
INTEGER(LOGICAL, 4, 0);
INTEGER(NTSTATUS, 4, 1);
INTEGER(KPRIORITY, 4, 1);
INTEGER(ACCESS_MASK, 4, 0);
INTEGER(LONGLONG, 8, 1);
INTEGER(ULONGLONG, 8, 0);
INTEGER(LONG64, 8, 1);
INTEGER(ULONG64, 8, 0);
INTEGER(INT64, 8, 1);
INTEGER(UINT64, 8, 0);
INTEGER(LONG_PTR, 8, 1);
INTEGER(ULONG_PTR, 8, 0);
INTEGER(INT_PTR, 8, 1);
INTEGER(UINT_PTR, 8, 0);
INTEGER(SIZE_T, 8, 0);
INTEGER(SSIZE_T, 8, 1);
INTEGER(KAFFINITY, 8, 0);
C_ASSERT(sizeof(CHAR) == 1 && sizeof(KPROCESSOR_MODE) == 1);
C_ASSERT(sizeof(PVOID) == 8 && sizeof(HANDLE) == 8);

#define LAYOUT(Type, Member, Offset) C_ASSERT(offsetof(Type, Member) == (Offset))
#define SIZE(Type, Size)             C_ASSERT(sizeof(Type) == (Size) && sizeof(*(P##Type)0) == (Size))

SIZE(LARGE_INTEGER, 8);
LAYOUT(LARGE_INTEGER, HighPart, 4);
LAYOUT(LARGE_INTEGER, u.HighPart, 4);
SIZE(ULARGE_INTEGER, 8);
LAYOUT(ULARGE_INTEGER, HighPart, 4);
SIZE(STRING, 16);
SIZE(ANSI_STRING, 16);
SIZE(UNICODE_STRING, 16);
LAYOUT(UNICODE_STRING, MaximumLength, 2);
LAYOUT(UNICODE_STRING, Buffer, 8);
SIZE(OBJECT_ATTRIBUTES, 48);
LAYOUT(OBJECT_ATTRIBUTES, RootDirectory, 8);
LAYOUT(OBJECT_ATTRIBUTES, ObjectName, 16);
LAYOUT(OBJECT_ATTRIBUTES, Attributes, 24);
LAYOUT(OBJECT_ATTRIBUTES, SecurityDescriptor, 32);
LAYOUT(OBJECT_ATTRIBUTES, SecurityQualityOfService, 40);
SIZE(CLIENT_ID, 16);
SIZE(LUID, 8);
SIZE(GUID, 16);
SIZE(LIST_ENTRY, 16);
LAYOUT(LIST_ENTRY, Blink, 8);
SIZE(SINGLE_LIST_ENTRY, 8);
SIZE(PROCESSOR_NUMBER, 4);
LAYOUT(PROCESSOR_NUMBER, Number, 2);
SIZE(GROUP_AFFINITY, 16);
LAYOUT(GROUP_AFFINITY, Group, 8);
SIZE(GENERIC_MAPPING, 16);

C_ASSERT(KernelMode == 0 && UserMode == 1 && MaximumMode == 2);
C_ASSERT(NotificationEvent == 0 && SynchronizationEvent == 1);
C_ASSERT(NotificationTimer == 0 && SynchronizationTimer == 1);
C_ASSERT(WaitAll == 0 && WaitAny == 1 && WaitNotification == 2 && WaitDequeue == 3 && WaitDpc == 4);
C_ASSERT(EVENT_ALL_ACCESS == 0x1F0003 && MUTANT_ALL_ACCESS == 0x1F0001);
C_ASSERT(SEMAPHORE_ALL_ACCESS == 0x1F0003 && TIMER_ALL_ACCESS == 0x1F0003);
C_ASSERT(KEYEDEVENT_ALL_ACCESS == 0xF0003 && IO_COMPLETION_ALL_ACCESS == 0x1F0003);
C_ASSERT(THREAD_ALL_ACCESS == 0x1FFFFF && PROCESS_ALL_ACCESS == 0x1FFFFF);
C_ASSERT(GENERIC_READ == 0x80000000 && sizeof(GENERIC_READ) == 4);

struct record {
    char first;
    LONG second;
    LIST_ENTRY links;
    UCHAR tail[3];
};

static void test_records(void **state)
{
    struct record record;

    (void)state;
    assert_ptr_equal(CONTAINING_RECORD(&record.links, struct record, links), &record);
    assert_ptr_equal(CONTAINING_RECORD(&record.tail, struct record, tail), &record);
    assert_ptr_equal(CONTAINING_RECORD(&record.first, struct record, first), &record);
    assert_int_equal(FIELD_OFFSET(struct record, links), offsetof(struct record, links));
    assert_int_equal(RTL_FIELD_SIZE(struct record, tail), 3);
    assert_int_equal(RTL_SIZEOF_THROUGH_FIELD(struct record, second), 8);
    assert_true(RTL_CONTAINS_FIELD(&record, 8, second));
    assert_false(RTL_CONTAINS_FIELD(&record, 7, second));
    assert_int_equal(RTL_NUMBER_OF(record.tail), 3);
    assert_int_equal(ALIGN_UP_BY(17, 8), 24);
    assert_int_equal(ALIGN_UP_BY(16, 8), 16);
    assert_int_equal(ALIGN_DOWN_BY(23, 8), 16);
}

static void test_large_integer(void **state)
{
    LARGE_INTEGER value;
    ULARGE_INTEGER unsigned_value;

    (void)state;
    value.QuadPart = -2;
    assert_int_equal(value.LowPart, 0xfffffffe);
    assert_int_equal(value.HighPart, -1);
    assert_int_equal(value.u.LowPart, 0xfffffffe);
    value.u.HighPart = 1;
    value.LowPart = 2;
    assert_true(value.QuadPart == 0x100000002);
    unsigned_value.QuadPart = MAXULONGLONG;
    assert_true(unsigned_value.HighPart == MAXULONG && unsigned_value.u.LowPart == MAXULONG);
}

static void test_strings(void **state)
{
    DECLARE_CONST_UNICODE_STRING(name, u"\\BaseNamedObjects\\x");
    ANSI_STRING ansi = RTL_CONSTANT_STRING("four");
    UNICODE_STRING unicode = RTL_CONSTANT_STRING(u"\u20ac");
    OBJECT_ATTRIBUTES attributes;

    (void)state;
    assert_int_equal(name.Length, 38);
    assert_int_equal(name.MaximumLength, 40);
    assert_int_equal(name.Buffer[18], 'x');
    assert_int_equal(ansi.Length, 4);
    assert_int_equal(ansi.MaximumLength, 5);
    assert_memory_equal(ansi.Buffer, "four", 5);
    assert_int_equal(unicode.Length, 2);
    assert_int_equal(unicode.Buffer[0], 0x20ac);

    memset(&attributes, 0xff, sizeof(attributes));
    InitializeObjectAttributes(&attributes, &unicode, OBJ_CASE_INSENSITIVE, (HANDLE)8, NULL);
    assert_int_equal(attributes.Length, sizeof(attributes));
    assert_ptr_equal(attributes.ObjectName, &unicode);
    assert_ptr_equal(attributes.RootDirectory, (HANDLE)8);
    assert_int_equal(attributes.Attributes, 0x40);
    assert_null(attributes.SecurityDescriptor);
    assert_null(attributes.SecurityQualityOfService);
}

static void test_memory(void **state)
{
    char a[8] = "abcdefg", b[8];

    (void)state;
    RtlCopyMemory(b, a, sizeof(a));
    assert_true(RtlEqualMemory(a, b, sizeof(a)));
    assert_int_equal(RtlCompareMemory(a, b, sizeof(a)), sizeof(a));
    b[3] = 'x';
    assert_false(RtlEqualMemory(a, b, sizeof(a)));
    assert_int_equal(RtlCompareMemory(a, b, sizeof(a)), 3);
    assert_int_equal(RtlCompareMemory(a, b, 0), 0);
    RtlMoveMemory(a + 1, a, 6);
    assert_string_equal(a, "aabcdef");
    RtlFillMemory(a, 3, 'z');
    assert_string_equal(a, "zzzcdef");
    RtlZeroMemory(a, 2);
    assert_memory_equal(a, "\0\0zcdef", 8);
    assert_ptr_equal(RtlSecureZeroMemory(a, sizeof(a)), a);
    assert_memory_equal(a, "\0\0\0\0\0\0\0", 8);
}

static void test_severities(void **state)
{
    static const struct {
        NTSTATUS status;
        int success, information, warning, error;
    } table[] = {
        {STATUS_SUCCESS, 1, 0, 0, 0},
        {STATUS_WAIT_63, 1, 0, 0, 0},
        {STATUS_ABANDONED_WAIT_63, 1, 0, 0, 0},
        {STATUS_TIMEOUT, 1, 0, 0, 0},
        {STATUS_OBJECT_NAME_EXISTS, 1, 1, 0, 0},
        {STATUS_BUFFER_OVERFLOW, 0, 0, 1, 0},
        {STATUS_UNSUCCESSFUL, 0, 0, 0, 1},
        {STATUS_MUTANT_LIMIT_EXCEEDED, 0, 0, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(table); i++) {
        assert_int_equal(NT_SUCCESS(table[i].status), table[i].success);
        assert_int_equal(NT_INFORMATION(table[i].status), table[i].information);
        assert_int_equal(NT_WARNING(table[i].status), table[i].warning);
        assert_int_equal(NT_ERROR(table[i].status), table[i].error);
    }
    assert_int_equal(STATUS_WAIT_0 + 17, STATUS_WAIT_17);
    assert_int_equal(STATUS_ABANDONED_WAIT_0 + 62, STATUS_ABANDONED_WAIT_62);
}

#define CODE(Name, P1, P2, P3, P4)           {Name, #Name, {P1, P2, P3, P4}},
#define VIOLATION(Kind, P2, P3, P4, Meaning) {Kind, Meaning, {P2, P3, P4, Meaning}},
struct code {
    ULONG code;
    const char *name;
    const char *parameters[4];
};
static const struct code codes[] = {INTERLOCK_BUGCODE_LIST(CODE)};
static const struct code violations[] = {INTERLOCK_VERIFIER_LIST(VIOLATION)};

static void test_bugcodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(codes); i++) {
        assert_true(codes[i].name[0] >= 'A' && codes[i].name[0] <= 'Z');
        if (i > 0)
            assert_true(codes[i - 1].code < codes[i].code);
        for (int p = 0; p < 4; p++)
            assert_non_null(codes[i].parameters[p]);
    }
    for (size_t i = 0; i < ARRAYSIZE(violations); i++) {
        assert_true(violations[i].name[0] != 0);
        if (i > 0)
            assert_true(violations[i - 1].code < violations[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),    cmocka_unit_test(test_large_integer),
        cmocka_unit_test(test_strings),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_severities), cmocka_unit_test(test_bugcodes),
    };
    return cmocka_run_group_tests_name("interlocked/types", tests, NULL, NULL);
}
