#!/usr/bin/env python3
"""Writes tools/port/sdk-names.txt: the functions of the Windows SDK and of the WDK by area, and the SDK's headers.

usage: sdk-names.py [FOLDER]    the headers of mingw-w64 (/usr/share/mingw-w64/include: Debian's mingw-w64-common)

It needs universal-ctags. A header belongs to one area; functions of headers with several areas are assigned by name.
`interlock port` calls a function missing if its area is in SCOPE and Interlock lacks it; otherwise out of scope."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "tools" / "port" / "sdk-names.txt"
SCOPE = ["threads", "time", "memory", "errors", "modules", "characters", "system", "C library", "compiler", "native", "kernel"]
# {area: headers}; everything in them that is not listed below belongs to that area.
HEADERS = {
    "threads": "synchapi interlockedapi processthreadsapi threadpoolapiset threadpoollegacyapiset fibersapi handleapi "
               "realtimeapiset processtopologyapi wct avrt ioapiset namespaceapi",
    "time": "profileapi timezoneapi timeapi datetimeapi",
    "memory": "memoryapi heapapi",
    "errors": "errhandlingapi debugapi",
    "modules": "libloaderapi",
    "characters": "stringapiset strsafe",
    "system": "sysinfoapi systemtopologyapi utilapiset processenv versionhelpers",
    "C library": "process malloc stdio stdlib string wchar time mbstring search signal tchar crtdbg eh new ctype float math "
                 "locale sys/timeb sec_api/string_s sec_api/stdio_s sec_api/stdlib_s sec_api/wchar_s sec_api/time_s "
                 "sec_api/tchar_s sec_api/search_s sec_api/mbstring_s",
    "compiler": "intrin psdk_inc/intrin-impl",
    "native": "winternl",
    "kernel": "ddk/wdm ddk/ntddk ddk/ntifs",
    "files": "fileapi lzexpand winioctl io direct share fcntl sys/stat sys/utime",
    "pipes": "namedpipeapi",
    "console": "conio wincon consoleapi consoleapi2 consoleapi3",
    "jobs and processes": "jobapi jobapi2 psapi tlhelp32 processsnapshot userenv",
    "registry": "winreg",
    "sockets": "winsock winsock2 ws2tcpip mswsock ws2spi wspiapi iphlpapi netioapi icmpapi wsrm windns",
    "windows": "winuser wingdi commctrl commdlg shellapi shlobj shlwapi richedit imm prsht dde ddeml uxtheme dwmapi "
               "windowsx custcntl winnetwk",
    "security": "securitybaseapi aclapi sddl lmaccess ntsecapi sspi authz winsafer",
    "services": "winsvc",
    "COM": "objbase combaseapi ole2 oleauto rpcdce roapi winstring",
    "internet": "wininet winhttp winldap",
    "cryptography": "wincrypt bcrypt ncrypt dpapi",
    "devices": "setupapi cfgmgr32 hidsdi winscard powrprof",
    "printing": "winspool",
    "multimedia": "mmsystem vfw digitalv",
    "debugging": "dbghelp imagehlp minidumpapiset evntrace evntprov evntcons pdh perflib werapi",
    "other": "winver winnls wow64apiset appmodel msi cluster esent",
}
# Missing in the headers of mingw-w64, or in another form.
NEWER = {
    "threads": "SetThreadDescription GetThreadDescription InterlockedCompareExchange128 QueueUserAPC2 SetThreadSelectedCpuSets",
    "memory": "VirtualAlloc2 VirtualFreeEx VirtualAllocExNuma",
}
# Of winbase.h, winnt.h and others: the first pattern that matches decides.
MIXED = {"winbase", "winnt", "minwinbase", "mmsystem", "winternl", "ioapiset", "processthreadsapi", "handleapi", "processenv",
         "ddk/wdm", "ddk/ntddk", "ddk/ntifs", "synchapi", "namespaceapi", "libloaderapi", "memoryapi",
         "sysinfoapi"}
PATTERNS = [
    ("devices", r"DeviceIoControl|CommState|CommTimeouts|CommMask|CommProperties|CommPort|CommError|CommModem|CommEvent|CommConfig"
                r"|CommBreak|CommDCB|CommFunction|TransmitComm|DevicePower|SystemPower|Power"),
    ("jobs and processes", r"^(CreateProcess|OpenProcess$|TerminateProcess$|WinExec|LoadModule|.*Job|QueryFullProcess"
                           r"|.*ProcessMitigation|.*StartupInfo|CreateProcessAsUser|FlushInstructionCache)"),
    ("security", r"Sid|Acl|Ace|Privilege|Token|SecurityDescriptor|SecurityObject|Impersonat|RevertToSelf|AccessCheck|Logon|UserName|Audit"
                 r"|ObjectSecurity|Encrypt|Decrypt|Credential|LookupAccount|^Se[A-Z]|LsaQuery"),
    ("pipes", r"Pipe|Mailslot"),
    ("console", r"Console|StdHandle"),
    ("registry", r"PrivateProfile|ProfileSection|ProfileString|ProfileInt|^(Zw|Nt)\w*Key|^Cm[A-Z]|RtlQueryRegistry|RtlWriteRegistry"),
    ("services", r"Service|EventLog|EventSource|ReportEvent"),
    ("files", r"File|CancelIo|CancelSynchronousIo|Overlapped|Director(y|ies)|Volume|Disk|Drive|TempPath|PathName|Mount|Transaction|BackupRead|BackupWrite|BackupSeek"
              r"|^_?l(open|creat|read|write|close|seek)$|^_h(read|write)$|Tape|SearchPath|Eof|HardLink|SymbolicLink|8Dot3|Stream|DosDevice|^(FsRtl|Cc)[A-Z]"),
    ("kernel I/O", r"^(Io|Mm|Po|Hal|Pcw|Etw|Whea|Dbgk?|Kd|Tm|Clfs)[A-Z]|^(READ|WRITE)_(REGISTER|PORT)|Mdl|Irp|Dma"),
    ("windows", r"Resource(?!Notification)|LoadString|Atom|ActCtx|Icon|Wow|Cursor"),
    ("characters", r"^lstr|^Is(Text|Bad)\w*|CharSet|MultiByte"),
    ("multimedia", r"^(mci|midi|wave|mixer|aux|joy|mmio|sndPlay|PlaySound|Driver|OpenDriver|SendDriver|CloseDriver|DefDriver|"
                   r"DrvGet|GetDriver)|mmDrv"),
    ("time", r"^time[A-Z]|Time|Counter"),
    ("memory", r"Heap|Virtual|Local(Alloc|Free|Lock|Unlock|Re|Size|Flags|Handle)|Global(Alloc|Free|Lock|Unlock|Re|Size|Flags|Hand|Mem)"
               r"|Memory|WorkingSet|AddressSpace|LargePage"),
    ("threads", r"Interlocked|Event|Mutex|Semaphore|Thread|Fiber|Wait|CriticalSection|SRW|Condition|Affinity|Timer|Threadpool|Apc"
                r"|Tls|Fls|Completion|Sleep|Process|SList|Barrier|InitOnce|NumaNode|Yield|Namespace|BoundaryDescriptor|Overlapped"),
    ("errors", r"Error|Exception|Fault|Debug|FormatMessage|OutputDebug|RtlCapture|RtlUnwind|RtlVirtualUnwind|RtlLookup"),
    ("modules", r"Library|Module|ProcAddress"),
]


def tags(header, kinds):
    """(name, kind); without methods of interfaces."""
    output = subprocess.run(["ctags", "-o", "-", f"--kinds-C++={kinds}", "--language-force=C++", "--fields=ks", str(header)],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", check=True).stdout
    found = [line.rstrip().split("\t") for line in output.splitlines() if not line.startswith("!")]
    text = header.read_text(encoding="utf-8", errors="replace") # ctags loses some of these
    more = re.findall(r"\b(?:WINAPI|WINAPIV|APIENTRY|NTAPI|WSAAPI)\s+([A-Za-z_]\w+)\s*\(", text)
    return [(line[0], line[-1]) for line in found if line[-1] in kinds] + [(name, "p") for name in more]


def is_function(name, kind, header):
    """Macros count where they stand for a function."""
    if not re.fullmatch(r"[A-Za-z_]\w{2,}", name) or re.match(r"_*(MINGW|DEFINE|DECLARE|SAL|CRT)|.*_DEFINED$", name):
        return False
    if header in ("shlobj", "shlwapi", "ole2", "objbase", "oleauto") and not re.search(r"[a-z]\w*[A-Z]", name):
        return False # a method of an interface
    return kind == "p" or (header in MIXED | {"intrin", "psdk_inc/intrin-impl"}
                           and re.match(r"_?Interlocked|[A-Z][a-z]+[A-Z]\w*[a-z]|_[a-z]+", name) is not None)


def area_of(name, header, area):
    if header in MIXED:
        for other, pattern in PATTERNS:
            if re.search(pattern, name):
                return area if other in ("threads", "time", "errors") and area in ("native", "kernel") else other
        return "system" if area is None else area
    return area


def host_names():
    """Names that the host's C library also declares are not names of Windows."""
    text = "".join(f"#include <{name}.h>\n" for name in (
        "stdio stdlib string wchar time math ctype unistd fcntl signal search malloc locale pthread sys/stat sys/time "
        "sys/timeb utime setjmp strings sys/mman float libgen wctype complex").split())
    output = subprocess.run(["gcc", "-D_GNU_SOURCE", "-E", "-xc", "-"], input=text, stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    return set(re.findall(r"[A-Za-z_]\w*", output))


def functions(folder):
    """{name: area}. The first header wins."""
    found, host = {}, host_names()
    headers = [(name, area) for area, names in HEADERS.items() for name in names.split()]
    for header, area in [*headers, ("winbase", None), ("winnt", None), ("minwinbase", None)]:
        path = folder / f"{header}.h"
        for name, kind in tags(path, "pd") if path.exists() else []:
            if is_function(name, kind, header) and not (area in ("C library", "files", "console") and name in host):
                found.setdefault(name, area_of(name, header, area))
    for area, names in NEWER.items():
        found.update({name: found.get(name, area) for name in names.split()})
    for name in [name for name in found if name.endswith("W") and f"{name[:-1]}A" in found]:
        found.setdefault(name[:-1], found[name])
    return found


def headers(folder):
    """The headers of the SDK and the WDK, without those that the host has as well."""
    names = [path.relative_to(folder).as_posix() for pattern in ("*.h", "ddk/*.h") for path in folder.glob(pattern)]
    return sorted(name.removeprefix("ddk/") for name in names if not name.startswith("_")
                  and not Path("/usr/include", name).exists() and name not in ("float.h", "stdarg.h", "stddef.h")
                  and not name.startswith("pthread"))


def area_of_header(name):
    for area, names in HEADERS.items():
        if name.removesuffix(".h") in names.split() or f"ddk/{name.removesuffix('.h')}" in names.split():
            return area
    return "other"


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/mingw-w64/include")
    found, lines = functions(folder), []
    for area in [*SCOPE, *sorted(set(found.values()) - set(SCOPE))]:
        lines += [f"[{area}{' +' if area in SCOPE else ''}]"]
        lines += textwrap.wrap(" ".join(sorted(name for name in found if found[name] == area)), 120, break_long_words=False)
    listed = headers(folder)
    for area in sorted({area_of_header(name) for name in listed}):
        lines += [f"[headers: {area}]"]
        lines += textwrap.wrap(" ".join(sorted({name for name in listed if area_of_header(name) == area})), 120,
                               break_long_words=False, break_on_hyphens=False)
    OUTPUT.write_text("# Made by scripts/sdk-names.py from the headers of mingw-w64. [area +]: Interlock aims to have it.\n"
                      + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
