/* mutant.c: selects the active mutant (verifier_mutants.py): the number in RVM_MUTANT.  A test with a mutant shows its
   first failure at once, and the system ends it if the mutant makes it endless. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int rvm_mutant(void);

static int number;

enum { MAX_SECONDS = 4 }; /* of processor time, a multiple of what the tests need */

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("RVM_MUTANT");
  number = text ? atoi(text) : 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  setrlimit(RLIMIT_CPU, &(struct rlimit){MAX_SECONDS, MAX_SECONDS});
}

int rvm_mutant(void) { return number; }
