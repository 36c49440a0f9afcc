"""gdb: commands and printers for programs that use Interlock. gdb loads it with the library."""

import gdb

THREAD_CHUNK = 4096
THREAD_CHUNKS = 64
MOST_ENTRIES = 100000 # of a list: a damaged program must not hang its debugger
ACTIVE = 0x4000
HINT_BLOCK = 0xFF
REASONS = {}
TYPES = {0: "NotificationEvent", 1: "SynchronizationEvent", 2: "Mutant", 3: "Process", 4: "Queue", 5: "Semaphore",
         6: "Thread", 7: "Gate", 8: "NotificationTimer", 9: "SynchronizationTimer"}


def value(expression):
    return gdb.parse_and_eval(expression)


def pointer_to(name):
    return gdb.lookup_type(name).pointer()


def reason_name(number):
    """The enumerator's value, from the debug information."""
    if not REASONS:
        for field in gdb.lookup_type("enum _KWAIT_REASON").fields():
            REASONS.setdefault(field.enumval, field.name)
    return REASONS.get(number, str(number))


def clean(text):
    """The text without control characters and marks that change its direction."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def symbol(address):
    text = gdb.execute(f"info symbol {int(address):#x}", to_string=True).strip()
    return "" if text.startswith("No symbol") else text.split(" in section")[0]


def type_of(header):
    return int(header["Type"]) & 0x3F


def is_state(thread, name):
    return int(thread["State"]) == int(value(name))


def threads():
    """The KTHREADs of threads that have not ended."""
    chunks = value("KiThreadChunk")
    for number in range(min(int(value("KiThreadSlotsUsed")), THREAD_CHUNK * THREAD_CHUNKS)):
        chunk = chunks[number // THREAD_CHUNK]
        if int(chunk) == 0:
            continue
        slot = chunk[number % THREAD_CHUNK]
        thread = slot["Tcb"]
        if int(slot["Use"]) == int(value("KiSlotUsed")) and int(thread["ThreadId"]) != 0 and \
                not is_state(thread, "Terminated"):
            yield thread


def is_waiting(thread):
    return is_state(thread, "Waiting") and int(thread["WaitRegister"]) & ACTIVE != 0


def name_of(thread):
    string = thread.address.cast(pointer_to("struct _ETHREAD"))["ThreadName"]
    if int(string["Buffer"]) == 0:
        return ""
    data = gdb.selected_inferior().read_memory(int(string["Buffer"]), min(int(string["Length"]), 512))
    return clean(bytes(data).decode("utf-16-le", "replace"))


def thread_title(thread):
    name = name_of(thread)
    return f"thread {int(thread['ThreadId'])}" + (f" ({name})" if name else "")


def thread_at(address):
    for thread in threads():
        if int(thread.address) == int(address):
            return thread
    return None


def owner_title(address):
    thread = thread_at(address) if int(address) else None
    return thread_title(thread) if thread is not None else "a thread that has ended"


def address_title(address):
    name = symbol(address)
    return f"{int(address):#x}" + (f" ({name})" if name else "")


def list_of(head, type_name, member):
    """The structures of a LIST_ENTRY list."""
    struct = gdb.lookup_type(type_name)
    offset = next(f.bitpos // 8 for f in struct.fields() if f.name == member)
    link, seen = head["Flink"], set()
    while int(link) != int(head.address):
        if int(link) in seen or len(seen) == MOST_ENTRIES:
            raise gdb.GdbError(f"inconsistent: the list at {int(head.address):#x} runs into itself at {int(link):#x}")
        seen.add(int(link))
        yield (link.cast(gdb.lookup_type("char").pointer()) - offset).cast(struct.pointer()).dereference()
        link = link["Flink"]


def optional(name):
    """A variable of a part that a statically linked program may not contain."""
    try:
        return value(name)
    except gdb.error:
        return None


# One-line descriptions of objects.

def describe_header(header):
    return f"{TYPES.get(type_of(header), '?')}, SignalState {int(header['SignalState'])}" + \
        (", threads wait" if int(header["Type"]) & 0x40 else "")


def describe_event(event):
    header = event["Header"]
    return f"{TYPES.get(type_of(header), '?')}, {'signaled' if int(header['SignalState']) > 0 else 'not signaled'}" + \
        (", threads wait" if int(header["Type"]) & 0x40 else "")


def describe_mutant(mutant):
    state = int(mutant["Header"]["SignalState"])
    owner = "free" if state > 0 else f"owned {1 - state} times by {owner_title(mutant['OwnerThread'])}"
    return f"Mutant, {owner}" + (", abandoned" if int(mutant["Abandoned"]) else "")


def describe_semaphore(semaphore):
    return f"Semaphore, {int(semaphore['Header']['SignalState'])} of {int(semaphore['Limit'])}"


def describe_thread(thread):
    if not is_waiting(thread):
        return f"{thread_title(thread)}, not waiting"
    return f"{thread_title(thread)}, WAIT: ({reason_name(int(thread['WaitReason']))})"


def describe_push_word(word):
    if word == 0:
        return "free"
    if word & 2:
        held = "several share it" if word & 8 else "held" if word & 1 else "free"
        return f"{held}, threads wait" + (", one was woken" if word & 4 else "")
    return "held exclusively" if word == 1 else f"shared by {word >> 4}"


def describe_srw(lock):
    return describe_push_word(int(lock["Ptr"]))


def describe_resource(resource):
    if int(resource["ActiveEntries"]) == 0:
        held = "available"
    elif int(resource["Flag"]) & 0x80:
        held = f"owned exclusively by {owner_title(resource['OwnerEntry']['OwnerThread'])}"
    else:
        held = f"shared, {int(resource['ActiveEntries'])} owners"
    return f"{held}, waiters {int(resource['NumberOfExclusiveWaiters'])} exclusive " \
        f"{int(resource['NumberOfSharedWaiters'])} shared, contention {int(resource['ContentionCount'])}"


def describe_section(section):
    count = int(section["LockCount"])
    if count & 1:
        return "free"
    waiters = ~((count & 0xFFFFFFFF) >> 2) & 0x3FFFFFFF
    return f"owned {int(section['RecursionCount'])} times by thread {int(section['OwningThread'])}, {waiters} wait"


PRINTED = {
    "_KEVENT": describe_event,
    "_KMUTANT": describe_mutant,
    "_KSEMAPHORE": describe_semaphore,
    "_KTHREAD": describe_thread,
    "_RTL_SRWLOCK": describe_srw,
    "_ERESOURCE": describe_resource,
    "_RTL_CRITICAL_SECTION": describe_section,
    "_DISPATCHER_HEADER": describe_header,
}


class Printer:
    def __init__(self, described, describe):
        self.described = described
        self.describe = describe

    def to_string(self):
        try:
            return self.describe(self.described)
        except gdb.error as problem:
            return f"<{problem}>"


class PushLockPrinter(Printer):
    def __init__(self, described):
        super().__init__(described, lambda word: describe_push_word(int(word)))


def find_printer(described):
    if described.type.name in ("EX_PUSH_LOCK",):
        return PushLockPrinter(described)
    kind = described.type.strip_typedefs()
    describe = PRINTED.get(kind.tag) if kind.code == gdb.TYPE_CODE_STRUCT else None
    return Printer(described, describe) if describe else None


# Commands.

OBJECTS = {0: "_KEVENT", 1: "_KEVENT", 2: "_KMUTANT", 5: "_KSEMAPHORE", 6: "_KTHREAD"}


def describe_waited(thread, block):
    section = int(thread["LockWaitedFor"])
    reason = reason_name(int(thread["WaitReason"]))
    if section and reason in ("WrAlertByThreadId", "UserRequest"):
        struct = thread["LockWaitedFor"].cast(pointer_to("struct _RTL_CRITICAL_SECTION")).dereference()
        return f"critical section {address_title(section)}: {describe_section(struct)}"
    if section and reason == "WrPushLock":
        return f"pushlock {address_title(section)}"
    if int(block["WaitType"]) == HINT_BLOCK:
        return f"address {address_title(block['Object'])}"
    header = block["Object"].cast(pointer_to("struct _DISPATCHER_HEADER")).dereference()
    name = OBJECTS.get(type_of(header), "_DISPATCHER_HEADER")
    described = PRINTED[name](block["Object"].cast(pointer_to(f"struct {name}")).dereference())
    return f"{address_title(block['Object'])}: {described}"


def print_thread(thread):
    print(f"THREAD {int(thread.address):#x}  {describe_thread(thread)}  "
          f"IRQL {int(thread['Irql'])}  Priority {int(thread['Priority'])}")
    if is_waiting(thread):
        for index in range(int(thread["WaitBlockCount"])):
            print(f"    {describe_waited(thread, thread['WaitBlockList'][index])}")


class InterlockCommand(gdb.Command):
    """The state of Interlock in the program: interlock threads, interlock waits, interlock locks,
    interlock pool."""

    def __init__(self):
        super().__init__("interlock", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


class Subcommand(gdb.Command):
    def __init__(self, name):
        super().__init__(f"interlock {name}", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        try:
            self.show()
        except gdb.error as problem:
            raise gdb.GdbError(f"Interlock's structures cannot be read ({problem}): is the program running, and does "
                               "the library have debug information?") from problem


class Threads(Subcommand):
    """The threads of the program with their waits."""

    def show(self):
        for thread in threads():
            print_thread(thread)


class Waits(Subcommand):
    """The threads that wait, and for what."""

    def show(self):
        for thread in threads():
            if is_waiting(thread):
                print_thread(thread)


def waited_lock(thread, block):
    """The lock that a thread waits for, as (title, address, description), or None if it is not a lock."""
    address = int(thread["LockWaitedFor"])
    reason = reason_name(int(thread["WaitReason"]))
    if address and reason in ("WrAlertByThreadId", "UserRequest"):
        section = thread["LockWaitedFor"].cast(pointer_to("struct _RTL_CRITICAL_SECTION")).dereference()
        return "Critical section", address, describe_section(section)
    if address and reason == "WrPushLock":
        word = int(thread["LockWaitedFor"].cast(pointer_to("unsigned long")).dereference())
        return "Pushlock", address, describe_push_word(word)
    if reason in ("WrFastMutex", "WrGuardedMutex"):
        return fast_mutex_of(block, reason)
    if int(block["WaitType"]) == HINT_BLOCK:
        return srw_lock_of(block["Object"])
    header = block["Object"].cast(pointer_to("struct _DISPATCHER_HEADER")).dereference()
    if type_of(header) == 2:
        mutant = block["Object"].cast(pointer_to("struct _KMUTANT")).dereference()
        return "Mutant", int(block["Object"]), describe_mutant(mutant)
    return None


def fast_mutex_of(block, reason):
    struct = gdb.lookup_type("struct _FAST_MUTEX")
    offset = next(f.bitpos // 8 for f in struct.fields() if f.name == "Event")
    mutex = gdb.Value(int(block["Object"]) - offset).cast(struct.pointer()).dereference()
    owner = f"owned by {owner_title(mutex['Owner'])}" if int(mutex["Owner"]) else "free"
    return ("Fast mutex" if reason == "WrFastMutex" else "Guarded mutex", int(mutex.address),
            f"{owner}, contention {int(mutex['Contention'])}")


def srw_lock_of(pointer):
    """A hint is an SRW lock if its word says that threads wait; an address wait's word may be anything."""
    word = int(pointer.cast(pointer_to("unsigned long")).dereference())
    return ("SRW lock", int(pointer), describe_push_word(word)) if word & 2 and word >> 4 else None


def owned_locks(thread):
    """The mutants that a thread owns, and the last pushlock or SRW lock that it acquired after a wait."""
    for mutant in list_of(thread["MutantListHead"], "struct _KMUTANT", "MutantListEntry"):
        yield "Mutant", int(mutant.address), describe_mutant(mutant)
    if int(thread["LockOwned"]):
        word = int(thread["LockOwned"].cast(pointer_to("unsigned long")).dereference())
        if word & 1:
            yield "Pushlock or SRW lock", int(thread["LockOwned"]), \
                f"{describe_push_word(word)}, last acquired by {thread_title(thread)}"


class Locks(Subcommand):
    """Resources, critical sections with debug information, owned mutants, and every lock that threads wait for."""

    def show(self):
        self.show_lists()
        seen = set()
        for thread in threads():
            found = list(owned_locks(thread))
            if is_waiting(thread):
                found = [waited_lock(thread, thread["WaitBlockList"][i])
                         for i in range(int(thread["WaitBlockCount"]))] + found
            for lock in found:
                if lock is not None and lock[1] not in seen and lock[1] not in self.listed:
                    seen.add(lock[1])
                    print(f"{lock[0]} @ {address_title(lock[1])}: {lock[2]}")

    def show_lists(self):
        self.listed = set()
        head = optional("ExpSystemResourcesList")
        for resource in list_of(head, "struct _ERESOURCE", "SystemResourcesList") if head is not None else ():
            self.listed.add(int(resource.address))
            print(f"Resource @ {address_title(resource.address)}: {describe_resource(resource)}")
        head = optional("RtlCriticalSectionList")
        debugs = list_of(head, "struct _RTL_CRITICAL_SECTION_DEBUG", "ProcessLocksList") if head is not None else ()
        for debug in debugs:
            section = debug["CriticalSection"]
            self.listed.add(int(section))
            print(f"Critical section @ {address_title(section)}: {describe_section(section.dereference())}")


class Pool(Subcommand):
    """Pool memory by tag, as poolmon shows it: most bytes first."""

    def show(self):
        table = optional("ExpPoolTags")
        if table is None:
            print("The program has no pool.")
            return
        paged = 1 << 32
        rows = []
        for number in range(table.type.range()[1] + 1):
            key = int(table[number]["Key"])
            if key == 0:
                continue
            stripes = [table[number]["Stripe"][i] for i in range(table[number]["Stripe"].type.range()[1] + 1)]
            allocations, frees, size = (sum(int(s[name]) for s in stripes) for name in ("Allocations", "Frees", "Bytes"))
            size = (size + 2 ** 63) % 2 ** 64 - 2 ** 63 # a block may be freed in another stripe than it was allocated in
            tag = "".join(chr(key >> 8 * i & 0xFF) if 0x20 <= key >> 8 * i & 0xFF < 0x7F else "." for i in range(4))
            rows.append((-size, tag, "Paged" if key & paged else "Nonp", allocations, frees, size))
        print(" Tag  Type      Allocs       Frees        Diff       Bytes")
        for _, tag, kind, allocations, frees, size in sorted(rows):
            print(f" {tag} {kind:5} {allocations:11} {frees:11} {allocations - frees:11} {size:11}")


gdb.pretty_printers.append(find_printer)
InterlockCommand()
Threads("threads")
Waits("waits")
Locks("locks")
Pool("pool")
