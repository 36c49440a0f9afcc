/*
 * x264.c: encodes moving pictures with x264's Win32 threads, in several ways, twice each. All pictures must be encoded,
 * both times to the same bytes, as x264 guarantees.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "x264.h"

#define WIDTH 320
#define HEIGHT 180
#define PICTURES 60

typedef struct way {
    const char *name;
    int threads, lookahead_threads, sliced, sync_lookahead;
} way;

static const way ways[] = {
    {"one thread", 1, 1, 0, 0},
    {"2 threads", 2, 1, 0, -1},
    {"4 threads", 4, 1, 0, -1},
    {"8 threads", 8, 2, 0, -1},
    {"16 threads", 16, 4, 0, -1},
    {"2 sliced threads", 2, 1, 1, 0},
    {"4 sliced threads", 4, 2, 1, 0},
    {"8 sliced threads", 8, 4, 1, 0},
    {"4 threads, lookahead of 30", 4, 2, 0, 30},
};

static void draw(x264_picture_t *picture, int number)
{
    picture->i_pts = number;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            picture->img.plane[0][y * picture->img.i_stride[0] + x] = (uint8_t)(x * 3 + y * 5 + number * 7 + (x * y >> 6));
    for (int plane = 1; plane < 3; plane++)
        for (int y = 0; y < HEIGHT / 2; y++)
            for (int x = 0; x < WIDTH / 2; x++)
                picture->img.plane[plane][y * picture->img.i_stride[plane] + x] = (uint8_t)(128 + plane * number - x + y);
}

/* The number of encoded pictures; *hash is the hash of their bytes. */
static int encode(const way *how, uint64_t *hash)
{
    x264_param_t settings;
    x264_picture_t picture, out;
    x264_nal_t *units;
    int count, bytes, pictures = 0;
    x264_t *encoder;

    x264_param_default_preset(&settings, "veryfast", NULL);
    settings.i_width = WIDTH;
    settings.i_height = HEIGHT;
    settings.i_csp = X264_CSP_I420;
    settings.i_threads = how->threads;
    settings.i_lookahead_threads = how->lookahead_threads;
    settings.b_sliced_threads = how->sliced;
    settings.i_sync_lookahead = how->sync_lookahead;
    settings.i_log_level = X264_LOG_NONE;
    encoder = x264_encoder_open(&settings);
    if (encoder == NULL || x264_picture_alloc(&picture, X264_CSP_I420, WIDTH, HEIGHT) != 0)
        return -1;
    *hash = 14695981039346656037u;
    for (int number = 0; number < PICTURES || x264_encoder_delayed_frames(encoder) != 0; number++) {
        if (number < PICTURES)
            draw(&picture, number);
        bytes = x264_encoder_encode(encoder, &units, &count, number < PICTURES ? &picture : NULL, &out);
        if (bytes < 0)
            return -1;
        pictures += bytes > 0;
        for (int i = 0; bytes > 0 && i < bytes; i++)
            *hash = (*hash ^ units[0].p_payload[i]) * 1099511628211u;
    }
    x264_encoder_close(encoder);
    x264_picture_clean(&picture);
    return pictures;
}

int main(void)
{
    int failed = 0;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        uint64_t first = 0, second = 1;
        int passed = encode(&ways[i], &first) == PICTURES && encode(&ways[i], &second) == PICTURES && first == second;

        printf("%s %s\n", passed ? "ok" : "not ok", ways[i].name);
        failed += !passed;
    }
    return failed != 0;
}
