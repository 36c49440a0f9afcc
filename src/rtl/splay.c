/*
 * splay.c: splay trees (Sleator and Tarjan, 1985). A node is moved to the root in steps of two rotations: first the parent
 * if node and parent are children of the same side, first the node if not. Any sequence of operations then costs O(log n)
 * each, on average.
 */
#include <interlock/rtldriver.h>

/* The link that leads to a node from its parent; NULL for a root. */
static PRTL_SPLAY_LINKS *RtlpSplayLinkTo(PRTL_SPLAY_LINKS Node)
{
    if (RtlIsRoot(Node)) {
        return NULL;
    }
    return RtlIsLeftChild(Node) ? &Node->Parent->LeftChild : &Node->Parent->RightChild;
}

/* Replaces a node by another one, or by NULL. */
static VOID RtlpReplaceSplay(PRTL_SPLAY_LINKS Old, PRTL_SPLAY_LINKS New)
{
    PRTL_SPLAY_LINKS *Link = RtlpSplayLinkTo(Old);
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

static PRTL_SPLAY_LINKS RtlpLeftmostSplay(PRTL_SPLAY_LINKS Node)
{
    while (Node != NULL && Node->LeftChild != NULL) {
        Node = Node->LeftChild;
    }
    return Node;
}

static PRTL_SPLAY_LINKS RtlpRightmostSplay(PRTL_SPLAY_LINKS Node)
{
    while (Node != NULL && Node->RightChild != NULL) {
        Node = Node->RightChild;
    }
    return Node;
}

PRTL_SPLAY_LINKS RtlSubtreeSuccessor(PRTL_SPLAY_LINKS Links)
{
    return RtlpLeftmostSplay(Links->RightChild);
}

PRTL_SPLAY_LINKS RtlSubtreePredecessor(PRTL_SPLAY_LINKS Links)
{
    return RtlpRightmostSplay(Links->LeftChild);
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
