/*
 * guiddef.h: DEFINE_GUID, which declares a GUID, or in a source that includes initguid.h defines it, and comparisons. No guard:
 * initguid.h includes it again, so that what follows is defined.
 */
#include <string.h>

#include <interlock/windef.h>

#undef DEFINE_GUID
#undef INTERLOCK_GUID
#ifdef __cplusplus
#define INTERLOCK_GUID extern "C" const GUID
#else
#define INTERLOCK_GUID extern const GUID
#endif
#ifndef INITGUID
#define DEFINE_GUID(Name, L, W1, W2, B1, B2, B3, B4, B5, B6, B7, B8) INTERLOCK_GUID Name
#elif defined(__cplusplus) /* a constant is internal there unless its definition says otherwise */
#define DEFINE_GUID(Name, L, W1, W2, B1, B2, B3, B4, B5, B6, B7, B8)                                                   \
    INTERLOCK_GUID DECLSPEC_SELECTANY Name = {L, W1, W2, {B1, B2, B3, B4, B5, B6, B7, B8}}
#else
#define DEFINE_GUID(Name, L, W1, W2, B1, B2, B3, B4, B5, B6, B7, B8)                                                   \
    INTERLOCK_GUID Name;                                                                                               \
    DECLSPEC_SELECTANY const GUID Name = {L, W1, W2, {B1, B2, B3, B4, B5, B6, B7, B8}}
#endif

#ifndef IsEqualGUID
#ifdef __cplusplus
#define REFGUID const GUID &
#define IsEqualGUID(First, Second) (memcmp(&(First), &(Second), sizeof(GUID)) == 0)
#else
#define REFGUID const GUID *
#define IsEqualGUID(First, Second) (memcmp((First), (Second), sizeof(GUID)) == 0)
#endif
#define InlineIsEqualGUID(First, Second) IsEqualGUID(First, Second)
#define IsEqualGUIDAligned(First, Second) IsEqualGUID(First, Second)
#endif
