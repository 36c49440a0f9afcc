/* inttypes.h of the host. Under `interlock cc` an l in a format of printf is 32 bits: 64 bits are ll. */
#ifndef INTERLOCK_WIN32_INTTYPES_H
#define INTERLOCK_WIN32_INTTYPES_H

#pragma GCC system_header /* include_next */

#include_next <inttypes.h>

#if defined(__INTERLOCK_CC__) && defined(__LP64__) && defined(PRId64)
#undef PRId64
#define PRId64 "lld"
#undef PRIdLEAST64
#define PRIdLEAST64 "lld"
#undef PRIdFAST16
#define PRIdFAST16 "lld"
#undef PRIdFAST32
#define PRIdFAST32 "lld"
#undef PRIdFAST64
#define PRIdFAST64 "lld"
#undef PRIdMAX
#define PRIdMAX "lld"
#undef PRIdPTR
#define PRIdPTR "lld"
#undef PRIi64
#define PRIi64 "lli"
#undef PRIiLEAST64
#define PRIiLEAST64 "lli"
#undef PRIiFAST16
#define PRIiFAST16 "lli"
#undef PRIiFAST32
#define PRIiFAST32 "lli"
#undef PRIiFAST64
#define PRIiFAST64 "lli"
#undef PRIiMAX
#define PRIiMAX "lli"
#undef PRIiPTR
#define PRIiPTR "lli"
#undef PRIo64
#define PRIo64 "llo"
#undef PRIoLEAST64
#define PRIoLEAST64 "llo"
#undef PRIoFAST16
#define PRIoFAST16 "llo"
#undef PRIoFAST32
#define PRIoFAST32 "llo"
#undef PRIoFAST64
#define PRIoFAST64 "llo"
#undef PRIoMAX
#define PRIoMAX "llo"
#undef PRIoPTR
#define PRIoPTR "llo"
#undef PRIu64
#define PRIu64 "llu"
#undef PRIuLEAST64
#define PRIuLEAST64 "llu"
#undef PRIuFAST16
#define PRIuFAST16 "llu"
#undef PRIuFAST32
#define PRIuFAST32 "llu"
#undef PRIuFAST64
#define PRIuFAST64 "llu"
#undef PRIuMAX
#define PRIuMAX "llu"
#undef PRIuPTR
#define PRIuPTR "llu"
#undef PRIx64
#define PRIx64 "llx"
#undef PRIxLEAST64
#define PRIxLEAST64 "llx"
#undef PRIxFAST16
#define PRIxFAST16 "llx"
#undef PRIxFAST32
#define PRIxFAST32 "llx"
#undef PRIxFAST64
#define PRIxFAST64 "llx"
#undef PRIxMAX
#define PRIxMAX "llx"
#undef PRIxPTR
#define PRIxPTR "llx"
#undef PRIX64
#define PRIX64 "llX"
#undef PRIXLEAST64
#define PRIXLEAST64 "llX"
#undef PRIXFAST16
#define PRIXFAST16 "llX"
#undef PRIXFAST32
#define PRIXFAST32 "llX"
#undef PRIXFAST64
#define PRIXFAST64 "llX"
#undef PRIXMAX
#define PRIXMAX "llX"
#undef PRIXPTR
#define PRIXPTR "llX"
#endif

#endif
