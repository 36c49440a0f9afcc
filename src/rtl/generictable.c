/* generictable.c: generic tables, splay trees whose elements are also linked in the order of insertion. */
#include <interlock/rtldriver.h>

typedef struct _RTLP_GENERIC_NODE {
    RTL_SPLAY_LINKS Links;
    LIST_ENTRY InsertOrder;
    UCHAR Element[];
} RTLP_GENERIC_NODE, *PRTLP_GENERIC_NODE;

C_ASSERT(sizeof(RTLP_GENERIC_NODE) == sizeof(RTL_SPLAY_LINKS) + sizeof(LIST_ENTRY));

static PVOID RtlpElementOf(PVOID Node)
{
    return ((PRTLP_GENERIC_NODE)Node)->Element;
}

VOID RtlInitializeGenericTable(PRTL_GENERIC_TABLE Table, PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine,
                               PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine, PRTL_GENERIC_FREE_ROUTINE FreeRoutine,
                               PVOID TableContext)
{
    *Table = (RTL_GENERIC_TABLE){
        .CompareRoutine = CompareRoutine,
        .AllocateRoutine = AllocateRoutine,
        .FreeRoutine = FreeRoutine,
        .TableContext = TableContext,
    };
    InitializeListHead(&Table->InsertOrderList);
    Table->OrderedPointer = &Table->InsertOrderList;
}

static TABLE_SEARCH_RESULT RtlpFindGeneric(PRTL_GENERIC_TABLE Table, PVOID Buffer, PRTL_SPLAY_LINKS *NodeOrParent)
{
    PRTL_SPLAY_LINKS Node = Table->TableRoot;
    TABLE_SEARCH_RESULT Result = TableEmptyTree;
    *NodeOrParent = NULL;
    while (Node != NULL) {
        RTL_GENERIC_COMPARE_RESULTS Order = Table->CompareRoutine(Table, Buffer, RtlpElementOf(Node));
        *NodeOrParent = Node;
        if (Order == GenericEqual) {
            return TableFoundNode;
        }
        Result = Order == GenericLessThan ? TableInsertAsLeft : TableInsertAsRight;
        Node = Order == GenericLessThan ? Node->LeftChild : Node->RightChild;
    }
    return Result;
}

/* The position cached by RtlGetElementGenericTable is no longer valid. */
static VOID RtlpForgetOrder(PRTL_GENERIC_TABLE Table)
{
    Table->OrderedPointer = &Table->InsertOrderList;
    Table->WhichOrderedElement = 0;
}

PVOID RtlInsertElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize, PBOOLEAN NewElement,
                                       PVOID NodeOrParent, TABLE_SEARCH_RESULT SearchResult)
{
    PRTLP_GENERIC_NODE Node = NodeOrParent;
    if (NewElement != NULL) {
        *NewElement = SearchResult != TableFoundNode;
    }
    if (SearchResult != TableFoundNode) {
        Node = Table->AllocateRoutine(Table, (CLONG)sizeof(RTLP_GENERIC_NODE) + BufferSize);
        if (Node == NULL) {
            if (NewElement != NULL) {
                *NewElement = FALSE;
            }
            return NULL;
        }
        RtlInitializeSplayLinks(&Node->Links);
        InsertTailList(&Table->InsertOrderList, &Node->InsertOrder);
        Table->NumberGenericTableElements++;
        if (SearchResult == TableInsertAsLeft) {
            RtlInsertAsLeftChild(NodeOrParent, &Node->Links);
        } else if (SearchResult == TableInsertAsRight) {
            RtlInsertAsRightChild(NodeOrParent, &Node->Links);
        }
        memcpy(Node->Element, Buffer, BufferSize);
    }
    Table->TableRoot = RtlSplay(&Node->Links);
    return Node->Element;
}

PVOID RtlInsertElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize, PBOOLEAN NewElement)
{
    PRTL_SPLAY_LINKS NodeOrParent;
    TABLE_SEARCH_RESULT Result = RtlpFindGeneric(Table, Buffer, &NodeOrParent);
    return RtlInsertElementGenericTableFull(Table, Buffer, BufferSize, NewElement, NodeOrParent, Result);
}

BOOLEAN RtlDeleteElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer)
{
    PRTL_SPLAY_LINKS Links;
    if (RtlpFindGeneric(Table, Buffer, &Links) != TableFoundNode) {
        return FALSE;
    }
    PRTLP_GENERIC_NODE Node = (PRTLP_GENERIC_NODE)Links;
    Table->TableRoot = RtlDelete(Links);
    RemoveEntryList(&Node->InsertOrder);
    Table->NumberGenericTableElements--;
    RtlpForgetOrder(Table);
    Table->FreeRoutine(Table, Node);
    return TRUE;
}

PVOID RtlLookupElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                       TABLE_SEARCH_RESULT *SearchResult)
{
    PRTL_SPLAY_LINKS Node;
    *SearchResult = RtlpFindGeneric(Table, Buffer, &Node);
    *NodeOrParent = Node;
    if (*SearchResult != TableFoundNode) {
        return NULL;
    }
    Table->TableRoot = RtlSplay(Node);
    return RtlpElementOf(Node);
}

PVOID RtlLookupElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer)
{
    PVOID NodeOrParent;
    TABLE_SEARCH_RESULT Result;
    return RtlLookupElementGenericTableFull(Table, Buffer, &NodeOrParent, &Result);
}

static PRTL_SPLAY_LINKS RtlpFirstGeneric(PRTL_GENERIC_TABLE Table)
{
    PRTL_SPLAY_LINKS Node = Table->TableRoot;
    while (Node != NULL && Node->LeftChild != NULL) {
        Node = Node->LeftChild;
    }
    return Node;
}

PVOID RtlEnumerateGenericTable(PRTL_GENERIC_TABLE Table, BOOLEAN Restart)
{
    PRTL_SPLAY_LINKS Node = NULL;
    if (Table->TableRoot != NULL) {
        Node = Restart ? RtlpFirstGeneric(Table) : RtlRealSuccessor(Table->TableRoot);
    }
    if (Node == NULL) {
        return NULL;
    }
    Table->TableRoot = RtlSplay(Node);
    return RtlpElementOf(Node);
}

PVOID RtlEnumerateGenericTableWithoutSplaying(PRTL_GENERIC_TABLE Table, PVOID *RestartKey)
{
    PRTL_SPLAY_LINKS Node = *RestartKey == NULL ? RtlpFirstGeneric(Table) : RtlRealSuccessor(*RestartKey);
    if (Node == NULL) {
        return NULL;
    }
    *RestartKey = Node;
    return RtlpElementOf(Node);
}

/* Walks from the element returned last, which WhichOrderedElement counts from 1, or from an end, whichever is
   nearest. */
PVOID RtlGetElementGenericTable(PRTL_GENERIC_TABLE Table, ULONG I)
{
    PLIST_ENTRY Entry = Table->OrderedPointer;
    ULONG At = Table->WhichOrderedElement;
    ULONG Wanted = I + 1;
    if (I >= Table->NumberGenericTableElements) {
        return NULL;
    }
    if (Wanted < At / 2) {
        Entry = &Table->InsertOrderList;
        At = 0;
    } else if (Wanted > At && Wanted - At > Table->NumberGenericTableElements - I) {
        Entry = &Table->InsertOrderList; /* from behind the last one */
        At = Table->NumberGenericTableElements + 1;
    }
    for (; At < Wanted; At++) {
        Entry = Entry->Flink;
    }
    for (; At > Wanted; At--) {
        Entry = Entry->Blink;
    }
    Table->OrderedPointer = Entry;
    Table->WhichOrderedElement = Wanted;
    return CONTAINING_RECORD(Entry, RTLP_GENERIC_NODE, InsertOrder)->Element;
}

ULONG RtlNumberGenericTableElements(PRTL_GENERIC_TABLE Table)
{
    return Table->NumberGenericTableElements;
}

BOOLEAN RtlIsGenericTableEmpty(PRTL_GENERIC_TABLE Table)
{
    return Table->TableRoot == NULL;
}
