/*
 * rtltable.h: ordered tables and splay trees. A table copies the elements of its user into nodes that the user's routines
 * allocate and free, and orders them by the user's compare routine. RTL_GENERIC_TABLE is a splay tree: a search moves what it
 * finds to the root. RTL_AVL_TABLE is a balanced tree; with RTL_USE_AVL_TABLES defined, the names of generic tables mean it.
 *
 * Tables have no lock: the caller serializes access, also to searches in a splay tree. At any IRQL that the routines and the
 * memory allow.
 */
#ifndef INTERLOCK_RTLTABLE_H
#define INTERLOCK_RTLTABLE_H

#include <interlock/ntdef.h>

typedef struct _RTL_SPLAY_LINKS {
    struct _RTL_SPLAY_LINKS *Parent; /* the root's is itself */
    struct _RTL_SPLAY_LINKS *LeftChild;
    struct _RTL_SPLAY_LINKS *RightChild;
} RTL_SPLAY_LINKS, *PRTL_SPLAY_LINKS;

typedef struct _RTL_BALANCED_LINKS {
    struct _RTL_BALANCED_LINKS *Parent; /* the root's is the BalancedRoot of the table */
    struct _RTL_BALANCED_LINKS *LeftChild;
    struct _RTL_BALANCED_LINKS *RightChild;
    CHAR Balance; /* depth of the right subtree minus that of the left one */
    UCHAR Reserved[3];
} RTL_BALANCED_LINKS, *PRTL_BALANCED_LINKS;

typedef enum _TABLE_SEARCH_RESULT {
    TableEmptyTree,
    TableFoundNode,
    TableInsertAsLeft,
    TableInsertAsRight
} TABLE_SEARCH_RESULT;

typedef enum _RTL_GENERIC_COMPARE_RESULTS { GenericLessThan, GenericGreaterThan, GenericEqual } RTL_GENERIC_COMPARE_RESULTS;

struct _RTL_AVL_TABLE;
typedef RTL_GENERIC_COMPARE_RESULTS NTAPI RTL_AVL_COMPARE_ROUTINE(struct _RTL_AVL_TABLE *Table, PVOID FirstStruct,
                                                                  PVOID SecondStruct);
typedef RTL_AVL_COMPARE_ROUTINE *PRTL_AVL_COMPARE_ROUTINE;
typedef PVOID NTAPI RTL_AVL_ALLOCATE_ROUTINE(struct _RTL_AVL_TABLE *Table, CLONG ByteSize);
typedef RTL_AVL_ALLOCATE_ROUTINE *PRTL_AVL_ALLOCATE_ROUTINE;
typedef VOID NTAPI RTL_AVL_FREE_ROUTINE(struct _RTL_AVL_TABLE *Table, PVOID Buffer);
typedef RTL_AVL_FREE_ROUTINE *PRTL_AVL_FREE_ROUTINE;
typedef NTSTATUS NTAPI RTL_AVL_MATCH_FUNCTION(struct _RTL_AVL_TABLE *Table, PVOID UserData, PVOID MatchData);
typedef RTL_AVL_MATCH_FUNCTION *PRTL_AVL_MATCH_FUNCTION;

typedef struct _RTL_AVL_TABLE {
    RTL_BALANCED_LINKS BalancedRoot; /* its right child is the root */
    PVOID OrderedPointer;
    ULONG WhichOrderedElement;
    ULONG NumberGenericTableElements;
    ULONG DepthOfTree;
    PRTL_BALANCED_LINKS RestartKey;
    ULONG DeleteCount;
    PRTL_AVL_COMPARE_ROUTINE CompareRoutine;
    PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine;
    PRTL_AVL_FREE_ROUTINE FreeRoutine;
    PVOID TableContext;
} RTL_AVL_TABLE, *PRTL_AVL_TABLE;

struct _RTL_GENERIC_TABLE;
typedef RTL_GENERIC_COMPARE_RESULTS NTAPI RTL_GENERIC_COMPARE_ROUTINE(struct _RTL_GENERIC_TABLE *Table,
                                                                      PVOID FirstStruct, PVOID SecondStruct);
typedef RTL_GENERIC_COMPARE_ROUTINE *PRTL_GENERIC_COMPARE_ROUTINE;
typedef PVOID NTAPI RTL_GENERIC_ALLOCATE_ROUTINE(struct _RTL_GENERIC_TABLE *Table, CLONG ByteSize);
typedef RTL_GENERIC_ALLOCATE_ROUTINE *PRTL_GENERIC_ALLOCATE_ROUTINE;
typedef VOID NTAPI RTL_GENERIC_FREE_ROUTINE(struct _RTL_GENERIC_TABLE *Table, PVOID Buffer);
typedef RTL_GENERIC_FREE_ROUTINE *PRTL_GENERIC_FREE_ROUTINE;

typedef struct _RTL_GENERIC_TABLE {
    PRTL_SPLAY_LINKS TableRoot;
    LIST_ENTRY InsertOrderList;
    PLIST_ENTRY OrderedPointer;
    ULONG WhichOrderedElement;
    ULONG NumberGenericTableElements;
    PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine;
    PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine;
    PRTL_GENERIC_FREE_ROUTINE FreeRoutine;
    PVOID TableContext;
} RTL_GENERIC_TABLE, *PRTL_GENERIC_TABLE;

C_ASSERT(sizeof(RTL_SPLAY_LINKS) == 24 && sizeof(RTL_BALANCED_LINKS) == 32);
C_ASSERT(sizeof(RTL_GENERIC_TABLE) == 72 && sizeof(RTL_AVL_TABLE) == 104);

typedef struct _UNICODE_PREFIX_TABLE_ENTRY {
    CSHORT NodeTypeCode;
    CSHORT NameLength;
    struct _UNICODE_PREFIX_TABLE_ENTRY *NextPrefixTree;
    struct _UNICODE_PREFIX_TABLE_ENTRY *CaseMatch; /* a ring of the entries that differ in case only */
    RTL_SPLAY_LINKS Links;
    PUNICODE_STRING Prefix;
} UNICODE_PREFIX_TABLE_ENTRY, *PUNICODE_PREFIX_TABLE_ENTRY;

typedef struct _UNICODE_PREFIX_TABLE {
    CSHORT NodeTypeCode;
    CSHORT NameLength;
    PUNICODE_PREFIX_TABLE_ENTRY NextPrefixTree;
    PUNICODE_PREFIX_TABLE_ENTRY LastNextEntry;
} UNICODE_PREFIX_TABLE, *PUNICODE_PREFIX_TABLE;

C_ASSERT(sizeof(UNICODE_PREFIX_TABLE_ENTRY) == 56 && sizeof(UNICODE_PREFIX_TABLE) == 24);

INTERLOCK_BEGIN

/* Splay links. The caller links nodes with the macros, and orders them. */

#define RtlInitializeSplayLinks(Links)                                                                                 \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockLinks = (PRTL_SPLAY_LINKS)(Links);                                                   \
        interlockLinks->Parent = interlockLinks;                                                                       \
        interlockLinks->LeftChild = NULL;                                                                              \
        interlockLinks->RightChild = NULL;                                                                             \
    } while (0)
#define RtlParent(Links)       ((PRTL_SPLAY_LINKS)(Links)->Parent)
#define RtlLeftChild(Links)    ((PRTL_SPLAY_LINKS)(Links)->LeftChild)
#define RtlRightChild(Links)   ((PRTL_SPLAY_LINKS)(Links)->RightChild)
#define RtlIsRoot(Links)       (RtlParent(Links) == (PRTL_SPLAY_LINKS)(Links))
#define RtlIsLeftChild(Links)  (RtlLeftChild(RtlParent(Links)) == (PRTL_SPLAY_LINKS)(Links))
#define RtlIsRightChild(Links) (RtlRightChild(RtlParent(Links)) == (PRTL_SPLAY_LINKS)(Links))
#define RtlInsertAsLeftChild(ParentLinks, ChildLinks)                                                                  \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockParent = (PRTL_SPLAY_LINKS)(ParentLinks);                                            \
        PRTL_SPLAY_LINKS interlockChild = (PRTL_SPLAY_LINKS)(ChildLinks);                                              \
        interlockParent->LeftChild = interlockChild;                                                                   \
        interlockChild->Parent = interlockParent;                                                                      \
    } while (0)
#define RtlInsertAsRightChild(ParentLinks, ChildLinks)                                                                 \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockParent = (PRTL_SPLAY_LINKS)(ParentLinks);                                            \
        PRTL_SPLAY_LINKS interlockChild = (PRTL_SPLAY_LINKS)(ChildLinks);                                              \
        interlockParent->RightChild = interlockChild;                                                                  \
        interlockChild->Parent = interlockParent;                                                                      \
    } while (0)

/* Moves a node to the root of its tree by rotations, and returns it. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlSplay(PRTL_SPLAY_LINKS Links);

/* Removes a node and moves its parent to the root. Returns the root; NULL if the tree is empty. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlDelete(PRTL_SPLAY_LINKS Links);

/* Removes a node and leaves the rest where it is, except for one that takes its place. Updates *Root. Since NT 3.1. */
NTSYSAPI VOID RtlDeleteNoSplay(PRTL_SPLAY_LINKS Links, PRTL_SPLAY_LINKS *Root);

/* Returns the next or previous node in the order of the tree, among those below the node; NULL if there is none. Since NT
   3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlSubtreeSuccessor(PRTL_SPLAY_LINKS Links);
NTSYSAPI PRTL_SPLAY_LINKS RtlSubtreePredecessor(PRTL_SPLAY_LINKS Links);

/* Returns the next or previous node in the order of the tree; NULL if there is none. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlRealSuccessor(PRTL_SPLAY_LINKS Links);
NTSYSAPI PRTL_SPLAY_LINKS RtlRealPredecessor(PRTL_SPLAY_LINKS Links);

/* Generic tables. The allocate routine gets the size of an element plus that of an RTL_SPLAY_LINKS and a LIST_ENTRY. */

/* Initializes an empty table. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeGenericTable(PRTL_GENERIC_TABLE Table, PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine,
                                        PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine,
                                        PRTL_GENERIC_FREE_ROUTINE FreeRoutine, PVOID TableContext);

/* Returns the element that equals Buffer, or a new one with a copy of it; NULL if the allocate routine failed. Stores whether
   it is new, unless the pointer is NULL. Since NT 3.1. */
NTSYSAPI PVOID RtlInsertElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                            PBOOLEAN NewElement);

/* Inserts at the place that a search found. Since XP. */
NTSYSAPI PVOID RtlInsertElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                                PBOOLEAN NewElement, PVOID NodeOrParent,
                                                TABLE_SEARCH_RESULT SearchResult);

/* Removes the element that equals Buffer and frees it. Returns FALSE if there is none. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlDeleteElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer);

/* Returns the element that equals Buffer; NULL if there is none. Since NT 3.1. */
NTSYSAPI PVOID RtlLookupElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer);

/* The same, and stores the node, or the parent that it would have, for the insertion. Since XP. */
NTSYSAPI PVOID RtlLookupElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                                TABLE_SEARCH_RESULT *SearchResult);

/* Returns the first element, or the one that follows the last one returned, in order; NULL behind the last one. The element
   becomes the root, which is where the enumeration continues: no other call that splays may come between. Since NT 3.1. */
NTSYSAPI PVOID RtlEnumerateGenericTable(PRTL_GENERIC_TABLE Table, BOOLEAN Restart);

/* Returns the elements in order. *RestartKey is NULL for the first one. Since NT 3.5. */
NTSYSAPI PVOID RtlEnumerateGenericTableWithoutSplaying(PRTL_GENERIC_TABLE Table, PVOID *RestartKey);

/* Returns element I, counted from 0 in the order of insertion; NULL if there is none. Since NT 3.1. */
NTSYSAPI PVOID RtlGetElementGenericTable(PRTL_GENERIC_TABLE Table, ULONG I);

/* Returns the number of elements. Since NT 3.1. */
NTSYSAPI ULONG RtlNumberGenericTableElements(PRTL_GENERIC_TABLE Table);

/* Returns TRUE if the table is empty. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlIsGenericTableEmpty(PRTL_GENERIC_TABLE Table);

/* Balanced tables. The allocate routine gets the size of an element plus that of an RTL_BALANCED_LINKS. */

/* Initializes an empty table. Since XP. */
NTSYSAPI VOID RtlInitializeGenericTableAvl(PRTL_AVL_TABLE Table, PRTL_AVL_COMPARE_ROUTINE CompareRoutine,
                                           PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine, PRTL_AVL_FREE_ROUTINE FreeRoutine,
                                           PVOID TableContext);

/* Returns the element that equals Buffer, or a new one with a copy of it; NULL if the allocate routine failed. Stores whether
   it is new, unless the pointer is NULL. The Full form inserts at the place that a search found. Since XP. */
NTSYSAPI PVOID RtlInsertElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                               PBOOLEAN NewElement);
NTSYSAPI PVOID RtlInsertElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                                   PBOOLEAN NewElement, PVOID NodeOrParent,
                                                   TABLE_SEARCH_RESULT SearchResult);

/* Removes the element that equals Buffer, or that of a node that a search found, and frees it. Returns FALSE if there is
   none. Since XP, 10. */
NTSYSAPI BOOLEAN RtlDeleteElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer);
NTSYSAPI VOID RtlDeleteElementGenericTableAvlEx(PRTL_AVL_TABLE Table, PVOID NodeOrParent);

/* Returns the element that equals Buffer; NULL if there is none. The Full form also stores the node, or the parent that it
   would have. Since XP. */
NTSYSAPI PVOID RtlLookupElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer);
NTSYSAPI PVOID RtlLookupElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                                   TABLE_SEARCH_RESULT *SearchResult);

/* Returns the first one, in order, of the elements that equal Buffer, and stores it as a restart key for
   RtlEnumerateGenericTableWithoutSplayingAvl; NULL if there is none. Since XP. */
NTSYSAPI PVOID RtlLookupFirstMatchingElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *RestartKey);

/* Returns the first element, or the one that follows the last one returned, in order; NULL behind the last one. The table
   keeps the position, also while elements are inserted and removed. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableAvl(PRTL_AVL_TABLE Table, BOOLEAN Restart);

/* Returns the elements in order. *RestartKey is NULL for the first one. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableWithoutSplayingAvl(PRTL_AVL_TABLE Table, PVOID *RestartKey);

/* Returns the next element that matches, as a directory is read: from *RestartKey, or if it is NULL or elements were deleted
   since, from the element that equals Buffer or would follow it. NextFlag skips the element of the position. MatchFunction,
   if not NULL, returns STATUS_SUCCESS, STATUS_NO_MATCH, or STATUS_NO_MORE_MATCHES to stop. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableLikeADirectory(PRTL_AVL_TABLE Table, PRTL_AVL_MATCH_FUNCTION MatchFunction,
                                                      PVOID MatchData, ULONG NextFlag, PVOID *RestartKey,
                                                      PULONG DeleteCount, PVOID Buffer);

/* Returns element I, counted from 0 in order; NULL if there is none. Since XP. */
NTSYSAPI PVOID RtlGetElementGenericTableAvl(PRTL_AVL_TABLE Table, ULONG I);

/* Returns the number of elements. Since XP. */
NTSYSAPI ULONG RtlNumberGenericTableElementsAvl(PRTL_AVL_TABLE Table);

/* Returns TRUE if the table is empty. Since XP. */
NTSYSAPI BOOLEAN RtlIsGenericTableEmptyAvl(PRTL_AVL_TABLE Table);

/* Prefix tables. Entries are paths, which begin with a backslash; one is a prefix of a path if the path equals it or continues
   with a backslash. The caller keeps the entries and their strings. */

/* Initializes an empty table. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable);

/* Inserts an entry. Returns FALSE if the table has one with the same string, also in case. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlInsertUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING Prefix,
                                        PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry);

/* Removes an entry. Since NT 3.1. */
NTSYSAPI VOID RtlRemoveUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry);

/* Returns the entry with the longest prefix of a path; NULL if there is none. From character CaseInsensitiveIndex on, case is
   ignored. Since NT 3.1. */
NTSYSAPI PUNICODE_PREFIX_TABLE_ENTRY RtlFindUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING FullName,
                                                          ULONG CaseInsensitiveIndex);

/* Returns the first entry, or the one that follows the last one returned; NULL behind the last one. The table keeps the
   position, also while entries are inserted and removed. Since NT 3.1. */
NTSYSAPI PUNICODE_PREFIX_TABLE_ENTRY RtlNextUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, BOOLEAN Restart);

INTERLOCK_END

#ifdef RTL_USE_AVL_TABLES
#define RTL_GENERIC_COMPARE_ROUTINE             RTL_AVL_COMPARE_ROUTINE
#define PRTL_GENERIC_COMPARE_ROUTINE            PRTL_AVL_COMPARE_ROUTINE
#define RTL_GENERIC_ALLOCATE_ROUTINE            RTL_AVL_ALLOCATE_ROUTINE
#define PRTL_GENERIC_ALLOCATE_ROUTINE           PRTL_AVL_ALLOCATE_ROUTINE
#define RTL_GENERIC_FREE_ROUTINE                RTL_AVL_FREE_ROUTINE
#define PRTL_GENERIC_FREE_ROUTINE               PRTL_AVL_FREE_ROUTINE
#define RTL_GENERIC_TABLE                       RTL_AVL_TABLE
#define PRTL_GENERIC_TABLE                      PRTL_AVL_TABLE
#define RtlInitializeGenericTable               RtlInitializeGenericTableAvl
#define RtlInsertElementGenericTable            RtlInsertElementGenericTableAvl
#define RtlInsertElementGenericTableFull        RtlInsertElementGenericTableFullAvl
#define RtlDeleteElementGenericTable            RtlDeleteElementGenericTableAvl
#define RtlLookupElementGenericTable            RtlLookupElementGenericTableAvl
#define RtlLookupElementGenericTableFull        RtlLookupElementGenericTableFullAvl
#define RtlEnumerateGenericTable                RtlEnumerateGenericTableAvl
#define RtlEnumerateGenericTableWithoutSplaying RtlEnumerateGenericTableWithoutSplayingAvl
#define RtlGetElementGenericTable               RtlGetElementGenericTableAvl
#define RtlNumberGenericTableElements           RtlNumberGenericTableElementsAvl
#define RtlIsGenericTableEmpty                  RtlIsGenericTableEmptyAvl
#endif

#endif
