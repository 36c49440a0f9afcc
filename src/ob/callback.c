/*
 * callback.c: callback objects. Drivers register routines, and a notification calls them.
 *
 * The registrations of an object are a list under its spinlock, which is not held while a routine runs:
 * 1. A notification counts itself on a registration (Busy) while it calls the routine, so that the registration and its
 *    link to the next one stay valid.
 * 2. Unregistering marks the registration, after which no notification begins with it. If it is busy, the last
 *    notification removes it from the list and sets the event that the unregistering thread waits for.
 * 3. So when ExUnregisterCallback returns the routine does not run and will not run. A routine that unregisters itself
 *    would wait for its own end.
 * 4. A registration holds a reference on the object.
 */
#include "../ke/verifier.h"
#include "../ke/irql.h"
#include "obp.h"

#define OBP_CALLBACK_SIGNATURE  0x6c6c6143u /* "Call" */
#define OBP_CALLBACK_MODIFY     0x0001
#define OBP_CALLBACK_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | OBP_CALLBACK_MODIFY)
#define OBP_TAG_OF_CALLBACK     0x62726343u /* "Ccrb" */

typedef struct _CALLBACK_OBJECT {
    ULONG Signature;
    KSPIN_LOCK Lock;
    LIST_ENTRY RegisteredCallbacks;
    BOOLEAN AllowMultipleCallbacks;
} CALLBACK_OBJECT;

typedef struct _OBP_CALLBACK_REGISTRATION {
    LIST_ENTRY Link;
    PCALLBACK_OBJECT CallbackObject;
    PCALLBACK_FUNCTION CallbackFunction;
    PVOID CallbackContext;
    ULONG Busy;
    PKEVENT Unregistered; /* the event of the unregistering thread; NULL: registered */
} OBP_CALLBACK_REGISTRATION, *POBP_CALLBACK_REGISTRATION;

static OBJECT_TYPE ObpCallbackType = {
    .Name = "Callback",
    .GenericMapping = {STANDARD_RIGHTS_READ | OBP_CALLBACK_MODIFY, STANDARD_RIGHTS_WRITE | OBP_CALLBACK_MODIFY,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, OBP_CALLBACK_ALL_ACCESS},
    .ValidAccessMask = OBP_CALLBACK_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
};
OBP_REGISTER_TYPE(ObpCallbackType);

static NTSTATUS ObpInitializeCallback(PVOID Object, PVOID Context)
{
    PCALLBACK_OBJECT Callback = Object;
    Callback->Signature = OBP_CALLBACK_SIGNATURE;
    KeInitializeSpinLock(&Callback->Lock);
    InitializeListHead(&Callback->RegisteredCallbacks);
    Callback->AllowMultipleCallbacks = *(PBOOLEAN)Context;
    return STATUS_SUCCESS;
}

/* The callbacks that exist from the start. The events that they announce do not happen here. */
static BOOLEAN ObpManyCallbacks = TRUE;
#define OBP_SYSTEM_CALLBACK(Name)                                                                                      \
    {                                                                                                                  \
        .Path = u"\\Callback\\" Name, .Blueprint = {                                                                   \
            &ObpCallbackType,                                                                                          \
            sizeof(CALLBACK_OBJECT),                                                                                   \
            ObpInitializeCallback,                                                                                     \
            &ObpManyCallbacks                                                                                          \
        }                                                                                                              \
    }
static OBP_SYSTEM_OBJECT ObpSystemCallbacks[] = {
    OBP_SYSTEM_CALLBACK(u"SetSystemTime"),
    OBP_SYSTEM_CALLBACK(u"PowerState"),
    OBP_SYSTEM_CALLBACK(u"ProcessorAdd"),
};

static VOID ObpRegisterSystemCallbacks(VOID)
{
    for (ULONG i = 0; i < RTL_NUMBER_OF(ObpSystemCallbacks); i++) {
        ObpRegisterSystemObject(&ObpSystemCallbacks[i]);
    }
}
KI_INITIALIZER(KiInitializeObjects, ObpRegisterSystemCallbacks);

NTSTATUS ExCreateCallback(PCALLBACK_OBJECT *CallbackObject, POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN Create,
                          BOOLEAN AllowMultipleCallbacks)
{
    OBP_BLUEPRINT Blueprint = {&ObpCallbackType, sizeof(CALLBACK_OBJECT), ObpInitializeCallback,
                               &AllowMultipleCallbacks};
    BOOLEAN Named = ObjectAttributes != NULL && ObjectAttributes->ObjectName != NULL;
    NTSTATUS Status = STATUS_UNSUCCESSFUL;
    HANDLE Handle;
    PVOID Object;
    if (Named) {
        Status = ObpOpenHandleAs(KernelMode, &ObpCallbackType, ObjectAttributes, 0, &Handle);
    }
    if (Create && (!Named || Status == STATUS_OBJECT_NAME_NOT_FOUND)) {
        OBJECT_ATTRIBUTES Attributes =
            ObjectAttributes != NULL ? *ObjectAttributes : (OBJECT_ATTRIBUTES){.Length = sizeof(Attributes)};
        Attributes.Attributes |= OBJ_OPENIF; /* another thread may have created it */
        Status = ObpCreateHandleAs(KernelMode, &Blueprint, &Attributes, 0, &Handle);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObReferenceObjectByHandle(Handle, 0, &ObpCallbackType, KernelMode, &Object, NULL);
    ObCloseHandle(Handle, KernelMode);
    if (NT_SUCCESS(Status)) {
        *CallbackObject = Object;
    }
    return Status;
}

PVOID ExRegisterCallback(PCALLBACK_OBJECT CallbackObject, PCALLBACK_FUNCTION CallbackFunction, PVOID CallbackContext)
{
    BOOLEAN Registered;
    KIRQL OldIrql;
    POBP_CALLBACK_REGISTRATION Registration =
        ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(OBP_CALLBACK_REGISTRATION), OBP_TAG_OF_CALLBACK);
    if (Registration == NULL) {
        return NULL;
    }
    Registration->CallbackObject = CallbackObject;
    Registration->CallbackFunction = CallbackFunction;
    Registration->CallbackContext = CallbackContext;
    ObfReferenceObject(CallbackObject);
    KeAcquireSpinLock(&CallbackObject->Lock, &OldIrql);
    Registered = CallbackObject->AllowMultipleCallbacks || IsListEmpty(&CallbackObject->RegisteredCallbacks);
    if (Registered) {
        InsertTailList(&CallbackObject->RegisteredCallbacks, &Registration->Link);
    }
    KeReleaseSpinLock(&CallbackObject->Lock, OldIrql);
    if (!Registered) {
        ObfDereferenceObject(CallbackObject);
        ExFreePool(Registration);
        return NULL;
    }
    return Registration;
}

VOID ExUnregisterCallback(PVOID CallbackRegistration)
{
    POBP_CALLBACK_REGISTRATION Registration = CallbackRegistration;
    PCALLBACK_OBJECT CallbackObject = Registration->CallbackObject;
    KEVENT Unregistered;
    KIRQL OldIrql = KeGetCurrentIrql();
    if (OldIrql > APC_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)CallbackObject, OldIrql, 0, (ULONG_PTR)ExUnregisterCallback);
    }
    KeInitializeEvent(&Unregistered, NotificationEvent, FALSE);
    KeAcquireSpinLock(&CallbackObject->Lock, &OldIrql);
    Registration->Unregistered = &Unregistered;
    BOOLEAN Busy = Registration->Busy != 0;
    if (!Busy) {
        RemoveEntryList(&Registration->Link);
    }
    KeReleaseSpinLock(&CallbackObject->Lock, OldIrql);
    if (Busy) {
        KeWaitForSingleObject(&Unregistered, Executive, KernelMode, FALSE, NULL);
    }
    ExFreePool(Registration);
    ObfDereferenceObject(CallbackObject);
}

/* With the lock held, released meanwhile. */
static VOID ObpCallRegistration(PCALLBACK_OBJECT CallbackObject, POBP_CALLBACK_REGISTRATION Registration,
                                PVOID Argument1, PVOID Argument2, PKIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_CALLBACK Noted;
    Registration->Busy++;
    KeReleaseSpinLock(&CallbackObject->Lock, *OldIrql);
    KiBeginCallback(Thread, &Noted);
    Registration->CallbackFunction(Registration->CallbackContext, Argument1, Argument2);
    KiEndCallback(Thread, &Noted, KiCallbackNotification, (PVOID)Registration->CallbackFunction);
    KeAcquireSpinLock(&CallbackObject->Lock, OldIrql);
    Registration->Busy--;
}

VOID ExNotifyCallback(PVOID CallbackObject, PVOID Argument1, PVOID Argument2)
{
    PCALLBACK_OBJECT Callback = CallbackObject;
    KIRQL OldIrql;
    KeAcquireSpinLock(&Callback->Lock, &OldIrql);
    for (PLIST_ENTRY Link = Callback->RegisteredCallbacks.Flink; Link != &Callback->RegisteredCallbacks;) {
        POBP_CALLBACK_REGISTRATION Registration = CONTAINING_RECORD(Link, OBP_CALLBACK_REGISTRATION, Link);
        if (Registration->Unregistered == NULL) {
            ObpCallRegistration(Callback, Registration, Argument1, Argument2, &OldIrql);
        }
        Link = Link->Flink;
        if (Registration->Unregistered != NULL && Registration->Busy == 0) {
            RemoveEntryList(&Registration->Link);
            KeSetEvent(Registration->Unregistered, IO_NO_INCREMENT, FALSE);
        }
    }
    KeReleaseSpinLock(&Callback->Lock, OldIrql);
}
