/*
 * echotest.c: the test of echo.c. It takes the part of the I/O manager: it loads the driver by its DriverEntry, sends
 * requests, cancels them, and unloads the driver. The rules of the I/O manager are checked on the way: a violation is a
 * bugcheck.
 */
#include <ntddk.h>

#include <stdio.h>

DRIVER_INITIALIZE DriverEntry;

static int failures;

static void expect(int condition, const char *what)
{
    printf("%s: %s\n", condition ? "ok" : "FAILED", what);
    failures += !condition;
}

int main(void)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(u"\\DosDevices\\Echo");
    PDRIVER_OBJECT driver;
    PFILE_OBJECT file;
    IO_STATUS_BLOCK result;
    char hello[] = "hello", buffer[16] = "";

    expect(IoTestLoadDriver(DriverEntry, "Echo", &driver) == STATUS_SUCCESS, "the driver loads");
    expect(IoTestOpenByName(&name, &file) == STATUS_SUCCESS, "its device opens by name");

    PIO_TEST_REQUEST read = IoTestRead(file, buffer, sizeof(buffer), 0);
    expect(IoTestWasPended(read) && !IoTestIsDone(read), "a read waits for data");
    PIO_TEST_REQUEST write = IoTestWrite(file, hello, sizeof(hello), 0);
    expect(IoTestFinish(write, &result) == STATUS_SUCCESS && result.Information == sizeof(hello), "a write stores it");
    expect(IoTestFinish(read, &result) == STATUS_SUCCESS && result.Information == sizeof(hello), "the read gets it");
    expect(memcmp(buffer, hello, sizeof(hello)) == 0, "it is the same");

    read = IoTestRead(file, buffer, sizeof(buffer), 0);
    expect(IoTestCancel(read), "a waiting read can be cancelled");
    expect(IoTestFinish(read, NULL) == STATUS_CANCELLED, "and ends as cancelled");

    read = IoTestRead(file, buffer, sizeof(buffer), 0);
    expect(IoTestUnloadDriver(driver) == STATUS_DEVICE_BUSY, "an open device keeps the driver");
    IoTestClose(file);
    expect(IoTestFinish(read, NULL) == STATUS_CANCELLED, "closing cancels the reads of the file");
    expect(IoTestUnloadDriver(driver) == STATUS_SUCCESS, "the driver unloads");
    return failures != 0;
}
