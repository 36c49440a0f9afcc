/*
 * stopreport.c: reads the report of a bugcheck back from a log. Other lines of the log are skipped, and so are a
 * logger's prefixes. The log is not trusted.
 */
#include "stopreport.h"

#include "ke/bugcheck.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STOP "*** STOP: "

typedef struct lines {
    const char *at, *end;
} lines;

/* The next line without its end, clean. FALSE: there is none. */
static bool next_line(lines *l, char *line, size_t size)
{
    const char *end;

    if (l->at == l->end)
        return false;
    end = memchr(l->at, '\n', (size_t)(l->end - l->at));
    if (end == NULL)
        end = l->end;
    kd_clean(line, size, l->at, (size_t)(end - l->at));
    l->at = end < l->end ? end + 1 : end;
    return true;
}

/* Parses a hexadecimal number with 0x, and advances past it. */
static bool take_hex(const char **at, uint64_t *value)
{
    char *end;

    while (**at == ' ')
        ++*at;
    if ((*at)[0] != '0' || ((*at)[1] != 'x' && (*at)[1] != 'X'))
        return false;
    *value = strtoull(*at + 2, &end, 16);
    if (end == *at + 2 || end - *at > 18)
        return false;
    *at = end;
    return true;
}

/* (0x1, 0x2, 0x3, 0x4) */
static bool take_parameters(const char *at, kd_stop_report *report)
{
    uint64_t code;

    if (!take_hex(&at, &code) || code > UINT32_MAX)
        return false;
    report->code = (uint32_t)code;
    while (*at == ' ')
        at++;
    for (size_t i = 0; i < KI_BUGCHECK_PARAMETERS; i++)
        if (*at++ != (i == 0 ? '(' : ',') || !take_hex(&at, &report->parameter[i]))
            return false;
    return *at == ')';
}

static const char *behind(const char *line, const char *part)
{
    const char *found = strstr(line, part);

    return found != NULL ? found + strlen(part) : NULL;
}

/*     2: 0x0000000000000002  current IRQL: DISPATCH_LEVEL */
static bool take_parameter_line(const char *line, kd_stop_report *report)
{
    const KI_VIOLATION *violation = KiFindViolation(report->code, report->parameter[0]);
    unsigned number = (unsigned)(*line - '1');
    const char *at = line + 2, *meaning, *rest;
    uint64_t value;

    if (number >= KI_BUGCHECK_PARAMETERS || line[1] != ':' || !take_hex(&at, &value) || value != report->parameter[number])
        return false;
    meaning = violation != NULL && number > 0 ? violation->Parameter[number - 1]
                                              : KiFindBugCode(report->code)->Parameter[number];
    rest = meaning[0] != '\0' ? behind(at, meaning) : NULL;
    if (rest != NULL && rest[0] == ':' && rest[1] == ' ')
        kd_copy(report->explanation[number], sizeof(report->explanation[number]), rest + 2, SIZE_MAX);
    return true;
}

/* Thread 0x7f.., id 12, IRQL 0 (PASSIVE_LEVEL), owns no processor; or Thread 12, unknown to the kernel */
static bool take_thread_line(const char *line, kd_stop_report *report)
{
    const char *id = behind(line, ", id ");

    if (strncmp(line, "Thread ", 7) != 0 || (id == NULL && strstr(line, "unknown to the kernel") == NULL))
        return false;
    report->thread_id = (uint32_t)strtoul(id != NULL ? id : line + 7, NULL, 10);
    kd_copy(report->thread, sizeof(report->thread), line + 7, SIZE_MAX);
    return true;
}

/*    3  0x55e3b4559211  writer+0x20 */
static bool take_frame_line(const char *line, kd_stop_report *report)
{
    char *end;
    const char *at;
    uint64_t pc;

    if (strtoul(line, &end, 10) != report->frame_count || end == line || report->frame_count >= KD_MOST_REPORT_FRAMES)
        return false;
    at = end;
    if (!take_hex(&at, &pc))
        return false;
    while (*at == ' ')
        at++;
    if (*at != '\0')
        kd_copy(report->frames[report->frame_count], sizeof(report->frames[0]), at, SIZE_MAX);
    else
        snprintf(report->frames[report->frame_count], sizeof(report->frames[0]), "0x%" PRIx64, pc);
    report->frame_count++;
    return true;
}

/* The first line after the numbers: its name, and a sentence. FALSE: it is not the name of this code. */
static bool take_name_line(const char *line, kd_stop_report *report)
{
    const char *name = KiFindBugCode(report->code)->Name, *rest;

    if (strncmp(line, name, strlen(name)) != 0)
        return false;
    rest = line + strlen(name);
    if (rest[0] == ':' && rest[1] == ' ')
        kd_copy(report->sentence, sizeof(report->sentence), rest + 2, SIZE_MAX);
    return true;
}

const char *kd_read_report(const char *text, size_t length, kd_stop_report *report)
{
    lines l = {text, text + length};
    char line[2048];
    const char *stop = NULL, *name;
    size_t before;

    memset(report, 0, sizeof(*report));
    while (stop == NULL && next_line(&l, line, sizeof(line)))
        stop = behind(line, STOP);
    if (stop == NULL)
        return "it contains no bugcheck report, which begins with \"*** STOP:\"";
    before = (size_t)(stop - strlen(STOP) - line); /* what a logger has put before each line */
    if (!take_parameters(stop, report))
        return "the report is truncated or damaged: a code and four parameters follow \"*** STOP:\"";
    if (!next_line(&l, line, sizeof(line)))
        return NULL;
    name = strlen(line) >= before ? line + before : line;
    if (!take_name_line(name, report) && l.at != l.end)
        return "it is not a report of Interlock: the line after \"*** STOP:\" does not have the name of the code";
    while (next_line(&l, line, sizeof(line))) {
        const char *at = strlen(line) >= before ? line + before : line;

        while (*at == ' ')
            at++;
        if (!(report->thread[0] == '\0' && (take_parameter_line(at, report) || take_thread_line(at, report))) &&
            !(report->thread[0] != '\0' && take_frame_line(at, report)))
            break;
    }
    return NULL;
}
