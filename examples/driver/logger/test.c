/* The test of logger.c, which is a driver's source as it is: this file and a line in a build file are all that is added. */
#include "logger.h"

#include <stdio.h>
#include <stdlib.h>

#define WRITERS 4
#define EACH 500

#define CHECK(Condition)                                                                                               \
    do {                                                                                                               \
        if (!(Condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #Condition);                                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct _SEEN {
    ULONG Records;
    ULONG LastLength;
    KIRQL Irql;
    KEVENT Arrived;
} SEEN, *PSEEN;

static VOID Sink(PVOID Context, const LOGGER_RECORD *Record)
{
    PSEEN Seen = (PSEEN)Context;
    Seen->Records += 1;
    Seen->LastLength = Record->Length;
    Seen->Irql = KeGetCurrentIrql();
    KeSetEvent(&Seen->Arrived, IO_NO_INCREMENT, FALSE);
}

static VOID Writer(PVOID Context)
{
    DECLARE_CONST_UNICODE_STRING(Text, L"a record");
    for (ULONG i = 0; i < EACH; i++) {
        KIRQL OldIrql = KeGetCurrentIrql();
        if (i % 2 == 0) {
            KeRaiseIrql(DISPATCH_LEVEL, &OldIrql);
        }
        CHECK(LoggerWrite((PLOGGER)Context, &Text) == STATUS_SUCCESS);
        KeLowerIrql(i % 2 == 0 ? OldIrql : KeGetCurrentIrql());
    }
}

static void RunWriters(PLOGGER Logger)
{
    HANDLE Handles[WRITERS];
    for (ULONG i = 0; i < WRITERS; i++) {
        CHECK(NT_SUCCESS(PsCreateSystemThread(&Handles[i], THREAD_ALL_ACCESS, NULL, NULL, NULL, Writer, Logger)));
    }
    for (ULONG i = 0; i < WRITERS; i++) {
        CHECK(ZwWaitForSingleObject(Handles[i], FALSE, NULL) == STATUS_SUCCESS);
        ZwClose(Handles[i]);
    }
}

int main(void)
{
    DECLARE_CONST_UNICODE_STRING(Short, L"short");
    DECLARE_CONST_UNICODE_STRING(Long, L"This text is longer than a record of the log may be, by far.");
    SEEN Seen = {0, 0, 0, {{{0}, 0, {NULL, NULL}}}};
    PLOGGER Logger;
    KeInitializeEvent(&Seen.Arrived, NotificationEvent, FALSE);

    /* The timer flushes at PASSIVE_LEVEL. */
    CHECK(NT_SUCCESS(LoggerCreate(Sink, &Seen, 2, 1, &Logger)));
    CHECK(LoggerWrite(Logger, &Short) == STATUS_SUCCESS);
    CHECK(KeWaitForSingleObject(&Seen.Arrived, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LoggerDelete(Logger);
    CHECK(Seen.Records == 1 && Seen.LastLength == 5 && Seen.Irql < DISPATCH_LEVEL);

    /* Long text is cut, a full log refuses. */
    CHECK(NT_SUCCESS(LoggerCreate(Sink, &Seen, 2, 1000000, &Logger)));
    CHECK(LoggerWrite(Logger, &Short) == STATUS_SUCCESS);
    CHECK(LoggerWrite(Logger, &Long) == STATUS_BUFFER_OVERFLOW);
    CHECK(LoggerWrite(Logger, &Short) == STATUS_DEVICE_BUSY);
    LoggerDelete(Logger);
    CHECK(Seen.Records == 3 && Seen.LastLength == LOGGER_TEXT_LENGTH);

    /* Writers at both levels; what was written arrives. */
    Seen.Records = 0;
    CHECK(NT_SUCCESS(LoggerCreate(Sink, &Seen, WRITERS * EACH, 1, &Logger)));
    RunWriters(Logger);
    LoggerDelete(Logger);
    CHECK(Seen.Records == WRITERS * EACH);
    puts("logger: ok");
    return 0;
}
