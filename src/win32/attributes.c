/* attributes.c: attribute lists of CreateProcess. The one attribute is the list of handles that a child inherits. */
#include "base.h"

#include <interlock/win32/thread.h>

/* The program allocates the list, with room for Count attributes. */
typedef struct _PROC_THREAD_ATTRIBUTE_LIST {
    ULONG Count;
    ULONG Used;
    struct {
        ULONG_PTR Attribute;
        PVOID Value;
        SIZE_T Size;
    } Entry[];
} BASE_ATTRIBUTE_LIST, *PBASE_ATTRIBUTE_LIST;

#define BASE_MOST_ATTRIBUTES 64

BOOL InitializeProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, DWORD dwAttributeCount,
                                       DWORD dwFlags, PSIZE_T lpSize)
{
    PBASE_ATTRIBUTE_LIST List = lpAttributeList;
    if (lpSize == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    if (dwFlags != 0 || dwAttributeCount > BASE_MOST_ATTRIBUTES) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    SIZE_T Needed = sizeof(*List) + dwAttributeCount * sizeof(List->Entry[0]);
    BOOLEAN Fits = List != NULL && *lpSize >= Needed;
    *lpSize = Needed;
    if (Fits) {
        *List = (BASE_ATTRIBUTE_LIST){.Count = dwAttributeCount};
    }
    return BaseBoolStatus(Fits ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL);
}

static NTSTATUS BaseCheckAttribute(PBASE_ATTRIBUTE_LIST List, ULONG_PTR Attribute, SIZE_T Size)
{
    if (Attribute != PROC_THREAD_ATTRIBUTE_HANDLE_LIST) {
        return STATUS_NOT_SUPPORTED;
    }
    if (Size == 0 || Size % sizeof(HANDLE) != 0) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    if (List->Used == List->Count) {
        return STATUS_UNSUCCESSFUL;
    }
    for (ULONG Index = 0; Index < List->Used; Index++) {
        if (List->Entry[Index].Attribute == Attribute) {
            return STATUS_OBJECT_NAME_EXISTS;
        }
    }
    return STATUS_SUCCESS;
}

/* An attribute that already exists is a failure, although its status is not an error. */
BOOL UpdateProcThreadAttribute(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, DWORD dwFlags, DWORD_PTR Attribute,
                               PVOID lpValue, SIZE_T cbSize, PVOID lpPreviousValue, PSIZE_T lpReturnSize)
{
    PBASE_ATTRIBUTE_LIST List = lpAttributeList;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if (List == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    if (dwFlags == 0 && lpPreviousValue == NULL && lpReturnSize == NULL) {
        Status = BaseCheckAttribute(List, Attribute, cbSize);
    }
    if (Status != STATUS_SUCCESS) {
        BaseSetLastNTError(Status);
        return FALSE;
    }
    List->Entry[List->Used].Attribute = Attribute;
    List->Entry[List->Used].Value = lpValue;
    List->Entry[List->Used].Size = cbSize;
    List->Used += 1;
    return TRUE;
}

VOID DeleteProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList)
{
    UNREFERENCED_PARAMETER(lpAttributeList); /* the program owns it, and what it points to */
}

BOOLEAN BaseFindHandleList(LPPROC_THREAD_ATTRIBUTE_LIST AttributeList, const HANDLE **List, PULONG Count)
{
    PBASE_ATTRIBUTE_LIST Attributes = AttributeList;
    for (ULONG Index = 0; Attributes != NULL && Index < Attributes->Used; Index++) {
        if (Attributes->Entry[Index].Attribute == PROC_THREAD_ATTRIBUTE_HANDLE_LIST) {
            *List = Attributes->Entry[Index].Value;
            *Count = (ULONG)(Attributes->Entry[Index].Size / sizeof(HANDLE));
            return TRUE;
        }
    }
    return FALSE;
}
