/* crtdbg.h: the debug heap, which does not exist here: as in a release build, its functions do nothing. */
#ifndef INTERLOCK_WIN32_INCLUDE_CRTDBG_H
#define INTERLOCK_WIN32_INCLUDE_CRTDBG_H

#include <assert.h>
#include <stdio.h>

#define _CRT_WARN 0
#define _CRT_ERROR 1
#define _CRT_ASSERT 2
#define _CRT_ERRCNT 3
#define _CRTDBG_MODE_FILE 0x1
#define _CRTDBG_MODE_DEBUG 0x2
#define _CRTDBG_MODE_WNDW 0x4
#define _CRTDBG_REPORT_MODE (-1)
#define _CRTDBG_INVALID_HFILE ((_HFILE)-1)
#define _CRTDBG_HFILE_ERROR ((_HFILE)-2)
#define _CRTDBG_FILE_STDOUT ((_HFILE)-4)
#define _CRTDBG_FILE_STDERR ((_HFILE)-5)
#define _CRTDBG_REPORT_FILE ((_HFILE)-6)
#define _CRTDBG_ALLOC_MEM_DF 0x01
#define _CRTDBG_DELAY_FREE_MEM_DF 0x02
#define _CRTDBG_CHECK_ALWAYS_DF 0x04
#define _CRTDBG_CHECK_CRT_DF 0x10
#define _CRTDBG_LEAK_CHECK_DF 0x20
#define _CRTDBG_REPORT_FLAG (-1)
#define _FREE_BLOCK 0
#define _NORMAL_BLOCK 1
#define _CRT_BLOCK 2
#define _IGNORE_BLOCK 3
#define _CLIENT_BLOCK 4

typedef void *_HFILE;
typedef struct _CrtMemState {
    size_t lCounts[5];
    size_t lSizes[5];
} _CrtMemState;

#ifdef _DEBUG
#define _ASSERT(Expression) assert(Expression)
#define _ASSERTE(Expression) assert(Expression)
#define _ASSERT_EXPR(Expression, Message) assert(Expression)
#define _RPT_BASE(...) ((void)fprintf(stderr, __VA_ARGS__))
#else
#define _ASSERT(Expression) ((void)0)
#define _ASSERTE(Expression) ((void)0)
#define _ASSERT_EXPR(Expression, Message) ((void)0)
#define _RPT_BASE(...) ((void)0)
#endif
#define _RPT0(Type, Text) _RPT_BASE("%s", Text)
#define _RPT1(Type, ...) _RPT_BASE(__VA_ARGS__)
#define _RPT2(Type, ...) _RPT_BASE(__VA_ARGS__)
#define _RPT3(Type, ...) _RPT_BASE(__VA_ARGS__)
#define _RPT4(Type, ...) _RPT_BASE(__VA_ARGS__)

#define _CrtSetReportMode(Type, Mode) ((void)(Type), (void)(Mode), 0)
#define _CrtSetReportFile(Type, File) ((void)(Type), (void)(File), (_HFILE)0)
#define _CrtSetReportHook(Hook) ((void)(Hook), (void *)0)
#define _CrtSetDbgFlag(Flag) ((void)(Flag), 0)
#define _CrtSetBreakAlloc(Number) ((void)(Number), 0L)
#define _CrtDumpMemoryLeaks() (0)
#define _CrtCheckMemory() (1)
#define _CrtMemCheckpoint(State) ((void)(State))
#define _CrtMemDifference(Result, First, Second) ((void)(Result), (void)(First), (void)(Second), 0)
#define _CrtMemDumpStatistics(State) ((void)(State))
#define _CrtMemDumpAllObjectsSince(State) ((void)(State))
#define _CrtIsValidHeapPointer(Pointer) ((void)(Pointer), 1)
#define _CrtIsValidPointer(Pointer, Size, Writable) ((Pointer) != NULL)
#define _CrtDbgReport(...) (0)
#define _CrtDbgBreak() __builtin_trap()

#endif
