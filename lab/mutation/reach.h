#ifndef INTERLOCK_LAB_MUTATION_REACH_H
#define INTERLOCK_LAB_MUTATION_REACH_H

/* The marks that follow belong to this case of the test; 0: to what runs outside of all cases. */
void mutation_case(unsigned number);

void mutation_reached(unsigned function);
int mutation_seen(unsigned mutant, int outcome);

#endif
