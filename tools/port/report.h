/* report.h: what was found, for people and for programs. */
#ifndef INTERLOCK_PORT_REPORT_H
#define INTERLOCK_PORT_REPORT_H

#include "tree.h"

void report_text(const tree *found, const char *root, bool verbose);
void report_json(const tree *found, const char *root);

#endif
