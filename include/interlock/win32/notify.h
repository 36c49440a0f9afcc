/*
 * win32/notify.h: DllMain and TLS callbacks. A loader of Windows finds them in a module by itself. Here a program or a
 * shared object names them once, at file scope:
 *
 *     BOOL WINAPI DllMain(HINSTANCE Module, DWORD Reason, LPVOID Reserved);
 *     INTERLOCK_DLL_MAIN(DllMain);
 *     INTERLOCK_TLS_CALLBACK(OnThread);
 *
 * Both are called as on Windows, one at a time under a recursive lock:
 * DLL_PROCESS_ATTACH  by a constructor of the module. DllMain returns FALSE: STATUS_DLL_INIT_FAILED is raised.
 * DLL_THREAD_ATTACH   on each thread that the library creates, before its routine; never on the thread that has loaded
 *                     the module. A thread of the host calls InterlockAttachThread if it wants this.
 * DLL_THREAD_DETACH   on each thread of the library or of the host that ends after the library knew it, after the
 *                     callbacks of fiber-local storage; not on terminated threads.
 * DLL_PROCESS_DETACH  by a destructor of the module. Reserved is NULL if the module is unloaded, not NULL if the process
 *                     ends.
 * TLS callbacks are called before DllMain.
 */
#ifndef INTERLOCK_WIN32_NOTIFY_H
#define INTERLOCK_WIN32_NOTIFY_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

#define DLL_PROCESS_DETACH 0
#define DLL_PROCESS_ATTACH 1
#define DLL_THREAD_ATTACH 2
#define DLL_THREAD_DETACH 3

typedef VOID(NTAPI *PIMAGE_TLS_CALLBACK)(PVOID DllHandle, DWORD Reason, PVOID Reserved);

/* One notified routine of a module; one of the two is NULL. The macros define them. */
typedef struct _INTERLOCK_MODULE {
    LIST_ENTRY Links;
    BOOL(WINAPI *EntryPoint)(HINSTANCE Module, DWORD Reason, LPVOID Reserved);
    PIMAGE_TLS_CALLBACK TlsCallback;
    HMODULE Base;           /* where the host has mapped the module */
    BOOLEAN NoThreadCalls;  /* DisableThreadLibraryCalls */
} INTERLOCK_MODULE, *PINTERLOCK_MODULE;

#define INTERLOCK_NOTIFY(Name, EntryPoint, TlsCallback)                                                                \
    static INTERLOCK_MODULE InterlockModule##Name = {{NULL, NULL}, EntryPoint, TlsCallback, NULL, FALSE};              \
    __attribute__((constructor)) static VOID InterlockAttach##Name(VOID)                                               \
    {                                                                                                                  \
        InterlockAttachModule(&InterlockModule##Name);                                                                 \
    }                                                                                                                  \
    __attribute__((destructor)) static VOID InterlockDetach##Name(VOID)                                                \
    {                                                                                                                  \
        InterlockDetachModule(&InterlockModule##Name);                                                                 \
    }                                                                                                                  \
    C_ASSERT(sizeof(InterlockModule##Name) != 0)
#define INTERLOCK_DLL_MAIN(Function) INTERLOCK_NOTIFY(Function, Function, NULL)
#define INTERLOCK_TLS_CALLBACK(Function) INTERLOCK_NOTIFY(Function, NULL, Function)

/* Notifications. */

/* Adds a routine and calls it with DLL_PROCESS_ATTACH. Raises STATUS_DLL_INIT_FAILED if it returns FALSE. Only in
   Interlock. */
WINBASEAPI VOID InterlockAttachModule(PINTERLOCK_MODULE Module);

/* Calls a routine with DLL_PROCESS_DETACH and removes it. Only in Interlock. */
WINBASEAPI VOID InterlockDetachModule(PINTERLOCK_MODULE Module);

/* Calls all routines with DLL_THREAD_ATTACH, for a thread that the library has not created. Only in Interlock. */
WINBASEAPI VOID InterlockAttachThread(VOID);

/* Ends the thread notifications of a module. Fails with ERROR_INVALID_PARAMETER if it has none. Differs: knows modules
   with INTERLOCK_DLL_MAIN; TLS callbacks do not matter. Since NT 3.5. */
WINBASEAPI BOOL WINAPI DisableThreadLibraryCalls(HMODULE hLibModule);

INTERLOCK_END

#endif
