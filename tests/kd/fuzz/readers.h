/*
 * readers.h: the readers of the debugger over files damaged according to an input, in this process: memory of a
 * snapshot, headers and notes of a snapshot, recordings of traces and of contention, the file of a program, a world of
 * shared objects.
 *
 * An input is three bytes (the reader, the file, the views) and records of 13 bytes: an operation, a place, a value.
 * Any bytes are a valid input. Places are mostly among the words of the file that are not zero, so that a short input
 * damages something that is read.
 */
#ifndef INTERLOCK_KD_READERS_H
#define INTERLOCK_KD_READERS_H

#include <stddef.h>
#include <stdint.h>

#define READERS_MOST_BYTES (3 + 13 * 40)

/* The folder that bases.py has filled. Ends the process if one of its files is missing or is rejected undamaged. */
void readers_start(const char *folder);
/* Aborts with a message if a reader writes invalid UTF-8, terminal controls or invalid JSON. */
void readers_run(const uint8_t *bytes, size_t size);
unsigned readers_count(void); /* values of the first byte that differ */

#endif
