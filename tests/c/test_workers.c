/* test_workers.c: loops shared by threads: each index runs once, for any caller and any number of threads. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "system.h"

enum { NUMBERS = 5000, ROUNDS = 200, CALLERS = 3 };

typedef struct job {
  atomic_int done[NUMBERS];
  atomic_int parts;
} job;

static void count_numbers(const void *shared, int64_t first, int64_t last) {
  job *the = *(job *const *)shared;
  atomic_fetch_add(&the->parts, 1);
  for (int64_t i = first; i < last; i++) atomic_fetch_add(&the->done[i], 1);
}

static int all_done(job *the, int64_t count, int32_t times) {
  for (int64_t i = 0; i < NUMBERS; i++)
    if (atomic_load(&the->done[i]) != (i < count ? times : 0)) return 0;
  return 1;
}

static int run(int32_t threads, int64_t count, int64_t grain) {
  static _Thread_local job the;
  job *shared = &the;
  for (int32_t i = 0; i < NUMBERS; i++) atomic_store(&the.done[i], 0);
  atomic_store(&the.parts, 0);
  rvm_workers_run(threads, count_numbers, &shared, count, grain);
  return all_done(&the, count, 1) && atomic_load(&the.parts) <= (count > grain ? count / grain : 1);
}

static void every_number_is_done_once(void) {
  for (int32_t threads = 1; threads <= 5; threads++)
    for (int64_t count = 0; count < 40; count++)
      for (int64_t grain = 1; grain < 9; grain += 3) CHECK(run(threads, count, grain));
  for (int32_t i = 0; i < ROUNDS; i++) CHECK(run(1 + i % 4, NUMBERS, 1 + i * 7));
}

static void *run_many(void *unused) {
  (void)unused;
  for (int32_t i = 0; i < ROUNDS; i++)
    if (!run(3, NUMBERS, 100)) return "a number was not done once";
  return NULL;
}

static void threads_that_ask_at_once_do_not_wait_for_each_other(void) {
  pthread_t callers[CALLERS];
  void *failed;
  for (int32_t i = 0; i < CALLERS; i++) CHECK(pthread_create(&callers[i], NULL, run_many, NULL) == 0);
  for (int32_t i = 0; i < CALLERS; i++) {
    CHECK(pthread_join(callers[i], &failed) == 0);
    CHECK(failed == NULL);
  }
}

static void workers_that_sleep_are_woken(void) {
  for (int32_t i = 0; i < 20; i++) {
    usleep(2000);
    CHECK(run(4, NUMBERS, 50));
  }
}

#ifdef __linux__
/* Returns the number of processors on which the calling thread may run. */
static int count_allowed(void) {
  cpu_set_t allowed;
  CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  return CPU_COUNT(&allowed);
}

static void *avoid_processors(void *unused) {
  (void)unused;
  const int count = count_allowed();
  for (int i = 0; i < 5; i++) {
    const int32_t processor = rvm_thread_processor();
    CHECK(processor >= 0);
    CHECK(rvm_thread_avoid(processor) == (count > 1));
    if (count == 1) continue;
    CHECK(rvm_thread_processor() != processor);
    CHECK(count_allowed() == count - 1); /* the processor that the last call avoided is allowed again */
  }
  return NULL;
}

/* Another thread avoids the processors, so that this thread may still use all of them. */
static void threads_can_avoid_a_processor(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, avoid_processors, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}
#endif

int main(void) {
  every_number_is_done_once();
  threads_that_ask_at_once_do_not_wait_for_each_other();
  workers_that_sleep_are_woken();
#ifdef __linux__
  threads_can_avoid_a_processor();
#endif
  return CHECK_RESULT();
}
