/*
 * avltable.c: balanced tables (Adelson-Velsky and Landis, 1962). The depths of the two subtrees of a node differ by at most
 * one; Balance is the difference. An insertion or a removal changes the balance of the ancestors up to the first one
 * whose subtree keeps its depth, and rotates where the difference became two.
 *
 * The root is the right child of BalancedRoot, so that every node has a parent with a link to it.
 */
#include <interlock/rtldriver.h>

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
