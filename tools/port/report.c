/* report.c: a summary for a decision first, then the places. */
#include "report.h"
#include "json.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_PLACES 4

typedef enum standing { THERE, MISSING, OUT_OF_SCOPE, STANDINGS } standing;

static const char *const standing_keys[STANDINGS] = {"there", "missing", "out_of_scope"};
static const char *const standing_titles[STANDINGS] = {"available", "missing", "out of scope"};

typedef struct total {
    size_t names;
    size_t places;
} total;

static standing standing_of(const sdk_name *name)
{
    return name->there ? THERE : sdk_areas[name->area].in_scope ? MISSING : OUT_OF_SCOPE;
}

/* Counts the functions of a standing, in one area or (area -1) in all. */
static total count(const tree *found, standing wanted, int area)
{
    total sum = {0, 0};

    for (size_t i = 0; i < sdk_function_count; i++)
        if (found->functions[i].count != 0 && standing_of(&sdk_functions[i]) == wanted &&
            (area < 0 || sdk_functions[i].area == area)) {
            sum.names++;
            sum.places += found->functions[i].count;
        }
    return sum;
}

static const char *plural(size_t number)
{
    return number == 1 ? "" : "s";
}

static void print_places(const tree *found, const places *list, bool verbose)
{
    size_t shown = verbose || list->count <= FEW_PLACES + 1 ? list->count : FEW_PLACES;

    for (size_t i = 0; i < shown; i++)
        printf("  %s:%u", found->files[list->place[i].file], list->place[i].line);
    if (shown < list->count)
        printf("  and %zu more", list->count - shown);
    printf("\n");
}

/* The summary. */

static void print_areas(const tree *found, standing wanted)
{
    const char *before = "   ";

    for (size_t area = 0; area < sdk_area_count && wanted != THERE; area++) {
        total sum = count(found, wanted, (int)area);

        if (sum.names != 0)
            printf("%s %s %zu", before, sdk_areas[area].name, sum.names);
        before = sum.names != 0 ? "," : before;
    }
}

static void print_standing(const tree *found, standing wanted)
{
    total sum = count(found, wanted, -1);

    printf("  %-13s %5zu function%s, %6zu call%s", standing_titles[wanted], sum.names, sum.names == 1 ? " " : "s", sum.places,
           sum.places == 1 ? " " : "s");
    print_areas(found, wanted);
    printf("\n");
}

static void print_headers_briefly(const tree *found)
{
    const char *before = "  unavailable headers:";

    for (size_t i = 0; i < sdk_header_count; i++)
        if (found->headers[i].count != 0 && !sdk_headers[i].there) {
            printf("%s %s", before, sdk_headers[i].name);
            before = ",";
        }
    printf("%s", before[0] == ',' ? "\n" : "");
}

static void print_looks_briefly(const tree *found)
{
    const char *title = "to check";

    for (int kind = 0; kind < LOOK_COUNT; kind++)
        if (found->looks[kind].count != 0) {
            printf("  %-13s %5zu %s\n", title, found->looks[kind].count, look_kinds[kind].title);
            title = "";
        }
}

static void print_left_out(const tree *found)
{
    if (found->binary + found->too_large + found->unreadable + found->too_deep != 0)
        printf("  left out: %zu binary, %zu above 16 MB, %zu unreadable, %zu too deep\n", found->binary, found->too_large,
               found->unreadable, found->too_deep);
}

static void print_summary(const tree *found, const char *root)
{
    size_t there = count(found, THERE, -1).places, all = 0;

    printf("%s: %zu file%s, %zu lines, %zu file%s for Windows\n", root, found->file_count, plural(found->file_count), found->lines,
           found->windows_files, plural(found->windows_files));
    for (int wanted = THERE; wanted < STANDINGS; wanted++) {
        print_standing(found, (standing)wanted);
        all += count(found, (standing)wanted, -1).places;
    }
    if (all != 0)
        printf("  %zu %% of the calls are available\n", there * 100 / all);
    print_headers_briefly(found);
    print_looks_briefly(found);
    print_left_out(found);
}

/* The places. */

static void print_functions(const tree *found, standing wanted, int area, bool verbose)
{
    for (size_t i = 0; i < sdk_function_count; i++)
        if (found->functions[i].count != 0 && sdk_functions[i].area == area && standing_of(&sdk_functions[i]) == wanted) {
            printf("    %-30s", sdk_functions[i].name);
            print_places(found, &found->functions[i], verbose);
        }
}

/* The files with the most out-of-scope uses: if these are few, the rest can be ported. */
static void print_worst_files(const tree *found)
{
    size_t *calls = calloc(found->file_count + 1, sizeof(*calls)), all = count(found, OUT_OF_SCOPE, -1).places;

    if (calls == NULL)
        abort();
    for (size_t i = 0; i < sdk_function_count; i++)
        for (size_t p = 0; standing_of(&sdk_functions[i]) == OUT_OF_SCOPE && p < found->functions[i].count; p++)
            calls[found->functions[i].place[p].file]++;
    printf("  %zu calls, most of them in", all);
    for (int n = 0; n < 5; n++) {
        size_t most = 0;

        for (size_t file = 1; file < found->file_count; file++)
            most = calls[file] > calls[most] ? file : most;
        if (calls[most] == 0)
            break;
        printf("%s %s %zu", n != 0 ? "," : "", found->files[most], calls[most]);
        calls[most] = 0;
    }
    printf("\n");
    free(calls);
}

static void print_section(const tree *found, standing wanted, const char *title, bool verbose)
{
    if (count(found, wanted, -1).names == 0)
        return;
    printf("\n%s\n", title);
    if (wanted == OUT_OF_SCOPE)
        print_worst_files(found);
    for (size_t area = 0; area < sdk_area_count; area++) {
        total sum = count(found, wanted, (int)area);

        if (sum.names == 0)
            continue;
        printf("  %s: %zu function%s, %zu call%s\n", sdk_areas[area].name, sum.names, plural(sum.names), sum.places,
               plural(sum.places));
        print_functions(found, wanted, (int)area, verbose);
    }
}

static void print_headers(const tree *found, bool verbose)
{
    bool titled = false;

    for (size_t i = 0; i < sdk_header_count; i++)
        if (found->headers[i].count != 0 && !sdk_headers[i].there) {
            printf("%s  %-20s", titled ? "" : "\nUnavailable headers\n", sdk_headers[i].name);
            print_places(found, &found->headers[i], verbose);
            titled = true;
        }
}

static void print_looks(const tree *found, bool verbose)
{
    bool titled = false;

    for (int kind = 0; kind < LOOK_COUNT; kind++)
        if (found->looks[kind].count != 0) {
            printf("%s  %s: %s\n   ", titled ? "" : "\nTo check\n", look_kinds[kind].title, look_kinds[kind].advice);
            print_places(found, &found->looks[kind], verbose);
            titled = true;
        }
}

void report_text(const tree *found, const char *root, bool verbose)
{
    char clean[PATH_MAX];

    print_summary(found, kd_clean(clean, sizeof(clean), root, strlen(root)));
    print_section(found, MISSING, "Missing", verbose);
    print_section(found, OUT_OF_SCOPE, "Out of scope", verbose);
    print_headers(found, verbose);
    print_looks(found, verbose);
    if (verbose)
        print_section(found, THERE, "Available", true);
}

/* JSON. */

static void json_places(json *out, const tree *found, const places *list)
{
    json_array(out, "places");
    for (size_t i = 0; i < list->count; i++) {
        json_object(out, NULL);
        json_string(out, "file", found->files[list->place[i].file]);
        json_number(out, "line", list->place[i].line);
        json_end(out);
    }
    json_end(out);
}

static void json_functions(json *out, const tree *found, standing wanted)
{
    json_array(out, standing_keys[wanted]);
    for (size_t i = 0; i < sdk_function_count; i++)
        if (found->functions[i].count != 0 && standing_of(&sdk_functions[i]) == wanted) {
            json_object(out, NULL);
            json_string(out, "name", sdk_functions[i].name);
            json_string(out, "area", sdk_areas[sdk_functions[i].area].name);
            json_places(out, found, &found->functions[i]);
            json_end(out);
        }
    json_end(out);
}

static void json_headers(json *out, const tree *found)
{
    json_array(out, "headers");
    for (size_t i = 0; i < sdk_header_count; i++)
        if (found->headers[i].count != 0) {
            json_object(out, NULL);
            json_string(out, "name", sdk_headers[i].name);
            json_bool(out, "there", sdk_headers[i].there);
            json_places(out, found, &found->headers[i]);
            json_end(out);
        }
    json_end(out);
}

static void json_looks(json *out, const tree *found)
{
    json_array(out, "look_at");
    for (int kind = 0; kind < LOOK_COUNT; kind++)
        if (found->looks[kind].count != 0) {
            json_object(out, NULL);
            json_string(out, "kind", look_kinds[kind].key);
            json_string(out, "title", look_kinds[kind].title);
            json_string(out, "advice", look_kinds[kind].advice);
            json_places(out, found, &found->looks[kind]);
            json_end(out);
        }
    json_end(out);
}

static void json_summary(json *out, const tree *found)
{
    json_object(out, "summary");
    json_number(out, "files", (int64_t)found->file_count);
    json_number(out, "windows_files", (int64_t)found->windows_files);
    json_number(out, "lines", (int64_t)found->lines);
    for (int wanted = THERE; wanted < STANDINGS; wanted++) {
        total sum = count(found, (standing)wanted, -1);

        json_object(out, standing_keys[wanted]);
        json_number(out, "functions", (int64_t)sum.names);
        json_number(out, "calls", (int64_t)sum.places);
        json_end(out);
    }
    json_object(out, "left_out");
    json_number(out, "binary", (int64_t)found->binary);
    json_number(out, "too_large", (int64_t)found->too_large);
    json_number(out, "unreadable", (int64_t)found->unreadable);
    json_number(out, "too_deep", (int64_t)found->too_deep);
    json_end(out);
    json_end(out);
}

void report_json(const tree *found, const char *root)
{
    json out = {.file = stdout};

    json_object(&out, NULL);
    json_string(&out, "root", root);
    json_summary(&out, found);
    for (int wanted = THERE; wanted < STANDINGS; wanted++)
        json_functions(&out, found, (standing)wanted);
    json_headers(&out, found);
    json_looks(&out, found);
    json_end(&out);
    printf("\n");
}
