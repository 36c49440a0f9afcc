/* report.h: the results, as text and as JSON. */
#ifndef INTERLOCK_PORT_REPORT_H
#define INTERLOCK_PORT_REPORT_H

#include "tree.h"

void report_text(const tree *found, const char *root, bool verbose);
void report_json(const tree *found, const char *root);

#endif
