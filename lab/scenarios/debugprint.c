/* A callback of DbgPrint that is removed while a thread prints: once it is removed, it neither runs nor is called again. */
#include <interlock/lab.h>

#include <ntifs.h>

static int used; /* a plain variable: the explorer reports an access that the removal does not order */

static VOID use(PSTRING text, ULONG component, ULONG level)
{
    UNREFERENCED_PARAMETER(text);
    UNREFERENCED_PARAMETER(component);
    UNREFERENCED_PARAMETER(level);
    LabAssert(used == 0);
}

static void setup(void)
{
    LabAssert(DbgSetDebugPrintCallback(use, TRUE) == STATUS_SUCCESS);
}

static void print(void)
{
    DbgPrintEx(DPFLTR_DEFAULT_ID, DPFLTR_ERROR_LEVEL, ""); /* the empty text: this program's output stays readable */
}

static void stop_using(void)
{
    LabAssert(DbgSetDebugPrintCallback(use, FALSE) == STATUS_SUCCESS);
    used = 1;
}
LAB_SCENARIO(debug_callback_removed, .Setup = setup, .Threads = {print, stop_using, print});
