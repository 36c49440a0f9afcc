/* symboliclink.c: symbolic links of the object manager. */
#include "ntp.h"

#include "../ob/namespace.h"

static NTSTATUS NtpCheckTarget(PCUNICODE_STRING Target)
{
    if (Target == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Target->Length == 0 || Target->Length % sizeof(WCHAR) != 0 || Target->Length > Target->MaximumLength) {
        return STATUS_INVALID_PARAMETER;
    }
    return Target->Buffer != NULL ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

static NTSTATUS NtpCreateSymbolicLink(KPROCESSOR_MODE Mode, PHANDLE LinkHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes, PUNICODE_STRING LinkTarget)
{
    OBP_BLUEPRINT Blueprint = {&ObpSymbolicLinkType, 0, ObpInitializeSymbolicLink, LinkTarget};
    NTSTATUS Status = LinkHandle != NULL ? NtpCheckTarget(LinkTarget) : STATUS_ACCESS_VIOLATION;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Blueprint.BodySize = ObpSymbolicLinkSize(LinkTarget);
    return ObpCreateHandleAs(Mode, &Blueprint, ObjectAttributes, DesiredAccess, LinkHandle);
}

NTSTATUS NtCreateSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                    PUNICODE_STRING LinkTarget)
{
    return NTP_SERVICE(NtpCreateSymbolicLink(UserMode, LinkHandle, DesiredAccess, ObjectAttributes, LinkTarget));
}

NTSTATUS ZwCreateSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                    PUNICODE_STRING LinkTarget)
{
    return NTP_SERVICE(NtpCreateSymbolicLink(KernelMode, LinkHandle, DesiredAccess, ObjectAttributes, LinkTarget));
}

NTSTATUS NtOpenSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(UserMode, &ObpSymbolicLinkType, ObjectAttributes, DesiredAccess, LinkHandle));
}

NTSTATUS ZwOpenSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(KernelMode, &ObpSymbolicLinkType, ObjectAttributes, DesiredAccess, LinkHandle));
}

/* With ReturnedLength the terminating zero is wanted as well. */
static NTSTATUS NtpCopyTarget(POBJECT_SYMBOLIC_LINK Link, PUNICODE_STRING LinkTarget, PULONG ReturnedLength)
{
    ULONG Length = Link->Length * (ULONG)sizeof(WCHAR);
    ULONG Needed = Length + (ReturnedLength != NULL ? (ULONG)sizeof(WCHAR) : 0);
    NtpReturnLength(ReturnedLength, Needed);
    if (Needed > LinkTarget->MaximumLength) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    if (LinkTarget->Buffer == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    memcpy(LinkTarget->Buffer, Link->Target, Length);
    if (ReturnedLength != NULL) {
        LinkTarget->Buffer[Link->Length] = 0;
    }
    LinkTarget->Length = (USHORT)Length;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQuerySymbolicLink(KPROCESSOR_MODE Mode, HANDLE LinkHandle, PUNICODE_STRING LinkTarget,
                                     PULONG ReturnedLength)
{
    PVOID Link;
    NTSTATUS Status;
    if (LinkTarget == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    Status = ObReferenceObjectByHandle(LinkHandle, SYMBOLIC_LINK_QUERY, &ObpSymbolicLinkType, Mode, &Link, NULL);
    if (NT_SUCCESS(Status)) {
        Status = NtpCopyTarget(Link, LinkTarget, ReturnedLength);
        ObpDereferenceObjectEx(Link, 1);
    }
    return Status;
}

NTSTATUS NtQuerySymbolicLinkObject(HANDLE LinkHandle, PUNICODE_STRING LinkTarget, PULONG ReturnedLength)
{
    return NTP_SERVICE(NtpQuerySymbolicLink(UserMode, LinkHandle, LinkTarget, ReturnedLength));
}

NTSTATUS ZwQuerySymbolicLinkObject(HANDLE LinkHandle, PUNICODE_STRING LinkTarget, PULONG ReturnedLength)
{
    return NTP_SERVICE(NtpQuerySymbolicLink(KernelMode, LinkHandle, LinkTarget, ReturnedLength));
}
