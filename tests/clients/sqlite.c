/*
 * sqlite.c: SQLite with its Win32 mutexes (mutex_w32.c) and threads (threads.c). Files are out of scope: the demonstration
 * VFS of SQLite's sources replaces os_win.c, and the other functions that the two need of that file are here.
 */
#include <windows.h>

#include <stdio.h>
#include <string.h>

#include "sqlite3.h"

#define THREADS 8
#define ROUNDS 300

sqlite3_vfs *sqlite3_demovfs(void);

/* In place of os_win.c. */

static int (*open_named)(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out);

/* Temporary files have no name, for which the demonstration VFS has no answer. */
static int open_any(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    static LONG number;
    char path[64];

    snprintf(path, sizeof(path), "temporary-%d", (int)InterlockedIncrement(&number));
    return open_named(vfs, name != NULL ? name : path, file, flags, out);
}

int sqlite3_os_init(void)
{
    sqlite3_vfs *vfs = sqlite3_demovfs();

    open_named = vfs->xOpen;
    vfs->xOpen = open_any;
    return sqlite3_vfs_register(vfs, 1);
}

int sqlite3_os_end(void)
{
    return SQLITE_OK;
}

int sqlite3_win32_is_nt(void)
{
    return 1;
}

void sqlite3_win32_sleep(DWORD milliseconds)
{
    Sleep(milliseconds);
}

DWORD sqlite3Win32Wait(HANDLE object)
{
    return WaitForSingleObjectEx(object, INFINITE, TRUE);
}

/* Tests. */

typedef struct worker {
    HANDLE thread;
    sqlite3 *database;
    sqlite3_mutex *mutex;
    int *counter;
    int failures;
} worker;

static int value(sqlite3 *database, const char *query)
{
    sqlite3_stmt *statement = NULL;
    int result = -1;

    if (sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        result = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return result;
}

static int run(LPTHREAD_START_ROUTINE routine, worker *workers)
{
    int failures = 0;

    for (int i = 0; i < THREADS; i++)
        workers[i].thread = CreateThread(NULL, 0, routine, &workers[i], 0, NULL);
    for (int i = 0; i < THREADS; i++) {
        failures += WaitForSingleObject(workers[i].thread, INFINITE) != WAIT_OBJECT_0;
        CloseHandle(workers[i].thread);
        failures += workers[i].failures;
    }
    return failures;
}

static DWORD WINAPI insert(void *context)
{
    worker *self = context;

    for (int i = 0; i < ROUNDS; i++) {
        int status;

        do
            status = sqlite3_exec(self->database, "INSERT INTO t VALUES(randomblob(20))", NULL, NULL, NULL);
        while (status == SQLITE_LOCKED || status == SQLITE_BUSY);
        self->failures += status != SQLITE_OK;
    }
    return 0;
}

static int one_connection(void)
{
    worker workers[THREADS] = {0};
    sqlite3 *database;
    int failures;

    sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL);
    sqlite3_exec(database, "CREATE TABLE t(x)", NULL, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        workers[i].database = database;
    failures = run(insert, workers);
    failures += value(database, "SELECT count(*) FROM t") != THREADS * ROUNDS;
    sqlite3_close(database);
    return failures == 0;
}

static int shared_cache(void)
{
    worker workers[THREADS] = {0};
    int failures = 0;

    for (int i = 0; i < THREADS; i++)
        failures += sqlite3_open_v2("file:shared?mode=memory&cache=shared", &workers[i].database,
                                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL) != SQLITE_OK;
    sqlite3_exec(workers[0].database, "CREATE TABLE t(x)", NULL, NULL, NULL);
    failures += run(insert, workers);
    failures += value(workers[1].database, "SELECT count(*) FROM t") != THREADS * ROUNDS;
    for (int i = 0; i < THREADS; i++)
        sqlite3_close(workers[i].database);
    return failures == 0;
}

static DWORD WINAPI count(void *context)
{
    worker *self = context;

    for (int i = 0; i < ROUNDS * 100; i++) {
        if (i % 3 != 0 || sqlite3_mutex_try(self->mutex) != SQLITE_OK)
            sqlite3_mutex_enter(self->mutex);
        ++*self->counter;
        sqlite3_mutex_leave(self->mutex);
    }
    return 0;
}

static int mutex(int kind)
{
    worker workers[THREADS] = {0};
    sqlite3_mutex *lock = sqlite3_mutex_alloc(kind);
    int counter = 0, failures;

    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker){.mutex = lock, .counter = &counter};
    failures = run(count, workers);
    if (kind == SQLITE_MUTEX_FAST || kind == SQLITE_MUTEX_RECURSIVE)
        sqlite3_mutex_free(lock);
    return failures == 0 && counter == THREADS * ROUNDS * 100;
}

static int fast_mutex(void)
{
    return mutex(SQLITE_MUTEX_FAST);
}

static int recursive_mutex(void)
{
    return mutex(SQLITE_MUTEX_RECURSIVE);
}

static int static_mutex(void)
{
    return mutex(SQLITE_MUTEX_STATIC_APP1);
}

/* Rows that do not come in order; the sorter has threads of its own. */
static int sorter(void)
{
    sqlite3_stmt *statement = NULL;
    sqlite3 *database;
    int rows = 0, wrong = 0, threads;
    sqlite3_int64 last = -1;

    sqlite3_open("sorted.db", &database);
    sqlite3_exec(database, "PRAGMA journal_mode=OFF; PRAGMA cache_size=20; PRAGMA cache_spill=20; PRAGMA threads=4;", NULL, NULL, NULL);
    threads = value(database, "PRAGMA threads");
    sqlite3_prepare_v2(database, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
                                 "SELECT i * 7919 % 200003 AS k, randomblob(30) FROM n ORDER BY k", -1, &statement, NULL);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        wrong += sqlite3_column_int64(statement, 0) < last;
        last = sqlite3_column_int64(statement, 0);
        rows++;
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return threads == 4 && rows == 200000 && wrong == 0;
}

static DWORD WINAPI interrupt(void *context)
{
    Sleep(100);
    sqlite3_interrupt(context);
    return 0;
}

static int interrupted(void)
{
    HANDLE thread;
    sqlite3 *database;
    int status;

    sqlite3_open(":memory:", &database);
    thread = CreateThread(NULL, 0, interrupt, database, 0, NULL);
    status = sqlite3_exec(database, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", NULL,
                          NULL, NULL);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    sqlite3_close(database);
    return status == SQLITE_INTERRUPT;
}

int main(void)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } tests[] = {{"one connection, 8 threads", one_connection}, {"a shared cache, 8 connections", shared_cache},
                 {"fast mutex", fast_mutex},     {"recursive mutex", recursive_mutex}, {"static mutex", static_mutex},
                 {"the sorter's threads", sorter}, {"interrupt", interrupted}};
    int failed = 0;

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        int passed = tests[i].run();

        printf("%s %s\n", passed ? "ok" : "not ok", tests[i].name);
        failed += !passed;
    }
    return failed != 0;
}
