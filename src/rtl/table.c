/*
 * table.c: trees and the tables made of them: splay trees, generic tables, balanced tables, tables of path prefixes.
 *
 * Splay trees (Sleator and Tarjan, 1985). A node is moved to the root in steps of two rotations: first the parent
 * if node and parent are children of the same side, first the node if not. Any sequence of operations then costs O(log n)
 * each, on average.
 */
#include <interlock/rtl.h>

#include "../ex/text.h"

/* Replaces a node by another one, or by NULL. */
static VOID RtlpReplaceSplay(PRTL_SPLAY_LINKS Old, PRTL_SPLAY_LINKS New)
{
    PRTL_SPLAY_LINKS *Link = RtlIsRoot(Old)        ? NULL
                             : RtlIsLeftChild(Old) ? &Old->Parent->LeftChild
                                                   : &Old->Parent->RightChild;
    if (Link != NULL) {
        *Link = New;
    }
    if (New != NULL) {
        New->Parent = Link != NULL ? Old->Parent : New;
    }
}

static VOID RtlpRotateSplay(PRTL_SPLAY_LINKS Node)
{
    PRTL_SPLAY_LINKS Parent = Node->Parent;
    BOOLEAN Left = RtlIsLeftChild(Node);
    PRTL_SPLAY_LINKS Middle = Left ? Node->RightChild : Node->LeftChild;
    RtlpReplaceSplay(Parent, Node);
    Parent->Parent = Node;
    if (Left) {
        Node->RightChild = Parent;
        Parent->LeftChild = Middle;
    } else {
        Node->LeftChild = Parent;
        Parent->RightChild = Middle;
    }
    if (Middle != NULL) {
        Middle->Parent = Parent;
    }
}

PRTL_SPLAY_LINKS RtlSplay(PRTL_SPLAY_LINKS Links)
{
    while (!RtlIsRoot(Links)) {
        if (!RtlIsRoot(Links->Parent)) {
            RtlpRotateSplay(RtlIsLeftChild(Links) == RtlIsLeftChild(Links->Parent) ? Links->Parent : Links);
        }
        RtlpRotateSplay(Links);
    }
    return Links;
}

PRTL_SPLAY_LINKS RtlSubtreeSuccessor(PRTL_SPLAY_LINKS Links)
{
    PRTL_SPLAY_LINKS Node = Links->RightChild;
    while (Node != NULL && Node->LeftChild != NULL) {
        Node = Node->LeftChild;
    }
    return Node;
}

PRTL_SPLAY_LINKS RtlSubtreePredecessor(PRTL_SPLAY_LINKS Links)
{
    PRTL_SPLAY_LINKS Node = Links->LeftChild;
    while (Node != NULL && Node->RightChild != NULL) {
        Node = Node->RightChild;
    }
    return Node;
}

PRTL_SPLAY_LINKS RtlRealSuccessor(PRTL_SPLAY_LINKS Links)
{
    PRTL_SPLAY_LINKS Below = RtlSubtreeSuccessor(Links);
    if (Below != NULL) {
        return Below;
    }
    while (RtlIsRightChild(Links)) {
        Links = Links->Parent;
    }
    return RtlIsLeftChild(Links) ? Links->Parent : NULL;
}

PRTL_SPLAY_LINKS RtlRealPredecessor(PRTL_SPLAY_LINKS Links)
{
    PRTL_SPLAY_LINKS Below = RtlSubtreePredecessor(Links);
    if (Below != NULL) {
        return Below;
    }
    while (RtlIsLeftChild(Links)) {
        Links = Links->Parent;
    }
    return RtlIsRightChild(Links) ? Links->Parent : NULL;
}

/* Removes a node. Returns the deepest node whose subtree changed, or the new root if that was removed; NULL: the tree
   is empty. */
static PRTL_SPLAY_LINKS RtlpUnlinkSplay(PRTL_SPLAY_LINKS Node)
{
    PRTL_SPLAY_LINKS Child = Node->LeftChild != NULL ? Node->LeftChild : Node->RightChild;
    PRTL_SPLAY_LINKS Changed = RtlIsRoot(Node) ? Child : Node->Parent;
    if (Node->LeftChild == NULL || Node->RightChild == NULL) {
        RtlpReplaceSplay(Node, Child);
        return Changed;
    }
    /* With two children, the predecessor takes its place. */
    PRTL_SPLAY_LINKS Predecessor = RtlSubtreePredecessor(Node);
    Changed = Predecessor->Parent == Node ? Predecessor : Predecessor->Parent;
    RtlpReplaceSplay(Predecessor, Predecessor->LeftChild);
    RtlpReplaceSplay(Node, Predecessor);
    Predecessor->LeftChild = Node->LeftChild;
    Predecessor->RightChild = Node->RightChild;
    Predecessor->RightChild->Parent = Predecessor;
    if (Predecessor->LeftChild != NULL) {
        Predecessor->LeftChild->Parent = Predecessor;
    }
    return Changed;
}

PRTL_SPLAY_LINKS RtlDelete(PRTL_SPLAY_LINKS Links)
{
    PRTL_SPLAY_LINKS Changed = RtlpUnlinkSplay(Links);
    return Changed != NULL ? RtlSplay(Changed) : NULL;
}

VOID RtlDeleteNoSplay(PRTL_SPLAY_LINKS Links, PRTL_SPLAY_LINKS *Root)
{
    PRTL_SPLAY_LINKS Node = RtlpUnlinkSplay(Links);
    while (Node != NULL && !RtlIsRoot(Node)) {
        Node = Node->Parent;
    }
    *Root = Node;
}

/* Generic tables, splay trees whose elements are also linked in the order of insertion. */

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
    Table->OrderedPointer = &Table->InsertOrderList; /* what RtlGetElementGenericTable cached is no longer valid */
    Table->WhichOrderedElement = 0;
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
        Entry = &Table->InsertOrderList; /* from the end */
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

/*
 * Balanced tables (Adelson-Velsky and Landis, 1962). The depths of the two subtrees of a node differ by at most
 * one; Balance is the difference. An insertion or a removal changes the balance of the ancestors up to the first one
 * whose subtree keeps its depth, and rotates where the difference became two.
 *
 * The root is the right child of BalancedRoot, so that every node has a parent with a link to it.
 */

typedef struct _RTLP_AVL_NODE {
    RTL_BALANCED_LINKS Links;
    UCHAR Element[];
} RTLP_AVL_NODE, *PRTLP_AVL_NODE;

C_ASSERT(sizeof(RTLP_AVL_NODE) == sizeof(RTL_BALANCED_LINKS));

static PVOID RtlpAvlElement(PRTL_BALANCED_LINKS Node)
{
    return Node != NULL ? ((PRTLP_AVL_NODE)Node)->Element : NULL;
}

VOID RtlInitializeGenericTableAvl(PRTL_AVL_TABLE Table, PRTL_AVL_COMPARE_ROUTINE CompareRoutine,
                                  PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine, PRTL_AVL_FREE_ROUTINE FreeRoutine,
                                  PVOID TableContext)
{
    *Table = (RTL_AVL_TABLE){
        .BalancedRoot.Parent = &Table->BalancedRoot,
        .CompareRoutine = CompareRoutine,
        .AllocateRoutine = AllocateRoutine,
        .FreeRoutine = FreeRoutine,
        .TableContext = TableContext,
    };
}

static TABLE_SEARCH_RESULT RtlpFindAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PRTL_BALANCED_LINKS *NodeOrParent)
{
    PRTL_BALANCED_LINKS Node = Table->BalancedRoot.RightChild;
    TABLE_SEARCH_RESULT Result = TableEmptyTree;
    *NodeOrParent = NULL;
    while (Node != NULL) {
        RTL_GENERIC_COMPARE_RESULTS Order = Table->CompareRoutine(Table, Buffer, RtlpAvlElement(Node));
        *NodeOrParent = Node;
        if (Order == GenericEqual) {
            return TableFoundNode;
        }
        Result = Order == GenericLessThan ? TableInsertAsLeft : TableInsertAsRight;
        Node = Order == GenericLessThan ? Node->LeftChild : Node->RightChild;
    }
    return Result;
}

static BOOLEAN RtlpIsLeftAvl(PRTL_BALANCED_LINKS Node)
{
    return Node->Parent->LeftChild == Node;
}

static VOID RtlpReplaceAvl(PRTL_BALANCED_LINKS Old, PRTL_BALANCED_LINKS New)
{
    if (RtlpIsLeftAvl(Old)) {
        Old->Parent->LeftChild = New;
    } else {
        Old->Parent->RightChild = New;
    }
    if (New != NULL) {
        New->Parent = Old->Parent;
    }
}

/* Moves a node above its parent. */
static VOID RtlpRotateAvl(PRTL_BALANCED_LINKS Node)
{
    PRTL_BALANCED_LINKS Parent = Node->Parent;
    BOOLEAN Left = RtlpIsLeftAvl(Node);
    PRTL_BALANCED_LINKS Middle = Left ? Node->RightChild : Node->LeftChild;
    RtlpReplaceAvl(Parent, Node);
    Parent->Parent = Node;
    if (Left) {
        Node->RightChild = Parent;
        Parent->LeftChild = Middle;
    } else {
        Node->LeftChild = Parent;
        Parent->RightChild = Middle;
    }
    if (Middle != NULL) {
        Middle->Parent = Parent;
    }
}

/*
 * The subtree on one side (-1: left, 1: right) of a node is two deeper than the other one. Rotates, and returns the node that
 * is now on top. If its balance is 0 the subtree is one less deep than it was; otherwise it is as deep.
 */
static PRTL_BALANCED_LINKS RtlpRebalanceAvl(PRTL_BALANCED_LINKS Node, CHAR Side)
{
    PRTL_BALANCED_LINKS Child = Side < 0 ? Node->LeftChild : Node->RightChild;
    if (Child->Balance == -Side) {
        /* The inner grandchild goes to the top. */
        PRTL_BALANCED_LINKS Inner = Side < 0 ? Child->RightChild : Child->LeftChild;
        RtlpRotateAvl(Inner);
        RtlpRotateAvl(Inner);
        Node->Balance = (CHAR)(Inner->Balance == Side ? -Side : 0);
        Child->Balance = (CHAR)(Inner->Balance == -Side ? Side : 0);
        Inner->Balance = 0;
        return Inner;
    }
    RtlpRotateAvl(Child);
    /* Child was balanced only if the other side lost a node. */
    Node->Balance = (CHAR)(Child->Balance == 0 ? Side : 0);
    Child->Balance = (CHAR)(Child->Balance == 0 ? -Side : 0);
    return Child;
}

/* The subtree of Node became one deeper. */
static VOID RtlpGrownAvl(PRTL_AVL_TABLE Table, PRTL_BALANCED_LINKS Node)
{
    while (Node->Parent != &Table->BalancedRoot) {
        PRTL_BALANCED_LINKS Parent = Node->Parent;
        CHAR Side = RtlpIsLeftAvl(Node) ? -1 : 1;
        if (Parent->Balance == Side) {
            RtlpRebalanceAvl(Parent, Side);
            return;
        }
        Parent->Balance = (CHAR)(Parent->Balance + Side);
        if (Parent->Balance == 0) {
            return;
        }
        Node = Parent;
    }
    Table->DepthOfTree++;
}

/* The subtree on one side of Node became one less deep. */
static VOID RtlpShrunkAvl(PRTL_AVL_TABLE Table, PRTL_BALANCED_LINKS Node, CHAR Side)
{
    while (Node != &Table->BalancedRoot) {
        if (Node->Balance == -Side) {
            Node = RtlpRebalanceAvl(Node, (CHAR)-Side);
        } else {
            Node->Balance = (CHAR)(Node->Balance - Side);
        }
        if (Node->Balance != 0) {
            return;
        }
        Side = RtlpIsLeftAvl(Node) ? -1 : 1;
        Node = Node->Parent;
    }
    Table->DepthOfTree--;
}

static PRTL_BALANCED_LINKS RtlpFirstAvl(PRTL_AVL_TABLE Table)
{
    PRTL_BALANCED_LINKS Node = Table->BalancedRoot.RightChild;
    while (Node != NULL && Node->LeftChild != NULL) {
        Node = Node->LeftChild;
    }
    return Node;
}

/* The neighbours in order; NULL: there is none. */
static PRTL_BALANCED_LINKS RtlpNextAvl(PRTL_AVL_TABLE Table, PRTL_BALANCED_LINKS Node)
{
    if (Node->RightChild != NULL) {
        Node = Node->RightChild;
        while (Node->LeftChild != NULL) {
            Node = Node->LeftChild;
        }
        return Node;
    }
    while (Node != &Table->BalancedRoot && !RtlpIsLeftAvl(Node)) {
        Node = Node->Parent;
        if (Node == &Table->BalancedRoot) {
            return NULL;
        }
    }
    return Node->Parent;
}

static PRTL_BALANCED_LINKS RtlpPreviousAvl(PRTL_AVL_TABLE Table, PRTL_BALANCED_LINKS Node)
{
    if (Node->LeftChild != NULL) {
        Node = Node->LeftChild;
        while (Node->RightChild != NULL) {
            Node = Node->RightChild;
        }
        return Node;
    }
    while (RtlpIsLeftAvl(Node)) {
        Node = Node->Parent;
    }
    return Node->Parent != &Table->BalancedRoot ? Node->Parent : NULL;
}

PVOID RtlInsertElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize, PBOOLEAN NewElement,
                                          PVOID NodeOrParent, TABLE_SEARCH_RESULT SearchResult)
{
    PRTL_BALANCED_LINKS Parent = NodeOrParent;
    PRTLP_AVL_NODE Node = NULL;
    if (SearchResult != TableFoundNode) {
        Node = Table->AllocateRoutine(Table, (CLONG)sizeof(RTLP_AVL_NODE) + BufferSize);
    }
    if (NewElement != NULL) {
        *NewElement = Node != NULL;
    }
    if (Node == NULL) {
        return SearchResult == TableFoundNode ? RtlpAvlElement(Parent) : NULL;
    }
    Parent = SearchResult == TableEmptyTree ? &Table->BalancedRoot : Parent;
    Node->Links = (RTL_BALANCED_LINKS){.Parent = Parent};
    if (SearchResult == TableInsertAsLeft) {
        Parent->LeftChild = &Node->Links;
    } else {
        Parent->RightChild = &Node->Links;
    }
    memcpy(Node->Element, Buffer, BufferSize);
    RtlpGrownAvl(Table, &Node->Links);
    Table->NumberGenericTableElements++;
    Table->OrderedPointer = NULL;
    return Node->Element;
}

PVOID RtlInsertElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize, PBOOLEAN NewElement)
{
    PRTL_BALANCED_LINKS NodeOrParent;
    TABLE_SEARCH_RESULT Result = RtlpFindAvl(Table, Buffer, &NodeOrParent);
    return RtlInsertElementGenericTableFullAvl(Table, Buffer, BufferSize, NewElement, NodeOrParent, Result);
}

static VOID RtlpUnlinkAvl(PRTL_AVL_TABLE Table, PRTL_BALANCED_LINKS Node)
{
    PRTL_BALANCED_LINKS Leaf = Node; /* the place that disappears */
    PRTL_BALANCED_LINKS Parent;
    CHAR Side;
    if (Node->LeftChild != NULL && Node->RightChild != NULL) {
        Leaf = Node->Balance < 0 ? RtlpPreviousAvl(Table, Node) : RtlpNextAvl(Table, Node);
    }
    Side = RtlpIsLeftAvl(Leaf) ? -1 : 1;
    Parent = Leaf->Parent == Node ? Leaf : Leaf->Parent;
    RtlpReplaceAvl(Leaf, Leaf->LeftChild != NULL ? Leaf->LeftChild : Leaf->RightChild);
    if (Leaf != Node) {
        /* The neighbour takes the place of the node, with its balance. */
        PRTL_BALANCED_LINKS Above = Node->Parent;
        BOOLEAN Left = RtlpIsLeftAvl(Node);
        *Leaf = *Node;
        Leaf->Parent = Above;
        if (Left) {
            Above->LeftChild = Leaf;
        } else {
            Above->RightChild = Leaf;
        }
        if (Leaf->LeftChild != NULL) {
            Leaf->LeftChild->Parent = Leaf;
        }
        if (Leaf->RightChild != NULL) {
            Leaf->RightChild->Parent = Leaf;
        }
    } else {
        Parent = Node->Parent;
    }
    RtlpShrunkAvl(Table, Parent, Side);
}

VOID RtlDeleteElementGenericTableAvlEx(PRTL_AVL_TABLE Table, PVOID NodeOrParent)
{
    PRTL_BALANCED_LINKS Node = NodeOrParent;
    if (Node == Table->RestartKey) {
        Table->RestartKey = RtlpPreviousAvl(Table, Node); /* NULL: the enumeration starts over, with what follows */
    }
    RtlpUnlinkAvl(Table, Node);
    Table->NumberGenericTableElements--;
    Table->DeleteCount++;
    Table->OrderedPointer = NULL;
    Table->FreeRoutine(Table, Node);
}

BOOLEAN RtlDeleteElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer)
{
    PRTL_BALANCED_LINKS Node;
    if (RtlpFindAvl(Table, Buffer, &Node) != TableFoundNode) {
        return FALSE;
    }
    RtlDeleteElementGenericTableAvlEx(Table, Node);
    return TRUE;
}

PVOID RtlLookupElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                          TABLE_SEARCH_RESULT *SearchResult)
{
    PRTL_BALANCED_LINKS Node;
    *SearchResult = RtlpFindAvl(Table, Buffer, &Node);
    *NodeOrParent = Node;
    return *SearchResult == TableFoundNode ? RtlpAvlElement(Node) : NULL;
}

PVOID RtlLookupElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer)
{
    PVOID NodeOrParent;
    TABLE_SEARCH_RESULT Result;
    return RtlLookupElementGenericTableFullAvl(Table, Buffer, &NodeOrParent, &Result);
}

PVOID RtlLookupFirstMatchingElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *RestartKey)
{
    PRTL_BALANCED_LINKS Node = Table->BalancedRoot.RightChild;
    PRTL_BALANCED_LINKS First = NULL;
    while (Node != NULL) {
        RTL_GENERIC_COMPARE_RESULTS Order = Table->CompareRoutine(Table, Buffer, RtlpAvlElement(Node));
        First = Order == GenericEqual ? Node : First;
        Node = Order == GenericGreaterThan ? Node->RightChild : Node->LeftChild;
    }
    *RestartKey = First;
    return RtlpAvlElement(First);
}

PVOID RtlEnumerateGenericTableWithoutSplayingAvl(PRTL_AVL_TABLE Table, PVOID *RestartKey)
{
    PRTL_BALANCED_LINKS Node = *RestartKey == NULL ? RtlpFirstAvl(Table) : RtlpNextAvl(Table, *RestartKey);
    if (Node != NULL) {
        *RestartKey = Node;
    }
    return RtlpAvlElement(Node);
}

PVOID RtlEnumerateGenericTableAvl(PRTL_AVL_TABLE Table, BOOLEAN Restart)
{
    PVOID Key = Restart ? NULL : Table->RestartKey;
    PVOID Element = RtlEnumerateGenericTableWithoutSplayingAvl(Table, &Key);
    Table->RestartKey = Key;
    return Element;
}

/* Where reading like a directory begins. */
static PRTL_BALANCED_LINKS RtlpDirectoryPosition(PRTL_AVL_TABLE Table, PVOID RestartKey, BOOLEAN Next, PVOID Buffer)
{
    PRTL_BALANCED_LINKS Node = RestartKey;
    TABLE_SEARCH_RESULT Result = TableFoundNode;
    if (Node == NULL) {
        Result = RtlpFindAvl(Table, Buffer, &Node);
    }
    if (Node != NULL && (Result == TableInsertAsRight || (Result == TableFoundNode && Next))) {
        Node = RtlpNextAvl(Table, Node);
    }
    return Node;
}

PVOID RtlEnumerateGenericTableLikeADirectory(PRTL_AVL_TABLE Table, PRTL_AVL_MATCH_FUNCTION MatchFunction,
                                             PVOID MatchData, ULONG NextFlag, PVOID *RestartKey, PULONG DeleteCount,
                                             PVOID Buffer)
{
    PVOID Key = *DeleteCount == Table->DeleteCount ? *RestartKey : NULL;
    PRTL_BALANCED_LINKS Node = RtlpDirectoryPosition(Table, Key, NextFlag != 0, Buffer);
    NTSTATUS Status = STATUS_NO_MATCH;
    *DeleteCount = Table->DeleteCount;
    for (; Node != NULL; Node = RtlpNextAvl(Table, Node)) {
        *RestartKey = Node;
        Status = MatchFunction != NULL ? MatchFunction(Table, RtlpAvlElement(Node), MatchData) : STATUS_SUCCESS;
        if (Status != STATUS_NO_MATCH) {
            break;
        }
    }
    return Status == STATUS_SUCCESS ? RtlpAvlElement(Node) : NULL;
}

/* Walks from the element returned last, unless it is after the wanted one; otherwise from the first one. */
PVOID RtlGetElementGenericTableAvl(PRTL_AVL_TABLE Table, ULONG I)
{
    PRTL_BALANCED_LINKS Node = Table->OrderedPointer;
    ULONG At = Table->WhichOrderedElement;
    if (I >= Table->NumberGenericTableElements) {
        return NULL;
    }
    if (Node == NULL || I < At) {
        Node = RtlpFirstAvl(Table);
        At = 0;
    }
    for (; At < I; At++) {
        Node = RtlpNextAvl(Table, Node);
    }
    Table->OrderedPointer = Node;
    Table->WhichOrderedElement = I;
    return RtlpAvlElement(Node);
}

ULONG RtlNumberGenericTableElementsAvl(PRTL_AVL_TABLE Table)
{
    return Table->NumberGenericTableElements;
}

BOOLEAN RtlIsGenericTableEmptyAvl(PRTL_AVL_TABLE Table)
{
    return Table->NumberGenericTableElements == 0;
}

/*
 * Tables of path prefixes.
 *
 * A splay tree orders the strings without regard to case. Entries that differ only in case share a node: the first one
 * is the node, the others are linked to it in a ring. A search looks for the whole path, then for the path without its
 * last component, and so on; each of these is a search for an equal string.
 */

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

/* The length of a path without its last component: 1 for the root, then 0. */
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
