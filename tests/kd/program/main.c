/*
 * main.c: a program whose threads wait for each other in known ways. The argument is a scene. It prints its locks and
 * threads, one per line, then "ready", and exits when its standard input ends.
 */
#include "program.h"

#include "ke/debugdata.h"

/* Unreadable for a debugger. */

static void other_version(void)
{
    strcpy(KdDebuggerDataBlock.Version, "9.9.9");
}

static void other_layout(void)
{
    KdDebuggerDataBlock.LayoutHash ^= 1;
}

/* As if a structure of the executive had another size. */
static void other_ex_layout(void)
{
    static KD_ROOT copy[64];
    static ULONG layout[64];
    size_t count = (size_t)(KdDebuggerDataBlock.EndOfRoots - KdDebuggerDataBlock.FirstRoot);

    memcpy(copy, KdDebuggerDataBlock.FirstRoot, count * sizeof(KD_ROOT));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(copy[i].Name, "ExpWaiterLayout") == 0) {
            memcpy(layout, copy[i].Address, copy[i].Size);
            layout[1] += 8;
            copy[i].Address = layout;
        }
    }
    KdDebuggerDataBlock.FirstRoot = copy;
    KdDebuggerDataBlock.EndOfRoots = copy + count;
}

static void not_ready(void)
{
    KdDebuggerDataBlock.Ready = 0;
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"resources", crossed_resources},
    {"srw", srw_against_section},
    {"contended-srw", contended_srw},
    {"wait-all", wait_all},
    {"wait-any", wait_any},
    {"sleeping-owner", sleeping_owner},
    {"orphan", orphan},
    {"orphan-behind", orphan_behind},
    {"join", join_deadlock},
    {"kernel-locks", kernel_locks},
    {"dpc", blocking_dpc},
    {"queued-locks", queued_locks},
    {"zoo", zoo},
    {"shared-bucket", shared_bucket},
    {"busy", busy},
    {"nameless", nameless},
    {"healthy", healthy},
    {"busy-deadlock", busy_deadlock},
    {"handed-over", handed_over},
    {"other-version", other_version},
    {"other-layout", other_layout},
    {"not-ready", not_ready},
    {"rtl-resource", rtl_resource_against_section},
    {"service", service},
    {"crowd", crowd},
    {"fleet", fleet},
    {"turns", turns},
    {"fork", forked},
    {"fast-resources", crossed_fast_resources},
    {"condition-cycle", condition_cycle},
    {"condition-chain", condition_chain},
    {"without-main", without_main},
    {"other-ex-layout", other_ex_layout},
    {"shared-lock", shared_lock},
    {"shared-choice", shared_choice},
    {"shared-mixed", shared_mixed},
    {"shared-busy", shared_busy},
    {"pool", pool_memory},
    {"many", many_objects},
    {"innocent", innocent},
};

int main(int argc, char **argv)
{
    prepare();
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        if (argc == 2 && strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].run();
            puts("ready");
            obey();
            _exit(0);
        }
    }
    return 2;
}
