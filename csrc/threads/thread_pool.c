/* thread_pool.c: the team: who has it, how a worker finds a loop, takes parts of it, and waits for the next. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base.h"
#include "clock.h"

enum {
  PARTS_PER_THREAD = 4,
  STACK_BYTES = 4 << 20,
  SPIN_NANOSECONDS = 200000,
  SPINS_PER_LOOK = 64,
  SPINS_PER_YIELD = 4096
};

/* The gate is a number of the loop, how many workers may still join it, and how many are inside: 32, 16 and 16 bits. */
#define LOOP(gate) ((uint32_t)((gate) >> 32))
#define PLACES(gate) ((gate) & 0xffff0000u)
#define ONE_PLACE ((uint64_t)1 << 16)
#define INSIDE(gate) ((gate) & 0xffffu)

static struct {
  pthread_mutex_t owner; /* held by the thread whose loop it is; guards `threads` and `count` */
  pthread_t threads[RVM_MAX_THREADS];
  int32_t count;
  _Atomic(uint64_t) gate;
  pthread_mutex_t bed; /* workers without a loop for long sleep here */
  pthread_cond_t wake;
  atomic_int asleep, ends;
  /* The loop: unchanged while somebody is inside or may join. */
  rvm_part part;
  const void *shared;
  int64_t total, step;
  _Atomic(int64_t) next;
} team = {.owner = PTHREAD_MUTEX_INITIALIZER, .bed = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void relax(void) {
#if defined(__x86_64__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void take_parts(void) {
  for (;;) {
    int64_t first = atomic_fetch_add(&team.next, team.step);
    if (first >= team.total) return;
    int64_t rest = team.total - first;
    team.part(team.shared, first, first + (rest < team.step ? rest : team.step));
  }
}

/* ---- a worker ---- */

static int has_loop(uint32_t done) {
  uint64_t gate = atomic_load(&team.gate);
  return LOOP(gate) != done && PLACES(gate) != 0;
}

/* Until there is a loop other than the one that it has `done`: awake for a while, as loops follow each other fast. */
static void await_loop(uint32_t done) {
  int64_t start = rvm_clock_now();
  do {
    for (int32_t i = 0; i < SPINS_PER_LOOK; i++) {
      if (has_loop(done) || atomic_load_explicit(&team.ends, memory_order_relaxed)) return;
      relax();
    }
  } while (rvm_clock_now() - start < SPIN_NANOSECONDS);
  pthread_mutex_lock(&team.bed);
  atomic_fetch_add(&team.asleep, 1);
  while (!has_loop(done) && !atomic_load(&team.ends)) pthread_cond_wait(&team.wake, &team.bed);
  atomic_fetch_sub(&team.asleep, 1);
  pthread_mutex_unlock(&team.bed);
}

static void *work(void *unused) {
  uint32_t done = 0;
  (void)unused;
  while (!atomic_load(&team.ends)) {
    await_loop(done);
    uint64_t gate = atomic_load(&team.gate);
    while (LOOP(gate) != done && PLACES(gate) != 0) {
      if (!atomic_compare_exchange_weak(&team.gate, &gate, gate - ONE_PLACE + 1)) continue;
      take_parts();
      atomic_fetch_sub(&team.gate, 1);
      done = LOOP(gate);
    }
  }
  return NULL;
}

static void wake_all(void) {
  if (atomic_load(&team.asleep) == 0) return;
  pthread_mutex_lock(&team.bed);
  pthread_cond_broadcast(&team.wake);
  pthread_mutex_unlock(&team.bed);
}

/* ---- the team ---- */

/* In a child of fork there are no workers, whatever the parent was about to do. */
static void forget_team(void) {
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
  team.owner = team.bed = unlocked;
  team.wake = nobody;
  team.count = 0;
  atomic_store(&team.gate, 0);
  atomic_store(&team.asleep, 0);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_team); }

/* Before this library is unloaded, or at the end of the process. */
static __attribute__((destructor)) void end_team(void) {
  if (pthread_mutex_trylock(&team.owner) != 0) return;
  atomic_store(&team.ends, 1);
  pthread_mutex_lock(&team.bed);
  pthread_cond_broadcast(&team.wake);
  pthread_mutex_unlock(&team.bed);
  while (team.count > 0) pthread_join(team.threads[--team.count], NULL);
  pthread_mutex_unlock(&team.owner);
}

/* Workers take no signals: those are for the threads of the program. */
static void grow(int32_t count) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_attr_t attributes;
  sigset_t all, before;
  if (team.count >= count || atomic_load(&team.ends) || pthread_attr_init(&attributes) != 0) return;
  pthread_once(&once, watch_forks);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (team.count < count && pthread_create(&team.threads[team.count], &attributes, work, NULL) == 0) team.count++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

static void share(int32_t helpers, rvm_part part, const void *shared, int64_t count, int64_t step) {
  team.part = part;
  team.shared = shared;
  team.total = count;
  team.step = step;
  atomic_store(&team.next, 0);
  uint64_t number = LOOP(atomic_load(&team.gate)) + 1;
  if (number >> 32) number = 1; /* 0 is what a new worker has done */
  atomic_store(&team.gate, number << 32 | (uint64_t)helpers * ONE_PLACE);
  wake_all();
  take_parts();
  uint64_t gate = atomic_load(&team.gate);
  while (!atomic_compare_exchange_weak(&team.gate, &gate, gate - PLACES(gate))) continue;
  for (int32_t i = 1; INSIDE(atomic_load(&team.gate)) != 0; i++) {
    relax();
    if (i % SPINS_PER_YIELD == 0) sched_yield();
  }
}

void rvm_workers_run(int32_t threads, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  if (threads <= 1 || count / 2 < grain || pthread_mutex_trylock(&team.owner) != 0) {
    part(shared, 0, count);
    return;
  }
  int64_t parts = count / grain;
  if (parts < threads) threads = (int32_t)parts;
  grow(threads - 1);
  if (threads - 1 > team.count) threads = team.count + 1;
  if (parts > threads * PARTS_PER_THREAD) parts = threads * PARTS_PER_THREAD;
  parts -= parts % threads;
  if (threads > 1)
    share(threads - 1, part, shared, count, (count + parts - 1) / parts);
  else
    part(shared, 0, count);
  pthread_mutex_unlock(&team.owner);
}
