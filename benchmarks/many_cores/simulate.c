/* Measures a program with one and two threads, and computes its time with more cores than the computer has, for
   benchmarks/many_cores.

       simulate MODEL.rvm RUNS HANDOVER [INPUT.npy | NUMBER]...

   Runs the function main.  HANDOVER is the nanoseconds after which a core can write a cache line that another core has
   written.  The parallel loops of a simulated run are divided as the thread pool divides them for N threads.  Their
   parts run one after the other on one thread, and each is timed.  Then `loop_time` computes when N threads would have
   finished them.  The program prints a line for each run, with times in nanoseconds:

       measured THREADS TIME
       simulated THREADS TIME SERIAL EVEN LISTED LOOPS

   SERIAL is the time outside of parallel loops.  EVEN is the time of the loops if their work were divided evenly,
   LISTED the time if threads took the parts without any cost, and TIME contains the costs of the pool. */
#define main npy_main
#include "../../examples/c/relvm_npy.c"
#undef main

#define rvm_workers_run run_in_pool
#include "thread_pool.c"
#undef rvm_workers_run

enum { MOST_THREADS = 64, MAX_PARTS = MOST_THREADS * PARTS_PER_THREAD, CLOCK_READS = 1000 };

static struct {
  int32_t threads; /* simulated threads, or 0 to use the pool */
  int32_t real_threads;
  double handover, clock;              /* nanoseconds of HANDOVER, and of a reading of the clock */
  double parts, even, listed, elapsed; /* sums over the loops of a run, in nanoseconds */
  double own;                          /* nanoseconds that the simulation itself has taken */
  int64_t loops;
} run_state;

/* ---- the time of a loop ---- */

/* A cache line that threads write by turns.  It is free from `free` on. */
typedef struct line {
  double free;
  int32_t last; /* the thread that wrote it last */
} line;

/* Returns when `thread`, which wants to write the line from `time` on, has written it. */
static double write_line(line *shared, int32_t thread, double time, double handover) {
  const double start = time > shared->free ? time : shared->free;
  shared->free = start + (shared->last == thread ? 0 : handover);
  shared->last = thread;
  return shared->free;
}

/* Returns the nanoseconds from the start of a loop until all threads have left it.  Thread 0 starts the loop.  The
   others join it through the gate.  Each takes parts in order from the counter `next` until none is left. */
static double loop_time(int32_t threads, const double *parts, int32_t count, double handover) {
  double ready[MOST_THREADS] = {0}, end = 0;
  line gate = {0, 0}, next = {0, 0};
  int is_done[MOST_THREADS] = {0};
  for (int32_t t = 1; t < threads; t++) ready[t] = write_line(&gate, t, handover, handover);
  for (int32_t left = threads, taken = 0; left > 0;) {
    int32_t first = -1;
    for (int32_t t = 0; t < threads; t++)
      if (!is_done[t] && (first < 0 || ready[t] < ready[first])) first = t;
    ready[first] = write_line(&next, first, ready[first], handover);
    if (taken < count) {
      ready[first] += parts[taken++];
      continue;
    }
    const double out = first ? write_line(&gate, first, ready[first], handover) : ready[first];
    if (out > end) end = out;
    is_done[first] = 1;
    left--;
  }
  return threads > 1 ? end + handover : end;
}

/* The thread pool's function, for machines: runs a loop in the pool, or simulates it. */
void rvm_workers_run(int32_t threads, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  (void)threads;
  if (!run_state.threads) {
    run_in_pool(run_state.real_threads, part, shared, count, grain);
    return;
  }
  static double times[MAX_PARTS];
  int32_t used = 1, parts = 0;
  int64_t size = count;
  if (run_state.threads > 1 && count / 2 >= grain) {
    used = useful_threads(run_state.threads, count, grain);
    size = part_size(used, count, grain);
  }
  const int64_t start = rvm_clock_now();
  double sum = 0;
  for (int64_t first = 0; first < count; first += size) {
    const int64_t begin = rvm_clock_now();
    part(shared, first, count - first < size ? count : first + size);
    const double time = (double)(rvm_clock_now() - begin) - run_state.clock;
    times[parts] = time > 0 ? time : 0;
    sum += times[parts++];
  }
  run_state.loops++;
  run_state.parts += sum;
  run_state.even += sum / run_state.threads;
  run_state.listed += loop_time(used, times, parts, 0);
  run_state.elapsed += loop_time(used, times, parts, run_state.handover);
  run_state.own += (double)(rvm_clock_now() - start) + run_state.clock - sum;
}

/* ---- runs ---- */

static rvm_status run_once(rvm_machine *machine, int32_t function, const rvm_value *arguments, int32_t count,
                           double *time, rvm_value *error) {
  rvm_value result = {.tag = RVM_TAG_NIL};
  run_state.parts = run_state.even = run_state.listed = run_state.elapsed = run_state.own = 0;
  run_state.loops = 0;
  const int64_t start = rvm_clock_now();
  rvm_status status = rvm_machine_call(machine, function, arguments, count, &result);
  *time = (double)(rvm_clock_now() - start);
  if (status)
    *error = result;
  else
    rvm_value_release(&result);
  return status;
}

static rvm_status simulate(rvm_machine *machine, int32_t function, const rvm_value *arguments, int32_t count, int runs,
                           rvm_value *error) {
  rvm_status status = RVM_OK;
  double time;
  const int64_t start = rvm_clock_now();
  for (int32_t i = 0; i < CLOCK_READS; i++) (void)rvm_clock_now();
  run_state.clock = (double)(rvm_clock_now() - start) / CLOCK_READS;
  for (int i = 0; i < runs && !status; i++) {
    for (int32_t threads = 1; threads <= 2 && !status; threads++) {
      run_state.threads = 0;
      run_state.real_threads = threads;
      for (int twice = 0; twice < 2 && !status; twice++) /* the first run wakes the worker */
        status = run_once(machine, function, arguments, count, &time, error);
      if (!status) printf("measured %d %.0f\n", (int)threads, time);
    }
    for (int32_t threads = 1; threads <= MOST_THREADS && !status; threads *= 2) {
      run_state.threads = threads;
      status = run_once(machine, function, arguments, count, &time, error);
      const double serial = time - run_state.own - run_state.parts;
      if (!status)
        printf("simulated %d %.0f %.0f %.0f %.0f %lld\n", (int)threads, serial + run_state.elapsed, serial,
               run_state.even, run_state.listed, (long long)run_state.loops);
    }
  }
  return status;
}

static rvm_status run_model(rvm_executable *executable, int runs, char **texts, int32_t count, rvm_value *error) {
  rvm_value arguments[MAX_ARGUMENTS];
  const rvm_machine_options options = {.threads = 2}; /* more than one, so that kernel bytecode divides its loops */
  rvm_machine *machine;
  int32_t parsed = 0;
  const int32_t function = rvm_executable_find(executable, "main");
  if (function < 0) return rvm_fail(error, RVM_UNKNOWN_FUNCTION, "no function main");
  if (count > MAX_ARGUMENTS) return rvm_fail(error, RVM_ARGUMENT_ERROR, "expected at most %d inputs", MAX_ARGUMENTS);
  rvm_status status = rvm_machine_new(executable, &options, &machine, error);
  if (status) return status;
  while (parsed < count && !(status = parse_argument(texts[parsed], &arguments[parsed]))) parsed++;
  if (status) *error = arguments[parsed];
  if (!status) status = simulate(machine, function, arguments, parsed, runs, error);
  while (parsed > 0) rvm_value_release(&arguments[--parsed]);
  rvm_machine_release(machine);
  return status;
}

int main(int argument_count, char **arguments) {
  (void)npy_main;
  if (argument_count < 4) {
    fprintf(stderr, "usage: %s MODEL.rvm RUNS HANDOVER [INPUT.npy | NUMBER]...\n", arguments[0]);
    return 2;
  }
  void *block, *bytes;
  int64_t size_bytes;
  rvm_value error = {.tag = RVM_TAG_NIL};
  rvm_executable *executable = NULL;
  const rvm_load_options options = {.trust_native = 1};
  rvm_status status = read_file(arguments[1], &block, &bytes, &size_bytes, &error);
  if (!status) {
    run_state.handover = atof(arguments[3]);
    status = rvm_executable_load(bytes, size_bytes, &options, &executable, &error);
    if (!status) status = run_model(executable, atoi(arguments[2]), arguments + 4, argument_count - 4, &error);
    rvm_executable_release(executable);
    free(block);
  }
  if (status) fprintf(stderr, "error: %s\n", error.as.error->message);
  rvm_value_release(&error);
  return status != RVM_OK;
}
