/*
 * notify.c: DllMain and TLS callbacks.
 *
 * The modules are in a list, in the order in which they were attached. Attaching calls them in this order, detaching in
 * the opposite one. A lock is held during the calls, like the loader lock of Windows: a routine that waits for another
 * thread to begin or end deadlocks here as well. It is recursive, since a routine may load another module.
 */
#include <stdlib.h>

#include <interlock/win32/base.h>

#include "../hal/hal.h"
#include "local.h"

#define BASE_PROCESS_ENDS ((PVOID)1) /* Reserved is not NULL */

static RTL_CRITICAL_SECTION BaseLoaderLock = {
    .DebugInfo = (PRTL_CRITICAL_SECTION_DEBUG)(LONG_PTR)-1,
    .LockCount = -1,
    .SpinCount = 2000,
};
static LIST_ENTRY BaseModuleList = {&BaseModuleList, &BaseModuleList};
static volatile BOOLEAN BaseProcessEnds;

static VOID BaseNoticeProcessEnd(VOID)
{
    /* relaxed: destructors run later on this same thread */
    __atomic_store_n(&BaseProcessEnds, TRUE, __ATOMIC_RELAXED);
}

static BOOL BaseCallModule(PINTERLOCK_MODULE Module, DWORD Reason, PVOID Reserved)
{
    if (Module->TlsCallback != NULL) {
        Module->TlsCallback(Module->Base, Reason, Reserved);
        return TRUE;
    }
    return Module->EntryPoint(Module->Base, Reason, Reserved);
}

/* TLS callbacks first, then DllMain. */
static VOID BaseCallModules(DWORD Reason)
{
    BOOLEAN Forward = Reason == DLL_THREAD_ATTACH;
    for (ULONG Pass = 0; Pass < 2; Pass++) {
        PLIST_ENTRY Entry = Forward ? BaseModuleList.Flink : BaseModuleList.Blink;
        while (Entry != &BaseModuleList) {
            PINTERLOCK_MODULE Module = CONTAINING_RECORD(Entry, INTERLOCK_MODULE, Links);
            if ((Module->TlsCallback != NULL) == (Pass == 0) && !Module->NoThreadCalls) {
                BaseCallModule(Module, Reason, NULL);
            }
            Entry = Forward ? Entry->Flink : Entry->Blink;
        }
    }
}

static VOID BaseNotifyThread(DWORD Reason)
{
    /* relaxed: a module that is attached at this moment may count as attached later */
    if (__atomic_load_n(&BaseModuleList.Flink, __ATOMIC_RELAXED) == &BaseModuleList) {
        return;
    }
    RtlEnterCriticalSection(&BaseLoaderLock);
    BaseCallModules(Reason);
    RtlLeaveCriticalSection(&BaseLoaderLock);
}

static VOID BaseThreadBegins(PETHREAD Thread)
{
    UNREFERENCED_PARAMETER(Thread);
    BaseNotifyThread(DLL_THREAD_ATTACH);
}

VOID BaseThreadEnds(PBASE_THREAD Thread)
{
    if (!Thread->Detached) {
        Thread->Detached = TRUE;
        BaseNotifyThread(DLL_THREAD_DETACH);
    }
}

VOID InterlockAttachModule(PINTERLOCK_MODULE Module)
{
    static BOOLEAN Watched; /* under the lock */
    BOOL Attached;
    RtlEnterCriticalSection(&BaseLoaderLock);
    if (!Watched) {
        Watched = TRUE;
        BaseWatchThreadExits();
        PspSetThreadStart(BaseThreadBegins);
        atexit(BaseNoticeProcessEnd);
    }
    Module->Base = HalFindModuleBase(Module);
    Attached = BaseCallModule(Module, DLL_PROCESS_ATTACH, NULL);
    if (Attached) {
        InsertTailList(&BaseModuleList, &Module->Links);
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
    if (!Attached) {
        RtlRaiseStatus(STATUS_DLL_INIT_FAILED);
    }
}

VOID InterlockDetachModule(PINTERLOCK_MODULE Module)
{
    RtlEnterCriticalSection(&BaseLoaderLock);
    if (Module->Links.Flink != NULL) {
        RemoveEntryList(&Module->Links);
        Module->Links.Flink = NULL;
        /* relaxed: set on this same thread, or the process does not end */
        BaseCallModule(Module, DLL_PROCESS_DETACH,
                       __atomic_load_n(&BaseProcessEnds, __ATOMIC_RELAXED) ? BASE_PROCESS_ENDS : NULL);
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
}

VOID InterlockAttachThread(VOID)
{
    BaseNotifyThread(DLL_THREAD_ATTACH);
}

BOOL DisableThreadLibraryCalls(HMODULE hLibModule)
{
    BOOL Found = FALSE;
    RtlEnterCriticalSection(&BaseLoaderLock);
    for (PLIST_ENTRY Entry = BaseModuleList.Flink; Entry != &BaseModuleList; Entry = Entry->Flink) {
        PINTERLOCK_MODULE Module = CONTAINING_RECORD(Entry, INTERLOCK_MODULE, Links);
        if (Module->Base == hLibModule && Module->EntryPoint != NULL) {
            Module->NoThreadCalls = TRUE;
            Found = TRUE;
        }
    }
    RtlLeaveCriticalSection(&BaseLoaderLock);
    if (!Found) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
    }
    return Found;
}
