/* driver.c: the loop of a coverage-guided fuzzer.  It picks an input, mutates it, runs it, and keeps it if it reaches
   new coverage.  Coverage is counted by the callback of gcc's -fsanitize-coverage=trace-pc in each basic block of the
   runtime.

   driver [-runs=N] [-seconds=N] [-seed=N] [-generate] [-failure=FILE] [-keep=FOLDER] FILE...

   First runs each file unchanged, in every mode.  With -generate, only replaces the code of functions by well-typed
   code (generator.c).  An input that fails, or takes more than a second of processor time, ends the program and is
   written to the -failure file. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "fuzz.h"

enum { MAX_INPUT_BYTES = 1 << 14, MAX_INPUTS = 1 << 15, EDGES = 1 << 16 };

typedef struct input {
  uint8_t *bytes;
  size_t size_bytes;
  int is_good; /* 1 if the loader accepts it */
} input;

static input inputs[MAX_INPUTS];
static uint32_t input_count;
static input running; /* the input of the current run */
static const char *failure_path;

/* ---- coverage ---- */

static uint8_t edges[EDGES], seen[EDGES];
static uintptr_t last_edge;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
  const uintptr_t place = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__sanitizer_cov_trace_pc;
  const uintptr_t edge = (place * 0x9e3779b1u >> 8 ^ last_edge) % EDGES;
  last_edge = (place * 0x9e3779b1u >> 9) % EDGES;
  if (edges[edge] < 255) edges[edge]++;
}

/* Returns whether the run reached an edge that no earlier run reached, or more often: 1, 2, up to 7, up to 31, or more
   times. */
static int is_new(void) {
  int found = 0;
  for (size_t i = 0; i < EDGES; i += 8) {
    uint64_t eight;
    memcpy(&eight, edges + i, 8);
    if (!eight) continue;
    for (size_t k = i; k < i + 8; k++) {
      const uint8_t times = edges[k];
      const int bit = times == 0 ? 0 : times == 1 ? 1 : times == 2 ? 2 : times < 8 ? 4 : times < 32 ? 8 : 16;
      found |= bit & ~seen[k];
      seen[k] |= (uint8_t)bit;
    }
  }
  return found != 0;
}

/* ---- one run ---- */

void __sanitizer_set_death_callback(void (*callback)(void));
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "handle_abort=1:detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=4:malloc_context_size=8";
}

static void write_file(const char *path, input candidate) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(candidate.bytes, 1, candidate.size_bytes, file) != candidate.size_bytes)
    fprintf(stderr, "cannot write %s\n", path);
  if (file) fclose(file);
}

static void keep_failure(void) {
  fprintf(stderr, "input %lld\n", (long long)fuzz_counted.inputs);
  if (failure_path) write_file(failure_path, running);
}

static void too_long(int signal_number) {
  static const char text[] = "more than a second\n";
  (void)signal_number;
  if (fwrite(text, 1, sizeof text - 1, stderr)) abort();
}

/* Runs an input.  Returns whether the loader accepted it. */
static int run(input candidate) {
  const struct itimerval second = {.it_value = {.tv_sec = 1}}, none = {.it_value = {.tv_sec = 0}};
  const int64_t loaded = fuzz_counted.loaded;
  running = candidate;
  memset(edges, 0, sizeof edges);
  last_edge = 0;
  setitimer(ITIMER_VIRTUAL, &second, NULL);
  LLVMFuzzerTestOneInput(candidate.bytes, candidate.size_bytes);
  setitimer(ITIMER_VIRTUAL, &none, NULL);
  return fuzz_counted.loaded > loaded;
}

/* ---- inputs ---- */

static void keep(input candidate) {
  if (input_count == MAX_INPUTS) return;
  uint8_t *bytes = malloc(candidate.size_bytes ? candidate.size_bytes : 1);
  if (!bytes) return;
  memcpy(bytes, candidate.bytes, candidate.size_bytes);
  inputs[input_count++] = (input){.bytes = bytes, .size_bytes = candidate.size_bytes, .is_good = candidate.is_good};
}

static int read_file(const char *path) {
  static uint8_t bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "cannot read %s\n", path);
    return 0;
  }
  input candidate = {.bytes = bytes, .size_bytes = fread(bytes, 1, sizeof bytes, file)};
  fclose(file);
  candidate.is_good = run(candidate);
  if (is_new() && candidate.size_bytes <= MAX_INPUT_BYTES) keep(candidate);
  return 1;
}

/* Picks an input: half of the time one of the last quarter that was kept, and usually one that the loader accepts,
   because mutations of others are rarely accepted. */
static input pick(fuzz_random *random) {
  const uint32_t last = input_count / 4 + 1;
  input picked;
  for (int tries = 0; tries < 8; tries++) {
    const uint32_t any = fuzz_below(random, input_count), late = input_count - 1 - fuzz_below(random, last);
    picked = inputs[fuzz_below(random, 2) ? any : late];
    if (picked.is_good) break;
  }
  return picked;
}

static void fuzz(fuzz_random *random, int64_t runs, int64_t seconds) {
  static uint8_t bytes[MAX_INPUT_BYTES];
  const time_t start = time(NULL);
  for (int64_t i = 0; (!runs || i < runs) && (!seconds || time(NULL) - start < seconds); i++) {
    const input from = pick(random);
    input candidate = {.bytes = bytes, .size_bytes = from.size_bytes};
    memcpy(bytes, from.bytes, from.size_bytes);
    candidate.size_bytes =
        LLVMFuzzerCustomMutator(bytes, candidate.size_bytes, sizeof bytes, (unsigned)fuzz_next(random));
    candidate.is_good = run(candidate);
    if (is_new()) keep(candidate);
  }
}

/* ---- the program ---- */

static void print_statuses(const char *label, const int64_t *counts) {
  static const char *const names[] = {
#define STATUS(name, python_class, meaning) #name,
#include "status.def"
#undef STATUS
  };
  for (int i = 0; i < RVM_STATUS_COUNT; i++)
    if (counts[i]) printf("%s %s %lld\n", label, names[i], (long long)counts[i]);
}

int main(int count, char **arguments) {
  int64_t runs = 0, seconds = 0;
  fuzz_random random = 1;
  const char *folder = NULL;
  __sanitizer_set_death_callback(keep_failure);
  signal(SIGVTALRM, too_long);
  fuzz_in_every_mode = 1;
  for (int i = 1; i < count; i++) {
    char *given = arguments[i], *value = strchr(given, '=');
    if (strncmp(given, "-runs=", 6) == 0)
      runs = strtoll(value + 1, NULL, 10);
    else if (strncmp(given, "-seconds=", 9) == 0)
      seconds = strtoll(value + 1, NULL, 10);
    else if (strcmp(given, "-generate") == 0)
      fuzz_generates = 1;
    else if (strncmp(given, "-seed=", 6) == 0)
      random = strtoull(value + 1, NULL, 10);
    else if (strncmp(given, "-failure=", 9) == 0)
      failure_path = value + 1;
    else if (strncmp(given, "-keep=", 6) == 0)
      folder = value + 1;
    else if (!read_file(given))
      return 2;
  }
  const clock_t start = clock();
  fuzz_in_every_mode = 0;
  if ((runs || seconds) && input_count > 0) fuzz(&random, runs, seconds);
  const double took = (double)(clock() - start) / CLOCKS_PER_SEC;
  int32_t reached = 0;
  for (size_t i = 0; i < EDGES; i++) reached += seen[i] != 0;
  printf("inputs %lld\nseconds %.1f\nkept %u\nedges %d\n", (long long)fuzz_counted.inputs, took, input_count, reached);
  printf("loaded %lld\nmachines %lld\ncalls %lld\n", (long long)fuzz_counted.loaded, (long long)fuzz_counted.machines,
         (long long)fuzz_counted.calls);
  print_statuses("refused", fuzz_counted.refused);
  print_statuses("ended", fuzz_counted.ended);
  for (uint32_t i = 0; i < input_count; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%06u", folder ? folder : "", i);
    if (folder) write_file(path, inputs[i]);
    free(inputs[i].bytes);
  }
  return 0;
}
