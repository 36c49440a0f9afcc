/* diag.c: reports on standard error, stack traces and the names of addresses, the debugger, and the end of the process. */
#include "halp.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Names of addresses in this process, for reports.
 *
 * The report of a bugcheck is written by a process that may be in any state, so nothing here allocates. The loader's
 * tables show which object contains an address. A name comes from the object's file: its full symbol table, which has
 * static functions, or if it was stripped the table of its exports. Both are read in pieces on the stack: a mapping of
 * a file that is truncated meanwhile would fault.
 *
 * A return address belongs to the call before it. It may be the first address of the next function, if the call does not
 * return, so the name of a return address is that of the byte before it.
 */

#define SYMBOLS_IN_BLOCK 64
#define LONGEST_SYMBOL 256
#define THIS_PROGRAM "/proc/self/exe"

typedef struct _HALP_OBJECT {
    ULONG64 Address;                /* in: what is searched */
    ULONG64 Bias;                   /* of the file's addresses */
    BOOLEAN Found;
    BOOLEAN IsProgram;
    ULONG Visited;
    CHAR Path[HAL_LONGEST_PATH];
} HALP_OBJECT, *PHALP_OBJECT;

typedef struct _HALP_SYMBOL {
    ULONG64 Start;                  /* in the file */
    CHAR Name[LONGEST_SYMBOL];
} HALP_SYMBOL, *PHALP_SYMBOL;

/* The objects of the process. */

static int HalpVisitObject(struct dl_phdr_info *Info, size_t Size, void *Context)
{
    PHALP_OBJECT Object = Context;

    UNREFERENCED_PARAMETER(Size);
    Object->Visited += 1;
    for (ULONG Index = 0; Index < Info->dlpi_phnum; Index++) {
        const ElfW(Phdr) *Segment = &Info->dlpi_phdr[Index];
        ULONG64 Begin = Info->dlpi_addr + Segment->p_vaddr;

        if (Segment->p_type == PT_LOAD && Object->Address - Begin < Segment->p_memsz) {
            Object->Found = TRUE;
            Object->Bias = Info->dlpi_addr;
            Object->IsProgram = Object->Visited == 1; /* the loader lists it first */
            snprintf(Object->Path, sizeof(Object->Path), "%s", Object->IsProgram ? THIS_PROGRAM : Info->dlpi_name);
            return 1;
        }
    }
    return 0;
}

static BOOLEAN HalpFindObject(ULONG64 Address, PHALP_OBJECT Object)
{
    *Object = (HALP_OBJECT){.Address = Address};
    dl_iterate_phdr(HalpVisitObject, Object);
    return Object->Found;
}

/* Without its folder. */
static VOID HalpNameObject(const HALP_OBJECT *Object, PSTR Buffer, SIZE_T Size)
{
    CHAR Path[HAL_LONGEST_PATH];
    PCSTR Slash;

    snprintf(Path, sizeof(Path), "%s", Object->Path);
    if (Object->IsProgram) {
        long Length = HalpCall(SYS_readlinkat, AT_FDCWD, THIS_PROGRAM, Path, sizeof(Path) - 1);
        Path[Length > 0 ? Length : 0] = '\0';
    }
    Slash = strrchr(Path, '/');
    snprintf(Buffer, Size, "%.*s", (int)Size - 1, Slash != NULL ? Slash + 1 : Path);
}

/* Symbols of a file. */

static BOOLEAN HalpReadAt(int File, ULONG64 Offset, PVOID Buffer, SIZE_T Size)
{
    return HalpCall(SYS_pread64, File, Buffer, Size, Offset) == (long)Size;
}

/* The full table, else that of the exports. FALSE: it has neither. */
static BOOLEAN HalpFindSymbolTable(int File, ElfW(Shdr) *Symbols, ElfW(Shdr) *Names)
{
    ElfW(Ehdr) Header;
    ElfW(Shdr) Section;
    BOOLEAN Found = FALSE;

    if (!HalpReadAt(File, 0, &Header, sizeof(Header)) || memcmp(Header.e_ident, ELFMAG, SELFMAG) != 0 ||
        Header.e_shentsize != sizeof(Section)) {
        return FALSE;
    }
    for (ULONG Index = 0; Index < Header.e_shnum; Index++) {
        if (!HalpReadAt(File, Header.e_shoff + Index * sizeof(Section), &Section, sizeof(Section))) {
            return FALSE;
        }
        if (Section.sh_type == SHT_SYMTAB || (Section.sh_type == SHT_DYNSYM && !Found)) {
            *Symbols = Section;
            Found = TRUE;
        }
    }
    return Found && Symbols->sh_entsize == sizeof(ElfW(Sym)) &&
           HalpReadAt(File, Header.e_shoff + Symbols->sh_link * sizeof(Section), Names, sizeof(*Names));
}

static BOOLEAN HalpHasAddress(const ElfW(Sym) *Symbol, ULONG64 Address)
{
    ULONG Type = ELF64_ST_TYPE(Symbol->st_info);

    return (Type == STT_FUNC || Type == STT_OBJECT || Type == STT_GNU_IFUNC || Type == STT_NOTYPE) &&
           Symbol->st_shndx != SHN_UNDEF && Address - Symbol->st_value < Symbol->st_size;
}

/* The smallest of the file's symbols that contain the address. */
static BOOLEAN HalpSearchFile(int File, ULONG64 Address, PHALP_SYMBOL Found)
{
    ElfW(Shdr) Table = {.sh_type = SHT_NULL}, Names;
    ElfW(Sym) Block[SYMBOLS_IN_BLOCK], Best = {.st_size = 0};
    ULONG64 Count;

    if (!HalpFindSymbolTable(File, &Table, &Names)) {
        return FALSE;
    }
    Count = Table.sh_size / sizeof(ElfW(Sym));
    for (ULONG64 First = 0; First < Count; First += SYMBOLS_IN_BLOCK) {
        ULONG64 InBlock = Count - First < SYMBOLS_IN_BLOCK ? Count - First : SYMBOLS_IN_BLOCK;

        if (!HalpReadAt(File, Table.sh_offset + First * sizeof(ElfW(Sym)), Block, InBlock * sizeof(ElfW(Sym)))) {
            return FALSE;
        }
        for (ULONG64 Index = 0; Index < InBlock; Index++) {
            if (HalpHasAddress(&Block[Index], Address) && (Best.st_size == 0 || Block[Index].st_size < Best.st_size)) {
                Best = Block[Index];
            }
        }
    }
    if (Best.st_size == 0) {
        return FALSE;
    }
    Found->Start = Best.st_value;
    memset(Found->Name, 0, sizeof(Found->Name));
    return Best.st_name < Names.sh_size &&
           HalpCall(SYS_pread64, File, Found->Name, sizeof(Found->Name) - 1, Names.sh_offset + Best.st_name) > 0;
}

static BOOLEAN HalpFindSymbol(const HALP_OBJECT *Object, ULONG64 Address, PHALP_SYMBOL Symbol)
{
    int File = HalpOpenFile(Object->Path, O_RDONLY);
    BOOLEAN Found = File >= 0 && HalpSearchFile(File, Address - Object->Bias, Symbol);

    if (File >= 0) {
        HalCloseDescriptor(File);
    }
    if (Found) {
        HalpDemangle(Symbol->Name, sizeof(Symbol->Name));
    }
    return Found;
}

/* Writes the name of the symbol that contains Sought, and the offset of Address from its beginning. */
static BOOLEAN HalpNameAddress(ULONG64 Sought, ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    HALP_OBJECT Object;
    HALP_SYMBOL Symbol;
    CHAR File[LONGEST_SYMBOL];
    ULONG64 Offset;

    if (!HalpFindObject(Sought, &Object)) {
        return FALSE;
    }
    HalpNameObject(&Object, File, sizeof(File));
    if (!HalpFindSymbol(&Object, Sought, &Symbol)) {
        snprintf(Buffer, Size, "%s+0x%llx", File, Address - Object.Bias);
        return TRUE;
    }
    Offset = Address - Object.Bias - Symbol.Start;
    if (Offset == 0) {
        snprintf(Buffer, Size, "%s!%s", File, Symbol.Name);
    } else {
        snprintf(Buffer, Size, "%s!%s+0x%llx", File, Symbol.Name, Offset);
    }
    return TRUE;
}

BOOLEAN HalQueryAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;

    return HalpNameAddress(Address, Address, Buffer, Size);
}

BOOLEAN HalQueryReturnAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;

    return HalpNameAddress(Address - 1, Address, Buffer, Size);
}

/* The same in every run of the same program, wherever the loader puts it. */
ULONG64 HalQueryStableAddress(ULONG64 Address)
{
    HALP_HOST_CALLS;
    HALP_OBJECT Object;
    CHAR File[LONGEST_SYMBOL];
    ULONG64 Hash = 0xcbf29ce484222325ull; /* FNV-1a */

    if (!HalpFindObject(Address - 1, &Object)) {
        return 0;
    }
    HalpNameObject(&Object, File, sizeof(File));
    for (PCSTR Next = File; *Next != '\0'; Next++) {
        Hash = (Hash ^ (UCHAR)*Next) * 0x100000001b3ull;
    }
    return Hash ^ (Address - Object.Bias);
}

/* The library's frames. */

static BOOLEAN HalpHasPrefix(PCSTR Name, const CHAR (*Prefixes)[8], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index++) {
        SIZE_T Length = strlen(Prefixes[Index]);

        if (strncmp(Name, Prefixes[Index], Length) == 0 && Name[Length] >= 'A' && Name[Length] <= 'Z') {
            return TRUE;
        }
    }
    return FALSE;
}

/*
 * In a program that is statically linked with the library, its frames are recognized by NT's prefixes: Ki and Exp are
 * internal, Ke and Ex public. The compiler may have made a jump of a public function's last call, so the last internal
 * frame stays if no public one follows.
 */
static BOOLEAN HalpIsInternalByName(ULONG64 Address, ULONG64 Caller)
{
    static const CHAR Internal[][8] = {"Ki", "Kip", "Kdp", "Exp", "Obp", "Psp", "Iop", "Ntp", "Rtlp", "Tpp", "Wop", "Hal", "Halp",
                                       "Base"};
    static const CHAR Public[][8] = {"Ke", "Kf", "Ex", "Ob", "Ps", "Io", "Nt", "Zw", "Rtl", "Tp"};
    HALP_OBJECT Object;
    HALP_SYMBOL Symbol;

    if (!HalpFindObject(Address - 1, &Object) || !HalpFindSymbol(&Object, Address - 1, &Symbol) ||
        !HalpHasPrefix(Symbol.Name, Internal, RTL_NUMBER_OF(Internal)) || !HalpFindObject(Caller - 1, &Object) ||
        !HalpFindSymbol(&Object, Caller - 1, &Symbol)) {
        return FALSE;
    }
    return HalpHasPrefix(Symbol.Name, Internal, RTL_NUMBER_OF(Internal)) ||
           HalpHasPrefix(Symbol.Name, Public, RTL_NUMBER_OF(Public));
}

static BOOLEAN HalpIsInternalFrame(ULONG64 Address, ULONG64 Caller)
{
    HALP_OBJECT Own, Object;

    if (!HalpFindObject((ULONG64)HalpIsInternalFrame, &Own)) {
        return FALSE;
    }
    if (Own.IsProgram) {
        return HalpIsInternalByName(Address, Caller);
    }
    return HalpFindObject(Address - 1, &Object) && Object.Bias == Own.Bias && HalpFindObject(Caller - 1, &Object) &&
           Object.Bias == Own.Bias;
}

ULONG HalCountInternalFrames(const ULONG64 *Frames, ULONG Count)
{
    HALP_HOST_CALLS;
    ULONG Internal = 0;

    while (Internal + 1 < Count && HalpIsInternalFrame(Frames[Internal], Frames[Internal + 1])) {
        Internal += 1;
    }
    return Internal;
}

/* Reports. */

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HOST_UNWINDS 1
#endif

#define LONGEST_MESSAGE 1024
#define LONGEST_ADDRESS_NAME 512
#define DEEPEST_STACK 64
#define FULL_PIPE_TIMEOUT_SECONDS 1
#define STATUS_BYTES 2048 /* of /proc/self/status: more than precedes TracerPid */

PCSTR HalGetEnvironment(PCSTR Name)
{
    return secure_getenv(Name);
}

PCSTR HalTakeEnvironment(PCSTR Name)
{
    PCSTR Value = secure_getenv(Name);
    if (getenv(Name) != NULL) {
        unsetenv(Name); /* the text itself stays where the host put it */
    }
    return Value;
}

/* The text that a thread keeps instead of writing it. */
HALP_THREAD_LOCAL PSTR HalpCapture;
HALP_THREAD_LOCAL SIZE_T HalpCaptureSize;

VOID HalCapturePrint(PSTR Buffer, SIZE_T Size)
{
    HalpCapture = Buffer;
    HalpCaptureSize = Size;
    if (Buffer != NULL) {
        Buffer[0] = '\0';
    }
}

VOID HalPrint(PCSTR Format, ...)
{
    HALP_HOST_CALLS;
    CHAR Text[LONGEST_MESSAGE];
    PCSTR Rest = Text;
    va_list Arguments;
    int Length;

    va_start(Arguments, Format);
    Length = vsnprintf(Text, sizeof(Text), Format, Arguments);
    va_end(Arguments);
    if (Length >= (int)sizeof(Text)) {
        Length = sizeof(Text);
        memcpy(Text + sizeof(Text) - 4, "...\n", 4);
    }
    if (HalpCapture != NULL) {
        SIZE_T Used = strlen(HalpCapture);

        Text[Length > 0 && Length < (int)sizeof(Text) ? Length : (int)sizeof(Text) - 1] = '\0';
        snprintf(HalpCapture + Used, HalpCaptureSize - Used, "%s", Text);
        return;
    }
    while (Length > 0) {
        SSIZE_T Written = HalpWriteFile(STDERR_FILENO, Rest, (SIZE_T)Length);
        if (Written == -EAGAIN) {
            struct pollfd Output = {.fd = STDERR_FILENO, .events = POLLOUT};
            struct timespec Timeout = {.tv_sec = FULL_PIPE_TIMEOUT_SECONDS};
            Written = HalpCall(SYS_ppoll, &Output, 1, &Timeout, NULL, 0) > 0 ? -EINTR : 0;
        }
        if (Written > 0) {
            Rest += Written;
            Length -= (int)Written;
        } else if (Written != -EINTR) {
            return;
        }
    }
}

/* 0: this host has no unwinder. Inline, so that it adds no frame in any build. */
FORCEINLINE ULONG HalpUnwind(PVOID *Frames, ULONG Count)
{
#ifdef HOST_UNWINDS
    return (ULONG)backtrace(Frames, (int)Count);
#else
    UNREFERENCED_PARAMETER(Frames);
    UNREFERENCED_PARAMETER(Count);
    return 0;
#endif
}

/* The first use loads the unwinder, which must not happen in a signal handler, without memory, or in an allocator of the
   program that calls the library. Until then there are no stacks. */
static BOOLEAN HalpHasUnwinder;

VOID HalpInitializeStackTrace(VOID)
{
    PVOID Frame;

    HalpUnwind(&Frame, 1);
    __atomic_store_n(&HalpHasUnwinder, TRUE, __ATOMIC_RELEASE); /* release: pairs with the acquire in HalCaptureStack */
}

DECLSPEC_NOINLINE ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count)
{
    HALP_HOST_CALLS;
    PVOID Found[DEEPEST_STACK];
    if (!__atomic_load_n(&HalpHasUnwinder, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    ULONG Skip = FramesToSkip < DEEPEST_STACK ? FramesToSkip + 1 : DEEPEST_STACK;
    ULONG Depth = HalpUnwind(Found, Count + Skip < DEEPEST_STACK ? Count + Skip : DEEPEST_STACK);
    ULONG Frame;

    for (Frame = 0; Frame + Skip < Depth; Frame++) {
        Frames[Frame] = (ULONG64)Found[Frame + Skip];
    }
    return Frame;
}

/* How many frames a sanitizer or the compiler puts before the caller varies, so the caller is searched for. */
VOID HalPrintStackTrace(PVOID Caller)
{
    ULONG64 Frames[DEEPEST_STACK];
    ULONG Depth = HalCaptureStack(0, Frames, DEEPEST_STACK);
    ULONG First = 0;

    while (Caller != NULL && First < Depth && Frames[First] != (ULONG64)Caller) {
        First += 1;
    }
    First = First < Depth ? First : 0;
    HalPrintCallers(Frames + First, Depth - First);
    if (Depth == 0) {
        HalPrint("  (no stack trace on this host)\n");
    }
}

VOID HalPrintCallers(const ULONG64 *Frames, ULONG Count)
{
    ULONG First = HalCountInternalFrames(Frames, Count);

    for (ULONG Frame = First; Frame < Count; Frame++) {
        CHAR Name[LONGEST_ADDRESS_NAME] = "";
        HalQueryReturnAddressName(Frames[Frame], Name, sizeof(Name));
        HalPrint("  %2u  %p%s%s\n", Frame - First, (PVOID)Frames[Frame], Name[0] != '\0' ? "  " : "", Name);
    }
}

BOOLEAN HalIsDebuggerPresent(VOID)
{
    HALP_HOST_CALLS;
    CHAR Text[STATUS_BYTES];
    PCSTR Tracer = NULL;
    int File = HalpOpenFile("/proc/self/status", O_RDONLY);

    if (File >= 0) {
        SSIZE_T Length = HalpReadFile(File, Text, sizeof(Text) - 1);
        HalCloseDescriptor(File);
        Text[Length > 0 ? Length : 0] = '\0';
        Tracer = strstr(Text, "\nTracerPid:");
    }
    return Tracer != NULL && strtol(Tracer + strlen("\nTracerPid:"), NULL, 10) != 0;
}

VOID HalBreakIntoDebugger(VOID)
{
    raise(SIGTRAP);
}

VOID HalAbort(VOID)
{
    abort();
}
