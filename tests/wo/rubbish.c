/* Random bytes in the file of a world, under running processes: each call returns, with a status. */
#include "processes.h"

#include <uchar.h>

static PWO_VIEW view;

static NTSTATUS create(WO_INDEX directory_index, char16_t letter, WO_TYPE type, WO_INDEX *object)
{
    char16_t name[] = {u'n', letter};
    UNICODE_STRING string = {sizeof(name), sizeof(name), (PWSTR)name};
    return WoCreateName(view, &(WO_LOOKUP){directory_index, &string, TRUE}, &(WO_NEW){.Type = type}, 1, object);
}

static void drop(WO_INDEX object)
{
    WoChangeHandles(view, object, -1);
    WoDereferenceObject(view, object);
}

static void ask_everything(WO_INDEX object, WO_INDEX directory_index)
{
    WCHAR text[100];
    ULONG length;
    WO_TYPE type;
    WO_REQUEST request = {.Kind = WoExportHandle};
    WoQueryName(view, object, text, 100, &length);
    WoQueryHandleCount(view, object);
    WoQueryTarget(view, object, text, 100, &length);
    for (ULONG i = 0; WoQueryEntry(view, directory_index, i, text, 100, &length, &type) == STATUS_SUCCESS && i < 20;)
        i++;
    WoRequest(view, (ULONG)getppid(), &request);
}

static void use(void *argument)
{
    test_random random;
    (void)argument;
    if (!NT_SUCCESS(WoOpenView(WoLocal, &view)))
        return;
    random_seed(&random, (uint64_t)getpid());
    /* Random bytes may also mark a damaged world, whose file is removed, as sound: then it gets no more of them. */
    ULONGLONG end = HalDispatch.QueryInterruptTime() + 5000000;
    while (!WoIsPoisoned(view) && HalDispatch.QueryInterruptTime() < end) {
        WO_INDEX object, directory_index, in;
        char ticket[WO_TICKET_LENGTH];
        if (!NT_SUCCESS(create(0, (char16_t)(u'a' + random_below(&random, 8)), WoSynchronizationEvent, &object)))
            continue;
        if (NT_SUCCESS(create(0, u'-', WoDirectory, &directory_index))) {
            if (NT_SUCCESS(create(directory_index, (char16_t)(u'a' + random_below(&random, 8)), WoSemaphore, &in))) {
                ask_everything(in, directory_index);
                drop(in);
            }
            drop(directory_index);
        }
        WO_INHERITED handle = {4, object, 0, 0};
        if (NT_SUCCESS(WoPrepareChild(view, &handle, 1, ticket)))
            WoAbandonChild(view, ticket);
        drop(object);
    }
}

/* Writes mostly to used parts of the file. */
static void spoil(const char *path, test_random *random)
{
    int file = open(path, O_RDWR);
    struct stat status;
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && status.st_size != 0) {
        unsigned count = 1 + random_below(random, 64);
        while (count-- != 0) {
            uint64_t word = random_next(random) >> random_below(random, 64);
            size_t first = WO_FIRST_RECORD * (size_t)WO_UNIT;
            size_t where = random_below(random, 3) == 0   ? random_below(random, (uint32_t)first)
                           : random_below(random, 2) == 0 ? random_below(random, 512)
                                                          : first + random_below(random, 8192);
            ssize_t written = pwrite(file, &word, 1 + random_below(random, 8), (off_t)where);
            (void)written;
        }
    }
    close(file);
}

static void every_call_returns(void **state)
{
    test_random random;
    char path[512];
    (void)state;
    random_seed(&random, (uint64_t)time(NULL));
    print_message("# seed %llu\n", (unsigned long long)random.state);
    for (unsigned long round = 0; round < test_rounds(100); round++) {
        pid_t children[3];
        for (unsigned i = 0; i < 3; i++)
            children[i] = start(use, NULL);
        for (unsigned left = 3; left != 0;) {
            nap((long)random_below(&random, 3000) * MICROSECOND);
            if (find_world_file(path))
                spoil(path, &random);
            for (unsigned i = 0; i < 3; i++) {
                int status;
                if (children[i] != 0 && waitpid(children[i], &status, WNOHANG) == children[i]) {
                    assert_int_equal(status, 0);
                    children[i] = 0;
                    left--;
                }
            }
        }
        if (find_world_file(path))
            unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_returns),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
