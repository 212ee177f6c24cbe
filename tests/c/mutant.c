/* mutant.c: selects the active mutant (verifier_mutants.py): the number in the environment variable RVM_MUTANT.  Output
   is not buffered, so a reader sees the first failed check at once.  A limit of processor time ends a test that the
   mutant makes endless. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int rvm_mutant(void);

static int number;

enum { MAX_SECONDS = 4 }; /* of processor time; the tests need much less */

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("RVM_MUTANT");
  number = text ? atoi(text) : 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  setrlimit(RLIMIT_CPU, &(struct rlimit){MAX_SECONDS, MAX_SECONDS});
}

int rvm_mutant(void) { return number; }
