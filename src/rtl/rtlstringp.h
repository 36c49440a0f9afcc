/* rtlstringp.h: what the files of counted strings share. */
#ifndef INTERLOCK_RTLSTRINGP_H
#define INTERLOCK_RTLSTRINGP_H

#include <interlock/ex.h>
#include <interlock/rtl.h>

/* The longest UNICODE_STRING with a terminator, in bytes with it. */
#define RTLP_LARGEST_UNICODE_STRING 0xFFFEu
#define RTLP_LARGEST_STRING 0xFFFFu

/* Memory of the size for the buffer of a string, zeroed; NULL if there is none. */
PVOID RtlpAllocateString(SIZE_T Size);
VOID RtlpFreeString(PVOID Buffer);

#endif
