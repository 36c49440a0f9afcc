/*
 * dbg.h: assertions, debug output, breakpoints, and the check of pageable code. The macros that are active in checked
 * builds depend on DBG, as on Windows: compile the code under test with -DDBG=1 to have them.
 */
#ifndef INTERLOCK_DBG_H
#define INTERLOCK_DBG_H

#include <stdarg.h>

#include <interlock/ex.h>

#ifndef DBG
#define DBG 0
#endif

/* Components and levels of debug output. */

/* Levels. Up to 31 a level is the number of a bit in the component's mask, above that it is the bits themselves. */
#define DPFLTR_ERROR_LEVEL   0
#define DPFLTR_WARNING_LEVEL 1
#define DPFLTR_TRACE_LEVEL   2
#define DPFLTR_INFO_LEVEL    3
#define DPFLTR_MASK          0x80000000

typedef enum _DPFLTR_TYPE {
    DPFLTR_SYSTEM_ID = 0,
    DPFLTR_SMSS_ID = 1,
    DPFLTR_SETUP_ID = 2,
    DPFLTR_NTFS_ID = 3,
    DPFLTR_FSTUB_ID = 4,
    DPFLTR_CRASHDUMP_ID = 5,
    DPFLTR_CDAUDIO_ID = 6,
    DPFLTR_CDROM_ID = 7,
    DPFLTR_CLASSPNP_ID = 8,
    DPFLTR_DISK_ID = 9,
    DPFLTR_REDBOOK_ID = 10,
    DPFLTR_STORPROP_ID = 11,
    DPFLTR_SCSIPORT_ID = 12,
    DPFLTR_SCSIMINIPORT_ID = 13,
    DPFLTR_CONFIG_ID = 14,
    DPFLTR_I8042PRT_ID = 15,
    DPFLTR_SERMOUSE_ID = 16,
    DPFLTR_LSERMOUS_ID = 17,
    DPFLTR_KBDHID_ID = 18,
    DPFLTR_MOUHID_ID = 19,
    DPFLTR_KBDCLASS_ID = 20,
    DPFLTR_MOUCLASS_ID = 21,
    DPFLTR_TWOTRACK_ID = 22,
    DPFLTR_WMILIB_ID = 23,
    DPFLTR_ACPI_ID = 24,
    DPFLTR_AMLI_ID = 25,
    DPFLTR_HALIA64_ID = 26,
    DPFLTR_VIDEO_ID = 27,
    DPFLTR_SVCHOST_ID = 28,
    DPFLTR_VIDEOPRT_ID = 29,
    DPFLTR_TCPIP_ID = 30,
    DPFLTR_DMSYNTH_ID = 31,
    DPFLTR_NTOSPNP_ID = 32,
    DPFLTR_FASTFAT_ID = 33,
    DPFLTR_SAMSS_ID = 34,
    DPFLTR_PNPMGR_ID = 35,
    DPFLTR_NETAPI_ID = 36,
    DPFLTR_SCSERVER_ID = 37,
    DPFLTR_SCCLIENT_ID = 38,
    DPFLTR_SERIAL_ID = 39,
    DPFLTR_SERENUM_ID = 40,
    DPFLTR_UHCD_ID = 41,
    DPFLTR_RPCPROXY_ID = 42,
    DPFLTR_AUTOCHK_ID = 43,
    DPFLTR_DCOMSS_ID = 44,
    DPFLTR_UNIMODEM_ID = 45,
    DPFLTR_SIS_ID = 46,
    DPFLTR_FLTMGR_ID = 47,
    DPFLTR_WMICORE_ID = 48,
    DPFLTR_BURNENG_ID = 49,
    DPFLTR_IMAPI_ID = 50,
    DPFLTR_SXS_ID = 51,
    DPFLTR_FUSION_ID = 52,
    DPFLTR_IDLETASK_ID = 53,
    DPFLTR_SOFTPCI_ID = 54,
    DPFLTR_TAPE_ID = 55,
    DPFLTR_MCHGR_ID = 56,
    DPFLTR_IDEP_ID = 57,
    DPFLTR_PCIIDE_ID = 58,
    DPFLTR_FLOPPY_ID = 59,
    DPFLTR_FDC_ID = 60,
    DPFLTR_TERMSRV_ID = 61,
    DPFLTR_W32TIME_ID = 62,
    DPFLTR_PREFETCHER_ID = 63,
    DPFLTR_RSFILTER_ID = 64,
    DPFLTR_FCPORT_ID = 65,
    DPFLTR_PCI_ID = 66,
    DPFLTR_DMIO_ID = 67,
    DPFLTR_DMCONFIG_ID = 68,
    DPFLTR_DMADMIN_ID = 69,
    DPFLTR_WSOCKTRANSPORT_ID = 70,
    DPFLTR_VSS_ID = 71,
    DPFLTR_PNPMEM_ID = 72,
    DPFLTR_PROCESSOR_ID = 73,
    DPFLTR_DMSERVER_ID = 74,
    DPFLTR_SR_ID = 75,
    DPFLTR_INFINIBAND_ID = 76,
    DPFLTR_IHVDRIVER_ID = 77,
    DPFLTR_IHVVIDEO_ID = 78,
    DPFLTR_IHVAUDIO_ID = 79,
    DPFLTR_IHVNETWORK_ID = 80,
    DPFLTR_IHVSTREAMING_ID = 81,
    DPFLTR_IHVBUS_ID = 82,
    DPFLTR_HPS_ID = 83,
    DPFLTR_RTLTHREADPOOL_ID = 84,
    DPFLTR_LDR_ID = 85,
    DPFLTR_TCPIP6_ID = 86,
    DPFLTR_ISAPNP_ID = 87,
    DPFLTR_SHPC_ID = 88,
    DPFLTR_STORPORT_ID = 89,
    DPFLTR_STORMINIPORT_ID = 90,
    DPFLTR_PRINTSPOOLER_ID = 91,
    DPFLTR_VSSDYNDISK_ID = 92,
    DPFLTR_VERIFIER_ID = 93,
    DPFLTR_VDS_ID = 94,
    DPFLTR_VDSBAS_ID = 95,
    DPFLTR_VDSDYN_ID = 96,
    DPFLTR_VDSDYNDR_ID = 97,
    DPFLTR_VDSLDR_ID = 98,
    DPFLTR_VDSUTIL_ID = 99,
    DPFLTR_DFRGIFC_ID = 100,
    DPFLTR_DEFAULT_ID = 101,
    DPFLTR_MM_ID = 102,
    DPFLTR_DFSC_ID = 103,
    DPFLTR_WOW64_ID = 104,
    DPFLTR_ALPC_ID = 105,
    DPFLTR_WDI_ID = 106,
    DPFLTR_PERFLIB_ID = 107,
    DPFLTR_KTM_ID = 108,
    DPFLTR_IOSTRESS_ID = 109,
    DPFLTR_HEAP_ID = 110,
    DPFLTR_WHEA_ID = 111,
    DPFLTR_USERGDI_ID = 112,
    DPFLTR_MMCSS_ID = 113,
    DPFLTR_TPM_ID = 114,
    DPFLTR_THREADORDER_ID = 115,
    DPFLTR_ENVIRON_ID = 116,
    DPFLTR_EMS_ID = 117,
    DPFLTR_WDT_ID = 118,
    DPFLTR_FVEVOL_ID = 119,
    DPFLTR_NDIS_ID = 120,
    DPFLTR_NVCTRACE_ID = 121,
    DPFLTR_LUAFV_ID = 122,
    DPFLTR_APPCOMPAT_ID = 123,
    DPFLTR_USBSTOR_ID = 124,
    DPFLTR_SBP2PORT_ID = 125,
    DPFLTR_COVERAGE_ID = 126,
    DPFLTR_CACHEMGR_ID = 127,
    DPFLTR_MOUNTMGR_ID = 128,
    DPFLTR_CFR_ID = 129,
    DPFLTR_TXF_ID = 130,
    DPFLTR_KSECDD_ID = 131,
    DPFLTR_FLTREGRESS_ID = 132,
    DPFLTR_MPIO_ID = 133,
    DPFLTR_MSDSM_ID = 134,
    DPFLTR_UDFS_ID = 135,
    DPFLTR_PSHED_ID = 136,
    DPFLTR_STORVSP_ID = 137,
    DPFLTR_LSASS_ID = 138,
    DPFLTR_SSPICLI_ID = 139,
    DPFLTR_CNG_ID = 140,
    DPFLTR_EXFAT_ID = 141,
    DPFLTR_FILETRACE_ID = 142,
    DPFLTR_XSAVE_ID = 143,
    DPFLTR_SE_ID = 144,
    DPFLTR_DRIVEEXTENDER_ID = 145,
    DPFLTR_ENDOFTABLE_ID
} DPFLTR_TYPE;

INTERLOCK_BEGIN

/*
 * Debug output. Goes to standard error and to the callbacks, at any IRQL; the outputs of two calls never mix. A call
 * prints at most 511 bytes; longer text is cut and ends with a newline. Beside the formats of C: %wZ and %Z for a pointer
 * to a UNICODE_STRING and an ANSI_STRING, %ws, %S and %C for wide text, %I64x, %I32x, %Ix; l is 32 bits; %p has 16
 * digits.
 */

/* Prints with component DPFLTR_DEFAULT_ID and level DPFLTR_INFO_LEVEL. Returns STATUS_SUCCESS. Differs: shown unless
   DbgSetDebugFilterState says otherwise. Since NT 3.1. */
NTSYSAPI ULONG DbgPrint(PCSTR Format, ...);

/* Prints the text if a kernel debugger is attached, and stores the line typed there in Response. There is never one
   here, so it does neither: it stores an empty string if Length permits it, and returns 0. Since NT 3.1. */
NTSYSAPI ULONG DbgPrompt(PCCH Prompt, PCH Response, ULONG Length);

/* Prints if the mask of the component, or that of all components (INTERLOCK_DEBUG_FILTER), has the level's bit. Returns
   STATUS_SUCCESS, also if it prints nothing. Since XP. */
NTSYSAPI ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, ...);
NTSYSAPI ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCCH Format, va_list Arguments);

/* The same, with a text in front. Since XP. */
NTSYSAPI ULONG vDbgPrintExWithPrefix(PCCH Prefix, ULONG ComponentId, ULONG Level, PCCH Format, va_list Arguments);

/* Returns TRUE if the component's mask has the level's bit, FALSE if not, STATUS_INVALID_PARAMETER_1 for an unknown
   component. Since XP. */
NTSYSAPI NTSTATUS DbgQueryDebugFilterState(ULONG ComponentId, ULONG Level);

/* Sets or clears the level's bit in the component's mask. Returns STATUS_INVALID_PARAMETER_1 for an unknown component.
   Differs: needs no privilege. Since XP. */
NTSYSAPI NTSTATUS DbgSetDebugFilterState(ULONG ComponentId, ULONG Level, BOOLEAN State);

typedef VOID (*PDEBUG_PRINT_CALLBACK)(PSTRING Output, ULONG ComponentId, ULONG Level);

/* Registers or removes a routine that receives all output, at the caller's IRQL. A removed routine no longer runs.
   Returns STATUS_INSUFFICIENT_RESOURCES if eight are registered, STATUS_INVALID_PARAMETER to register one twice,
   STATUS_NOT_FOUND to remove one that is not registered. The routine must not remove itself. Since Vista. */
NTSYSAPI NTSTATUS DbgSetDebugPrintCallback(PDEBUG_PRINT_CALLBACK DebugPrintCallback, BOOLEAN Enable);

/* Breakpoints. */

/* Breaks into the debugger, and returns when it continues. Without one it raises STATUS_BREAKPOINT, which is a bugcheck
   if uncaught. Since NT 3.1. */
NTSYSAPI VOID DbgBreakPoint(VOID);

/* The same; the debugger sees the status. Since NT 4.0. */
NTSYSAPI VOID DbgBreakPointWithStatus(ULONG Status);

/* The first is TRUE if no debugger is attached, the second if one is. Differs: up to date after
 * KdRefreshDebuggerNotPresent, which KD_DEBUGGER_ENABLED and KD_DEBUGGER_NOT_PRESENT call. Since NT 4.0. */
extern NTKERNELAPI PBOOLEAN KdDebuggerNotPresent;
extern NTKERNELAPI PBOOLEAN KdDebuggerEnabled;

/* Returns TRUE if no debugger of the host is attached. Since Server 2003. */
NTKERNELAPI BOOLEAN KdRefreshDebuggerNotPresent(VOID);
#define KD_DEBUGGER_ENABLED ((BOOLEAN)!KdRefreshDebuggerNotPresent())
#define KD_DEBUGGER_NOT_PRESENT KdRefreshDebuggerNotPresent()

#if DBG
#define KdPrint(Arguments) DbgPrint Arguments
#define KdPrintEx(Arguments) DbgPrintEx Arguments
#define vKdPrintEx(Arguments) vDbgPrintEx Arguments
#define vKdPrintExWithPrefix(Arguments) vDbgPrintExWithPrefix Arguments
#define KdBreakPoint() DbgBreakPoint()
#define KdBreakPointWithStatus(Status) DbgBreakPointWithStatus(Status)
#else
#define KdPrint(Arguments) ((void)0)
#define KdPrintEx(Arguments) ((void)0)
#define vKdPrintEx(Arguments) ((void)0)
#define vKdPrintExWithPrefix(Arguments) ((void)0)
#define KdBreakPoint() ((void)0)
#define KdBreakPointWithStatus(Status) ((void)0)
#endif

/* Assertions. */

/* Prints the failed assertion and breaks into the debugger. Without one it raises STATUS_BREAKPOINT, which is a
   bugcheck if uncaught. Differs: does not ask what to do. Since NT 3.1. */
NTSYSAPI VOID RtlAssert(PVOID VoidFailedAssertion, PVOID VoidFileName, ULONG LineNumber, PSTR MutableMessage);

/* Internal: ASSERT and similar macros. Returns Holds. */
FORCEINLINE BOOLEAN RtlpAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    if (__builtin_expect(!Holds, 0)) {
        RtlAssert((PVOID)(ULONG_PTR)Expression, (PVOID)(ULONG_PTR)File, Line, (PSTR)(ULONG_PTR)Message);
    }
    return Holds;
}

/* Internal: NT_ASSERT raises STATUS_ASSERTION_FAILURE. Message may be NULL. */
NTSYSAPI VOID RtlpRaiseAssertionFailure(PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message);

/* Internal: NT_ASSERT and similar macros. Returns Holds. */
FORCEINLINE BOOLEAN RtlpNtAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    if (__builtin_expect(!Holds, 0)) {
        RtlpRaiseAssertionFailure(Expression, File, Line, Message);
    }
    return Holds;
}

/* Internal: the RTL_SOFT_ forms only print. Returns Holds. */
NTSYSAPI BOOLEAN RtlpSoftAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message);

/* Internal: the value of a VERIFY macro in free builds. A function, so that the compiler does not warn about an unused
   value. */
FORCEINLINE BOOLEAN RtlpVerified(BOOLEAN Holds)
{
    return Holds;
}

#define RTLP_ASSERT(Form, Message, Expression)                                                                         \
    Form((BOOLEAN)((Expression) ? TRUE : FALSE), #Expression, __FILE__, (ULONG)__LINE__, Message)

#define NT_FRE_ASSERT(Expression) RTLP_ASSERT(RtlpNtAssert, NULL, Expression)
#define NT_FRE_ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpNtAssert, Message, Expression)

#if DBG
#ifndef ASSERT
#define ASSERT(Expression) RTLP_ASSERT(RtlpAssert, NULL, Expression)
#endif
#ifndef ASSERTMSG
#define ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpAssert, Message, Expression)
#endif
#define RTL_VERIFY(Expression) RTLP_ASSERT(RtlpAssert, NULL, Expression)
#define RTL_VERIFYMSG(Message, Expression) RTLP_ASSERT(RtlpAssert, Message, Expression)
#define RTL_SOFT_ASSERT(Expression) RTLP_ASSERT(RtlpSoftAssert, NULL, Expression)
#define RTL_SOFT_ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpSoftAssert, Message, Expression)
#define RTL_SOFT_VERIFY(Expression) RTLP_ASSERT(RtlpSoftAssert, NULL, Expression)
#define RTL_SOFT_VERIFYMSG(Message, Expression) RTLP_ASSERT(RtlpSoftAssert, Message, Expression)
#define NT_ASSERT(Expression) RTLP_ASSERT(RtlpNtAssert, NULL, Expression)
#define NT_ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpNtAssert, Message, Expression)
#define NT_VERIFY(Expression) RTLP_ASSERT(RtlpNtAssert, NULL, Expression)
#define NT_VERIFYMSG(Message, Expression) RTLP_ASSERT(RtlpNtAssert, Message, Expression)
#else
#ifndef ASSERT
#define ASSERT(Expression) ((void)0)
#endif
#ifndef ASSERTMSG
#define ASSERTMSG(Message, Expression) ((void)0)
#endif
#define RTL_VERIFY(Expression) RtlpVerified((BOOLEAN)((Expression) ? TRUE : FALSE))
#define RTL_VERIFYMSG(Message, Expression) RTL_VERIFY(Expression)
#define RTL_SOFT_ASSERT(Expression) ((void)0)
#define RTL_SOFT_ASSERTMSG(Message, Expression) ((void)0)
#define RTL_SOFT_VERIFY(Expression) RTL_VERIFY(Expression)
#define RTL_SOFT_VERIFYMSG(Message, Expression) RTL_VERIFY(Expression)
#define NT_ASSERT(Expression) ((void)0)
#define NT_ASSERTMSG(Message, Expression) ((void)0)
#define NT_VERIFY(Expression) RTL_VERIFY(Expression)
#define NT_VERIFYMSG(Message, Expression) RTL_VERIFY(Expression)
#endif
#define NT_ANALYSIS_ASSUME(Expression) ((void)0)

/* Pageable code. */

/* Internal: PAGED_CODE. In a checked build prints and fails an assertion above APC_LEVEL. In a free build the verifier
   stops such a call with DRIVER_IRQL_NOT_LESS_OR_EQUAL, the bugcheck that follows on Windows if the code is paged out. */
NTKERNELAPI VOID ExpCheckPagedCode(BOOLEAN Checked, PCSTR File, ULONG Line);

#ifndef NOP_FUNCTION
#define NOP_FUNCTION ((void)0)
#endif
/* A block, so that it needs no semicolon, as on Windows. */
#define PAGED_CODE()                                                                                                   \
    {                                                                                                                  \
        ExpCheckPagedCode(DBG != 0, __FILE__, (ULONG)__LINE__);                                                        \
    }
#define PAGED_CODE_LOCKED() NOP_FUNCTION
#define PAGED_ASSERT(Expression) ASSERT(Expression)

#ifndef CODE_SEG
#define CODE_SEG(Segment) /* sections have no effect */
#endif

INTERLOCK_END

#endif
