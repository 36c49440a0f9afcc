/* views.h: the subcommands that inspect a process. */
#ifndef INTERLOCK_KD_VIEWS_H
#define INTERLOCK_KD_VIEWS_H

/* argv[0] is the subcommand. 0: shown; 1: nothing to inspect, which was reported; 2: wrong usage. */
int command_ps(int argc, char **argv);
int command_session(int argc, char **argv); /* 3: it shows a deadlock */
int command_threads(int argc, char **argv);
int command_deadlocks(int argc, char **argv);
int command_explain(int argc, char **argv); /* 3: there is a deadlock */
int command_graph(int argc, char **argv);
int command_locks(int argc, char **argv);
int command_object(int argc, char **argv);
int command_handles(int argc, char **argv);
int command_qlocks(int argc, char **argv);
int command_dpcs(int argc, char **argv);
int command_timers(int argc, char **argv);
int command_pool(int argc, char **argv);
int command_snapshot(int argc, char **argv);
int command_top(int argc, char **argv);
int command_view(int argc, char **argv); /* if it is built: INTERLOCK_VIEW */
/* These run a command, and end with its status. */
int command_trace(int argc, char **argv);
int command_contention(int argc, char **argv);

#endif
