/*
 * text.h: text from outside. Names, paths and symbols come from processes and files that somebody else controls, and
 * end on the terminal of root. All of them pass kd_clean where they are read, so that what a snapshot holds is valid
 * UTF-8 that no terminal obeys: control characters, those that turn the direction of text, and bytes that are no UTF-8
 * become \x1b, \u202e, \x9b.
 */
#ifndef INTERLOCK_KD_TEXT_H
#define INTERLOCK_KD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes the character at text has; 0: they are no UTF-8. The text ends with a zero, or after length bytes. */
size_t kd_decode(const char *text, size_t length, uint32_t *character);
char *kd_encode(char *to, uint32_t character); /* at most 4 bytes; returns the place behind */
bool kd_is_safe(uint32_t character);           /* it may be shown as it is */
/* What does not fit is left out, no character is cut. Both return buffer. */
char *kd_clean(char *buffer, size_t size, const char *text, size_t length);
char *kd_copy(char *buffer, size_t size, const char *clean, size_t most_characters);
size_t kd_characters(const char *clean);

#endif
