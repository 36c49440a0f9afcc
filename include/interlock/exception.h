/*
 * exception.h: catching raised statuses in C, in the form of NT code.
 *
 *     __try {
 *         ProbeForRead(Buffer, Length, 1);
 *     } __except (EXCEPTION_EXECUTE_HANDLER) {
 *         return GetExceptionCode();
 *     }
 *
 * return, goto, break and continue leave a body as they leave any block. Differences from a compiler that knows SEH:
 *
 * 1. It catches what Interlock raises (ExRaiseStatus, RtlRaiseStatus and functions documented to raise), not hardware
 *    faults.
 * 2. The filter runs after the stack was unwound to its frame: inner __finally blocks have already run, and
 *    EXCEPTION_CONTINUE_EXECUTION raises STATUS_NONCONTINUABLE_EXCEPTION, as NT does for a raised status.
 * 3. __finally runs when its body ends, on __leave, and when a status is raised. Do not leave such a body by return,
 *    goto, break or continue: they skip it.
 * 4. A local variable that the body changes and that is used after the exception must be volatile, as for setjmp. gcc
 *    finds such variables, and sometimes others, with -Wclobbered.
 * 5. GetExceptionCode() returns what this thread caught last. A handler that calls functions which catch exceptions
 *    themselves reads it first.
 * 6. "if (x) __try { } __except (y) { } else" needs braces around the __try.
 * 7. GetExceptionInformation() describes what this thread raised last; its ContextRecord is NULL.
 *
 * The IRQL is left alone: a handler runs at the level of the raise. In C++ the standard library uses __try and __catch;
 * there INTERLOCK_TRY, INTERLOCK_EXCEPT and INTERLOCK_FINALLY do the same. Destructors of objects between the raise and
 * the handler do not run.
 */
#ifndef INTERLOCK_EXCEPTION_H
#define INTERLOCK_EXCEPTION_H

#include <setjmp.h>

#include <interlock/windef.h>

#define EXCEPTION_EXECUTE_HANDLER 1
#define EXCEPTION_CONTINUE_SEARCH 0
#define EXCEPTION_CONTINUE_EXECUTION (-1)

#define EXCEPTION_NONCONTINUABLE 0x1
#define EXCEPTION_MAXIMUM_PARAMETERS 15

/* windows.h has unsigned codes, the kernel's headers have statuses. */
#ifdef INTERLOCK_WIN32_WINDOWS_H
#define INTERLOCK_EXCEPTION_CODE DWORD
#else
#define INTERLOCK_EXCEPTION_CODE NTSTATUS
#endif

INTERLOCK_BEGIN

typedef struct _EXCEPTION_RECORD {
    INTERLOCK_EXCEPTION_CODE ExceptionCode;
    ULONG ExceptionFlags;
    struct _EXCEPTION_RECORD *ExceptionRecord;
    PVOID ExceptionAddress;
    ULONG NumberParameters;
    ULONG_PTR ExceptionInformation[EXCEPTION_MAXIMUM_PARAMETERS];
} EXCEPTION_RECORD, *PEXCEPTION_RECORD;

C_ASSERT(sizeof(EXCEPTION_RECORD) == 152);

typedef struct _CONTEXT CONTEXT, *PCONTEXT;

/* Registers of a thread. Declared for x86-64 only. */
#if defined(__x86_64__)
#define CONTEXT_AMD64 0x00100000
#define CONTEXT_CONTROL (CONTEXT_AMD64 | 0x1)
#define CONTEXT_INTEGER (CONTEXT_AMD64 | 0x2)
#define CONTEXT_SEGMENTS (CONTEXT_AMD64 | 0x4)
#define CONTEXT_FLOATING_POINT (CONTEXT_AMD64 | 0x8)
#define CONTEXT_DEBUG_REGISTERS (CONTEXT_AMD64 | 0x10)
#define CONTEXT_FULL (CONTEXT_CONTROL | CONTEXT_INTEGER | CONTEXT_FLOATING_POINT)
#define CONTEXT_ALL (CONTEXT_FULL | CONTEXT_SEGMENTS | CONTEXT_DEBUG_REGISTERS)

typedef struct _M128A {
    ULONGLONG Low;
    LONGLONG High;
} DECLSPEC_ALIGN(16) M128A, *PM128A;

typedef struct _XSAVE_FORMAT {
    USHORT ControlWord;
    USHORT StatusWord;
    UCHAR TagWord;
    UCHAR Reserved1;
    USHORT ErrorOpcode;
    ULONG ErrorOffset;
    USHORT ErrorSelector;
    USHORT Reserved2;
    ULONG DataOffset;
    USHORT DataSelector;
    USHORT Reserved3;
    ULONG MxCsr;
    ULONG MxCsr_Mask;
    M128A FloatRegisters[8];
    M128A XmmRegisters[16];
    UCHAR Reserved4[96];
} DECLSPEC_ALIGN(16) XSAVE_FORMAT, *PXSAVE_FORMAT;
typedef XSAVE_FORMAT XMM_SAVE_AREA32, *PXMM_SAVE_AREA32;

struct _CONTEXT {
    ULONG64 P1Home;
    ULONG64 P2Home;
    ULONG64 P3Home;
    ULONG64 P4Home;
    ULONG64 P5Home;
    ULONG64 P6Home;
    ULONG ContextFlags;
    ULONG MxCsr;
    USHORT SegCs;
    USHORT SegDs;
    USHORT SegEs;
    USHORT SegFs;
    USHORT SegGs;
    USHORT SegSs;
    ULONG EFlags;
    ULONG64 Dr0;
    ULONG64 Dr1;
    ULONG64 Dr2;
    ULONG64 Dr3;
    ULONG64 Dr6;
    ULONG64 Dr7;
    ULONG64 Rax;
    ULONG64 Rcx;
    ULONG64 Rdx;
    ULONG64 Rbx;
    ULONG64 Rsp;
    ULONG64 Rbp;
    ULONG64 Rsi;
    ULONG64 Rdi;
    ULONG64 R8;
    ULONG64 R9;
    ULONG64 R10;
    ULONG64 R11;
    ULONG64 R12;
    ULONG64 R13;
    ULONG64 R14;
    ULONG64 R15;
    ULONG64 Rip;
    XMM_SAVE_AREA32 FltSave;
    M128A VectorRegister[26];
    ULONG64 VectorControl;
    ULONG64 DebugControl;
    ULONG64 LastBranchToRip;
    ULONG64 LastBranchFromRip;
    ULONG64 LastExceptionToRip;
    ULONG64 LastExceptionFromRip;
} DECLSPEC_ALIGN(16);

C_ASSERT(sizeof(CONTEXT) == 1232);
#endif

typedef struct _EXCEPTION_POINTERS {
    PEXCEPTION_RECORD ExceptionRecord;
    PCONTEXT ContextRecord;
} EXCEPTION_POINTERS, *PEXCEPTION_POINTERS;

typedef LONG(NTAPI *PVECTORED_EXCEPTION_HANDLER)(struct _EXCEPTION_POINTERS *ExceptionInfo);

typedef struct _KEXCEPTION_FRAME {
    struct _KEXCEPTION_FRAME *Next;
    BOOLEAN Entered;
    jmp_buf Context;
} KEXCEPTION_FRAME, *PKEXCEPTION_FRAME;

typedef struct _KFINALLY_STATE {
    BOOLEAN Raised;
    BOOLEAN Done;
    EXCEPTION_RECORD Exception;
} KFINALLY_STATE, *PKFINALLY_STATE;

/* Internal: __try, __except, __finally, __leave, GetExceptionCode() and GetExceptionInformation() expand to these. */
INTERLOCK_API VOID KeEnterTryFrame(PKEXCEPTION_FRAME Frame);
INTERLOCK_API VOID KeExitTryFrame(PKEXCEPTION_FRAME Frame);
INTERLOCK_API DECLSPEC_NORETURN VOID KeLeaveTryFrame(VOID);
INTERLOCK_API BOOLEAN KeIsExceptionCaught(VOID);
INTERLOCK_API BOOLEAN KeFilterException(LONG Disposition);
INTERLOCK_API NTSTATUS KeGetExceptionCode(VOID);
INTERLOCK_API PEXCEPTION_POINTERS KeGetExceptionInformation(VOID);
INTERLOCK_API KFINALLY_STATE KeBeginFinally(VOID);
INTERLOCK_API BOOLEAN KeContinueFinally(PKFINALLY_STATE State);

INTERLOCK_END

/* INTERLOCK_TRY opens a block that holds the frame; INTERLOCK_EXCEPT and INTERLOCK_FINALLY close it. */
#define INTERLOCK_TRY INTERLOCK_TRY_IN(INTERLOCK_JOIN(InterlockFrame, __LINE__))
#define INTERLOCK_JOIN(a, b) INTERLOCK_JOIN_EXPANDED(a, b)
#define INTERLOCK_JOIN_EXPANDED(a, b) a##b
#define INTERLOCK_TRY_IN(Frame)                                                                                        \
    {                                                                                                                  \
        KEXCEPTION_FRAME Frame __attribute__((cleanup(KeExitTryFrame)));                                              \
        KeEnterTryFrame(&Frame);                                                                                       \
        if (setjmp(Frame.Context) == 0)

#define INTERLOCK_EXCEPT(...)                                                                                          \
    }                                                                                                                  \
    if (KeIsExceptionCaught() && KeFilterException((__VA_ARGS__)))

#define INTERLOCK_FINALLY                                                                                              \
    }                                                                                                                  \
    for (KFINALLY_STATE InterlockFinally = KeBeginFinally(); KeContinueFinally(&InterlockFinally);)

#define INTERLOCK_LEAVE KeLeaveTryFrame()

#define GetExceptionCode() ((INTERLOCK_EXCEPTION_CODE)KeGetExceptionCode())
#define GetExceptionInformation() KeGetExceptionInformation()
#define AbnormalTermination() (InterlockFinally.Raised)

#ifndef __cplusplus
#define __try INTERLOCK_TRY
#define __except(...) INTERLOCK_EXCEPT(__VA_ARGS__)
#define __finally INTERLOCK_FINALLY
#define __leave INTERLOCK_LEAVE
#endif

#endif
