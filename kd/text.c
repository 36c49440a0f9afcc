/* text.c: makes untrusted text printable. */
#include "text.h"

#include <stdio.h>
#include <string.h>

static bool goes_on(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t kd_decode(const char *text, size_t length, uint32_t *character)
{
    const unsigned char *t = (const unsigned char *)text;
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = t[0] < 0x80 ? 1 : t[0] < 0xc0 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf8 ? 4 : 0;
    uint32_t c = bytes == 1 ? t[0] : t[0] & (0x7fu >> bytes);

    if (bytes == 0 || bytes > length)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if (!goes_on(t[i]))
            return 0;
        c = c << 6 | (t[i] & 0x3f);
    }
    if (c < smallest[bytes] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *character = c;
    return bytes;
}

char *kd_encode(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

bool kd_is_safe(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } unsafe[] = {
        {0, 0x1f},         {0x7f, 0x9f},                        /* control characters */
        {0x61c, 0x61c},    {0x200e, 0x200f}, {0x202a, 0x202e},  /* the direction of text */
        {0x2066, 0x2069},  {0x2028, 0x2029},                    /* line and paragraph separators */
        {0xfeff, 0xfeff},  {0xfff9, 0xfffb}, {0xfffe, 0xffff},  /* invisible marks; not characters */
        {0xe0000, 0xe007f},                                     /* tags */
    };

    for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
        if (c >= unsafe[i].first && c <= unsafe[i].last)
            return false;
    return true;
}

char *kd_clean(char *buffer, size_t size, const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length && text[i] != '\0';) {
        char shown[16];
        uint32_t c = 0;
        size_t bytes = kd_decode(text + i, length - i, &c), wide;

        if (bytes == 0 || (c < 0x80 && !kd_is_safe(c)))
            wide = (size_t)snprintf(shown, sizeof(shown), "\\x%02x", (unsigned char)text[i]);
        else if (!kd_is_safe(c))
            wide = (size_t)snprintf(shown, sizeof(shown), "\\u%04x", c);
        else
            wide = (size_t)(kd_encode(shown, c) - shown);
        if (used + wide >= size)
            break;
        memcpy(buffer + used, shown, wide);
        used += wide;
        i += bytes != 0 ? bytes : 1;
    }
    buffer[used] = '\0';
    return buffer;
}

char *kd_copy(char *buffer, size_t size, const char *clean, size_t most_characters)
{
    size_t used = 0;

    for (size_t count = 0; clean[used] != '\0' && count < most_characters; count++) {
        size_t bytes = 1;

        while (goes_on((unsigned char)clean[used + bytes]))
            bytes++;
        if (used + bytes >= size)
            break;
        memcpy(buffer + used, clean + used, bytes);
        used += bytes;
    }
    buffer[used] = '\0';
    return buffer;
}

size_t kd_characters(const char *clean)
{
    size_t count = 0;

    for (; *clean != '\0'; clean++)
        count += !goes_on((unsigned char)*clean);
    return count;
}
