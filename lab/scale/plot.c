/* plot.c: the plot. Both axes are logarithmic; zero has its own place at the bottom. */
#include "program.h"

#include <stdio.h>

#define LOWEST 0.03 /* the value drawn for zero */

static const char script[] = "set terminal svg size 1100,760 font 'sans,13'\n"
                             "set output \"%s\"\n"
                             "set title 'Cache lines transferred for one acquisition and release'\n"
                             "set logscale xy\n"
                             "set xlabel 'processors'\n"
                             "set ylabel 'lines'\n"
                             "set yrange [%g:10000]\n"
                             "set ytics (\"0\" %g, 0.1, 1, 10, 100, 1000, 10000)\n"
                             "set border linecolor '#7d8590'\n" /* readable on light and dark backgrounds */
                             "set tics textcolor '#7d8590'\n"
                             "set title textcolor '#7d8590'\n"
                             "set key textcolor '#7d8590'\n"
                             "set xlabel textcolor '#7d8590'\n"
                             "set ylabel textcolor '#7d8590'\n"
                             "set grid linecolor '#7d8590'\n"
                             "set key outside right center\n"
                             "set style data linespoints\n";

static bool is_drawn(const scale_lock *lock, const cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].lock == lock && cells[i].m.finished)
            return true;
    return false;
}

static void write_line(FILE *gnuplot, const scale_lock *lock, const cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cells[i].lock != lock || !cells[i].m.finished)
            continue;
        double value = per_acquisition(&cells[i].m.result, lock_transfers(&cells[i].m.result));
        fprintf(gnuplot, "%u %g\n", cells[i].processors, value > LOWEST ? value : LOWEST);
    }
    fprintf(gnuplot, "e\n");
}

static void write_script(FILE *gnuplot, const options *o, const cell *cells, size_t count)
{
    const char *before = "plot";

    fprintf(gnuplot, script, o->plot, LOWEST * 0.7, LOWEST);
    fprintf(gnuplot, "set xrange [0.9:3000]\nset xtics (");
    for (size_t i = 0; i < o->size_count; i++)
        fprintf(gnuplot, "%s%u", i != 0 ? ", " : "", o->sizes[i]);
    fprintf(gnuplot, ")\n");
    for (size_t i = 0; i < scale_lock_count; i++) {
        if (is_drawn(&scale_locks[i], cells, count)) {
            fprintf(gnuplot, "%s '-' title '%s' lw 2", before, scale_locks[i].name);
            before = ",";
        }
    }
    fprintf(gnuplot, "\n");
    for (size_t i = 0; i < scale_lock_count; i++)
        if (is_drawn(&scale_locks[i], cells, count))
            write_line(gnuplot, &scale_locks[i], cells, count);
}

bool plot(const options *o, const cell *cells, size_t count)
{
    FILE *gnuplot = popen("gnuplot", "w");

    if (gnuplot == NULL) {
        perror("lab-scale: gnuplot");
        return false;
    }
    write_script(gnuplot, o, cells, count);
    if (pclose(gnuplot) == 0)
        return true;
    fprintf(stderr, "lab-scale: no plot was drawn: is gnuplot installed?\n");
    return false;
}
