/* debugdata.c: the block that a debugger finds first. */
#include "debugdata.h"

extern const KD_ROOT __start_interlock_kd[] __attribute__((visibility("hidden")));
extern const KD_ROOT __stop_interlock_kd[] __attribute__((visibility("hidden")));

KD_DEBUGGER_DATA KdDebuggerDataBlock = {
    .Magic = KD_DEBUGGER_DATA_MAGIC,
    .Self = &KdDebuggerDataBlock,
    .Size = sizeof(KD_DEBUGGER_DATA),
    .Version = INTERLOCK_VERSION,
    .FirstRoot = __start_interlock_kd,
    .EndOfRoots = __stop_interlock_kd,
};

KD_REGISTER_ROOT(KiThreadChunk);
KD_REGISTER_ROOT(KiThreadSlotsUsed);
KD_REGISTER_ROOT(KiProcessorBlock);
KD_REGISTER_ROOT(KeNumberProcessors);
KD_REGISTER_ROOT(KiInitialProcessSlot);
KD_REGISTER_ROOT(KiForkDepth);
KD_REGISTER_ROOT(KiVerifierEnabled);

VOID KdInitSystem(VOID)
{
    KdDebuggerDataBlock.LayoutHash = KdpLayoutHash();
    KdDebuggerDataBlock.Ready = TRUE;
}
