/*
 * text.h: untrusted text. Names, paths and symbols come from processes and files of other users and are printed on root's
 * terminal. All of them pass kd_clean where they are read, so a snapshot contains valid UTF-8 without terminal control:
 * control characters, characters that change the direction of text, and invalid UTF-8 become \x1b, \u202e, \x9b.
 */
#ifndef INTERLOCK_KD_TEXT_H
#define INTERLOCK_KD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the character at text; 0: invalid UTF-8. The text ends with a zero, or after length bytes. */
size_t kd_decode(const char *text, size_t length, uint32_t *character);
char *kd_encode(char *to, uint32_t character); /* at most 4 bytes; returns the place after it */
bool kd_is_safe(uint32_t character);           /* it is printable */
/* Truncates at a character. Both return buffer. */
char *kd_clean(char *buffer, size_t size, const char *text, size_t length);
char *kd_copy(char *buffer, size_t size, const char *clean, size_t most_characters);
size_t kd_characters(const char *clean);

#endif
