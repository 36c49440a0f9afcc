/* command.h: the subcommands of interlock. */
#ifndef INTERLOCK_COMMAND_H
#define INTERLOCK_COMMAND_H

/* argv[0] is the subcommand. Returns the status of the program. */
int command_cc(int argc, char **argv);
int command_cxx(int argc, char **argv);
int command_port(int argc, char **argv);
int command_lab(int argc, char **argv);
int command_faults(int argc, char **argv);
int command_machine(int argc, char **argv);

#endif
