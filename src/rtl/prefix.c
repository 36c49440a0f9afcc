/*
 * prefix.c: tables of path prefixes.
 *
 * A splay tree orders the strings without regard to case. Entries that differ only in case share a node: the first one
 * is the node, the others are linked to it in a ring. A search looks for the whole path, then for the path without its
 * last component, and so on; each of these is a search for an equal string.
 */
#include <interlock/rtldriver.h>

#include "../ex/upcase.h"

/* Values of NodeTypeCode. */
#define RTLP_PREFIX_TABLE 0x0800
#define RTLP_PREFIX_NODE 0x0801
#define RTLP_PREFIX_CASE_MATCH 0x0802

static PUNICODE_PREFIX_TABLE_ENTRY RtlpPrefixOf(PRTL_SPLAY_LINKS Links)
{
    return Links != NULL ? CONTAINING_RECORD(Links, UNICODE_PREFIX_TABLE_ENTRY, Links) : NULL;
}

VOID RtlInitializeUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable)
{
    *PrefixTable = (UNICODE_PREFIX_TABLE){.NodeTypeCode = RTLP_PREFIX_TABLE};
}

/* The node of a string, or the parent that it would have. Order: <0 left, 0 found, >0 right. */
static PUNICODE_PREFIX_TABLE_ENTRY RtlpFindPrefixNode(PUNICODE_PREFIX_TABLE Table, PCWCH Name, SIZE_T Length, PLONG Order)
{
    PUNICODE_PREFIX_TABLE_ENTRY Next = Table->NextPrefixTree;
    PUNICODE_PREFIX_TABLE_ENTRY Entry = NULL;
    while (Next != NULL) {
        Entry = Next;
        *Order = ExpCompareStrings(Name, Length, Entry->Prefix->Buffer, Entry->Prefix->Length / sizeof(WCHAR), TRUE);
        if (*Order == 0) {
            break;
        }
        Next = RtlpPrefixOf(*Order < 0 ? Entry->Links.LeftChild : Entry->Links.RightChild);
    }
    return Entry;
}

/* The entry of a ring that equals the name, ignoring case from a character on; NULL: there is none. */
static PUNICODE_PREFIX_TABLE_ENTRY RtlpFindCaseMatch(PUNICODE_PREFIX_TABLE_ENTRY Node, PCWCH Name, SIZE_T Length,
                                                     SIZE_T Insensitive)
{
    SIZE_T Exact = Insensitive < Length ? Insensitive : Length;
    PUNICODE_PREFIX_TABLE_ENTRY Entry = Node;
    do {
        if (ExpCompareStrings(Name, Exact, Entry->Prefix->Buffer, Exact, FALSE) == 0) {
            return Entry;
        }
        Entry = Entry->CaseMatch;
    } while (Entry != Node);
    return NULL;
}

BOOLEAN RtlInsertUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING Prefix,
                               PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry)
{
    LONG Order = 0;
    SIZE_T Length = Prefix->Length / sizeof(WCHAR);
    PUNICODE_PREFIX_TABLE_ENTRY Node = RtlpFindPrefixNode(PrefixTable, Prefix->Buffer, Length, &Order);
    if (Node != NULL && Order == 0 && RtlpFindCaseMatch(Node, Prefix->Buffer, Length, Length) != NULL) {
        return FALSE;
    }
    *PrefixTableEntry = (UNICODE_PREFIX_TABLE_ENTRY){
        .NodeTypeCode = RTLP_PREFIX_NODE, .CaseMatch = PrefixTableEntry, .Prefix = Prefix};
    RtlInitializeSplayLinks(&PrefixTableEntry->Links);
    if (Node != NULL && Order == 0) {
        PrefixTableEntry->NodeTypeCode = RTLP_PREFIX_CASE_MATCH;
        PrefixTableEntry->CaseMatch = Node->CaseMatch;
        Node->CaseMatch = PrefixTableEntry;
        PrefixTable->NextPrefixTree = RtlpPrefixOf(RtlSplay(&Node->Links));
        return TRUE;
    }
    if (Node != NULL && Order < 0) {
        RtlInsertAsLeftChild(&Node->Links, &PrefixTableEntry->Links);
    } else if (Node != NULL) {
        RtlInsertAsRightChild(&Node->Links, &PrefixTableEntry->Links);
    }
    PrefixTable->NextPrefixTree = RtlpPrefixOf(RtlSplay(&PrefixTableEntry->Links));
    return TRUE;
}

/* The entry before one in its ring. */
static PUNICODE_PREFIX_TABLE_ENTRY RtlpPreviousCaseMatch(PUNICODE_PREFIX_TABLE_ENTRY Entry)
{
    PUNICODE_PREFIX_TABLE_ENTRY Previous = Entry;
    while (Previous->CaseMatch != Entry) {
        Previous = Previous->CaseMatch;
    }
    return Previous;
}

/* The entry that RtlNextUnicodePrefix returned before this one; NULL: this was the first one. */
static PUNICODE_PREFIX_TABLE_ENTRY RtlpPrefixBefore(PUNICODE_PREFIX_TABLE_ENTRY Entry)
{
    if (Entry->NodeTypeCode == RTLP_PREFIX_NODE) {
        Entry = RtlpPrefixOf(RtlRealPredecessor(&Entry->Links));
    }
    return Entry != NULL ? RtlpPreviousCaseMatch(Entry) : NULL;
}

VOID RtlRemoveUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry)
{
    PUNICODE_PREFIX_TABLE_ENTRY Heir = PrefixTableEntry->CaseMatch;
    if (PrefixTable->LastNextEntry == PrefixTableEntry) {
        PrefixTable->LastNextEntry = RtlpPrefixBefore(PrefixTableEntry);
    }
    RtlpPreviousCaseMatch(PrefixTableEntry)->CaseMatch = Heir;
    if (PrefixTableEntry->NodeTypeCode == RTLP_PREFIX_CASE_MATCH) {
        return;
    }
    if (Heir == PrefixTableEntry) {
        PrefixTable->NextPrefixTree = RtlpPrefixOf(RtlDelete(&PrefixTableEntry->Links));
        return;
    }
    /* The next one of the ring becomes the node. If it is the root, it has no parent to update. */
    RtlSplay(&PrefixTableEntry->Links);
    Heir->NodeTypeCode = RTLP_PREFIX_NODE;
    Heir->Links = PrefixTableEntry->Links;
    Heir->Links.Parent = &Heir->Links;
    if (Heir->Links.LeftChild != NULL) {
        Heir->Links.LeftChild->Parent = &Heir->Links;
    }
    if (Heir->Links.RightChild != NULL) {
        Heir->Links.RightChild->Parent = &Heir->Links;
    }
    PrefixTable->NextPrefixTree = Heir;
}

/* The length of a path without its last component: 1 for the root, 0 behind that. */
static SIZE_T RtlpParentLength(PCWCH Name, SIZE_T Length)
{
    SIZE_T Parent = Length;
    while (Parent > 0 && Name[Parent - 1] != '\\') {
        Parent--;
    }
    if (Parent > 1) {
        return Parent - 1; /* without the backslash */
    }
    return Length > 1 ? Parent : 0;
}

PUNICODE_PREFIX_TABLE_ENTRY RtlFindUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING FullName,
                                                 ULONG CaseInsensitiveIndex)
{
    PCWCH Name = FullName->Buffer;
    for (SIZE_T Length = FullName->Length / sizeof(WCHAR); Length != 0; Length = RtlpParentLength(Name, Length)) {
        LONG Order = -1;
        PUNICODE_PREFIX_TABLE_ENTRY Node = RtlpFindPrefixNode(PrefixTable, Name, Length, &Order);
        PUNICODE_PREFIX_TABLE_ENTRY Entry =
            Order == 0 ? RtlpFindCaseMatch(Node, Name, Length, CaseInsensitiveIndex) : NULL;
        if (Entry != NULL) {
            PrefixTable->NextPrefixTree = RtlpPrefixOf(RtlSplay(&Node->Links));
            return Entry;
        }
    }
    return NULL;
}

PUNICODE_PREFIX_TABLE_ENTRY RtlNextUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, BOOLEAN Restart)
{
    PUNICODE_PREFIX_TABLE_ENTRY Entry = Restart ? NULL : PrefixTable->LastNextEntry;
    if (Entry == NULL) {
        Entry = PrefixTable->NextPrefixTree;
        while (Entry != NULL && Entry->Links.LeftChild != NULL) {
            Entry = RtlpPrefixOf(Entry->Links.LeftChild);
        }
    } else {
        Entry = Entry->CaseMatch;
        if (Entry->NodeTypeCode == RTLP_PREFIX_NODE) {
            Entry = RtlpPrefixOf(RtlRealSuccessor(&Entry->Links));
        }
    }
    if (Entry != NULL || Restart) {
        PrefixTable->LastNextEntry = Entry;
    }
    return Entry;
}
